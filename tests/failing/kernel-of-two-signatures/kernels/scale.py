import triton
import triton.language as tl

if triton.__version__ >= "3":

    @triton.jit
    def scale_kernel(out, x, n, BLOCK: tl.constexpr):
        pass

else:

    @triton.jit
    def scale_kernel(x, out, n, BLOCK: tl.constexpr):
        pass
