"""Whole kernels of the kind that serving stacks use, against NumPy in float64, with ragged shapes."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import build, from_bf16, to_bf16

RANDOM = np.random.default_rng(7)


@triton.jit
def add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("n", [1, 31, 1024, 5000])
def test_vector_add(n, level):
    kernel = build(add_kernel, {"out": "*fp32", "x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 1024}, level=level)
    x, y = RANDOM.standard_normal((2, n)).astype(np.float32)
    out = np.full(n + 64, 7, np.float32)
    assert kernel((triton.cdiv(n, 1024),), out, x, y, n) == 0
    assert np.array_equal(out[:n], x + y)
    assert np.all(out[n:] == 7), "wrote past the end"


@triton.jit
def softmax_kernel(out, x, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    values = tl.load(x + row * stride + columns, mask=mask, other=-float("inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * stride + columns, (weights / tl.sum(weights, 0)).to(out.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("n_cols", [1, 77, 781, 1024])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_softmax(n_cols, dtype):
    kernel = build(
        softmax_kernel, {"out": f"*{dtype}", "x": f"*{dtype}", "stride": "i32", "n_cols": "i32"}, {"BLOCK": 1024}
    )
    x = (3 * RANDOM.standard_normal((5, n_cols))).astype(np.float32)
    stored = {"fp32": lambda v: v, "fp16": lambda v: v.astype(np.float16), "bf16": to_bf16}[dtype](x)
    out = np.zeros_like(stored)
    assert kernel((5,), out, stored, n_cols, n_cols) == 0
    exact = (from_bf16(stored) if dtype == "bf16" else stored).astype(np.float64)
    expected = np.exp(exact - exact.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    actual = from_bf16(out) if dtype == "bf16" else out
    tolerance = {"fp32": 1e-6, "fp16": 1e-3, "bf16": 4e-3}[dtype]
    assert np.allclose(actual, expected, rtol=tolerance, atol=tolerance / 100)
