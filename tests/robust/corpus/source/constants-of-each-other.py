A = tl.constexpr(B)
B = tl.constexpr(A)
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = A):
    pass
