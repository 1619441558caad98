"""A program of Triton's with calls of every kind, and what it says of a release that serves it.

`served_program.py FOLDER_OF_THE_PACKAGE`: runs under whatever Triton is found first. The release is built from it.
"""

import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate

FACTORS = tl.constexpr((1, 3))


@triton.constexpr_function
def factor(number):
    return FACTORS[number] * 2


@aggregate
class Line:
    start: tl.tensor
    n: tl.tensor

    @triton.constexpr_function
    def __init__(self, start, n):
        self.start = start
        self.n = n

    @triton.jit
    def load(self, places):
        return tl.load(self.start + places, mask=places < self.n)


@triton.jit
def plain(out, x, n, BLOCK: tl.constexpr, MODE: tl.constexpr = None):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = Line(x, n).load(places) * factor(1)
    if MODE == "halved":
        value = value / 2
    tl.store(out + places, value, mask=places < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.jit
def tuned(out, x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, mask=places < n) + (1 if EVEN else 2), mask=places < n)


SPEC = """
[kernel.plain]
source = "served_program.py:plain"
grid = ["cdiv(n, BLOCK)", "1", "1"]

[kernel.plain.args]
out = "*fp32"
x = "*fp32"
n = "i32"

[kernel.plain.matrix]
BLOCK = [64]

[kernel.tuned]
source = "served_program.py:tuned"
grid = ["cdiv(n, BLOCK)", "1", "1"]

[kernel.tuned.args]
out = "*fp32"
x = "*fp32"
n = "i32"

[kernel.tuned.matrix]
BLOCK = [128]
EVEN = [true, false]
"""

if __name__ == "__main__":
    import sys

    import numpy as np

    sys.path.insert(0, sys.argv[1])
    import demo

    x, out = np.arange(1000, dtype="f4"), np.zeros(1000, "f4")
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    with demo.serve():
        plain[(16,)](out, x, 1000, BLOCK=64, num_warps=4)
        assert (out == 6 * x).all()
        for count, more in ((1000, 2), (896, 1)):
            tuned[grid](out, x, count)
            assert (out[:count] == x[:count] + more).all()
        try:
            plain[(16,)](out, x, 1000, 64, "halved")
        except RuntimeError as error:
            said = str(error)
        else:
            said = f"halved {bool((out == 3 * x).all())}"
        FACTORS = tl.constexpr((1, 4))
        try:
            plain[(16,)](out, x, 1000, BLOCK=64)
        except RuntimeError as error:
            assert "its source is not in the release, or has changed" in str(error), error
        else:
            raise AssertionError("a changed source was served")
    print(triton.__version__, said)
