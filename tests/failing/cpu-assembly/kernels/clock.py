import triton
import triton.language as tl


@triton.jit
def clock_kernel(out):
    ticks = tl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out, ticks)
