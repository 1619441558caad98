import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    pass
