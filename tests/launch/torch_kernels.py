"""Kernels that are launched with PyTorch's tensors: the release of `test_torch.py` is built from them."""

import triton
import triton.language as tl


@triton.jit
def double(out, x, rows, columns, row_stride, column_stride, BLOCK: tl.constexpr):
    """`out`, dense, is twice `x`, whatever its strides; a program for each row."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * row_stride + column * column_stride, mask=inside)
    twice = (value.to(tl.float64) * 2).to(value.dtype) if value.dtype.is_floating() else value + value
    tl.store(out + row * columns + column, twice, mask=inside)


@triton.jit
def invert(out, x, n, BLOCK: tl.constexpr):
    """`out` is true where `x` is not."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    tl.store(out + places, value == 0, mask=places < n)


@triton.jit
def biased(out, x, bias, n, BLOCK: tl.constexpr):
    """`x`, and `bias` where there is one."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    if bias is not None:
        value += tl.load(bias + places, mask=places < n)
    tl.store(out + places, value, mask=places < n)


SETTINGS = '[project]\nname = "tensors"\nversion = "1.0"\n\n[tool.precast]\ntargets = ["cpu:native"]\n'
SPEC = """
[kernel.double]
source = "torch_kernels.py:double"
grid = ["rows"]

[kernel.double.args]
out = "*{dtype}"
x = "*{dtype}"
rows = "i32"
columns = "i32"
row_stride = "i64"
column_stride = "i64"

[kernel.double.matrix]
dtype = ["fp64", "fp32", "fp16", "bf16", "fp8e4nv", "fp8e5", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]
BLOCK = [64]

# The same function with another constexpr: a refusal does not speak of it.
[kernel.double_wide]
source = "torch_kernels.py:double"
grid = ["rows"]

[kernel.double_wide.args]
out = "*fp32"
x = "*fp32"
rows = "i32"
columns = "i32"
row_stride = "i64"
column_stride = "i64"

[kernel.double_wide.matrix]
BLOCK = [128]

[kernel.invert]
source = "torch_kernels.py:invert"
grid = ["cdiv(n, BLOCK)"]

[kernel.invert.args]
out = "*i1"
x = "*i1"
n = "i32"

[kernel.invert.matrix]
BLOCK = [64]

[kernel.biased]
source = "torch_kernels.py:biased"
grid = ["cdiv(n, BLOCK)"]

[kernel.biased.args]
out = "*fp32"
x = { type = "*fp32", align = 16 }
bias = "{BIAS}"
n = "i32"

[kernel.biased.matrix]
BIAS = ["*fp32", "none"]
BLOCK = [64]
"""
