"""Scale a vector in a chain of dependent launches: out[i] = factor · x[i].

out, x: [n] of fp32, contiguous. With programmatic dependent launch the next kernel of the stream may start while this
one runs: the wait stands before the first read of what the previous kernel wrote. sm_90 and later.
"""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def dependent_scale_kernel(out, x, factor, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gdc_wait()
    value = tl.load(x + places, mask=places < n)
    gdc_launch_dependents()
    tl.store(out + places, value * factor, mask=places < n)
