"""Kernels that do nothing, for measuring what a launch costs: 0, 6, 19 and 58 arguments; `rows`, which is called as
most kernels are, with a constexpr by name; and two small useful ones."""

import triton
import triton.language as tl


@triton.jit
def args0_kernel():
    pass


@triton.jit
def args6_kernel(
    p0,
    p1,
    p2,
    n0,
    n1,
    n2,
):
    pass


@triton.jit
def args19_kernel(
    p0,
    p1,
    p2,
    p3,
    p4,
    p5,
    p6,
    p7,
    n0,
    n1,
    n2,
    n3,
    n4,
    n5,
    n6,
    n7,
    n8,
    n9,
    n10,
):
    pass


@triton.jit
def args58_kernel(
    p0,
    p1,
    p2,
    p3,
    p4,
    p5,
    p6,
    p7,
    p8,
    p9,
    p10,
    p11,
    p12,
    p13,
    p14,
    p15,
    p16,
    p17,
    p18,
    p19,
    n0,
    n1,
    n2,
    n3,
    n4,
    n5,
    n6,
    n7,
    n8,
    n9,
    n10,
    n11,
    n12,
    n13,
    n14,
    n15,
    n16,
    n17,
    n18,
    n19,
    n20,
    n21,
    n22,
    n23,
    n24,
    n25,
    n26,
    n27,
    n28,
    n29,
    n30,
    n31,
    n32,
    n33,
    n34,
    n35,
    n36,
    n37,
):
    pass


@triton.jit
def rows_kernel(out, x, stride, n_rows, n_cols, BLOCK: tl.constexpr):
    pass


@triton.jit
def fill_kernel(out, value, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, value, mask=places < n)


@triton.jit
def wide_kernel(out, n, STEP: tl.constexpr):
    place = tl.program_id(0)
    tl.store(out + place, place * STEP, mask=place < n)
