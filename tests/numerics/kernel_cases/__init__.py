"""What every kernel of `kernels/` must compute: inputs, launch arguments and float64 references, with NumPy alone.

The CPU tests, the demo, the interpreter comparison and the GPU kit all read `CASES`.
"""

from __future__ import annotations

from kernel_cases import features, products, rows, tokens
from kernel_cases.case import KernelCase

CASES: dict[str, KernelCase] = {
    case.kernel: case for case in (*rows.CASES, *products.CASES, *tokens.CASES, *features.CASES)
}
