"""Cases of the small kernels for one GPU feature each: descriptors, clusters, dependent and cooperative launches."""

from __future__ import annotations

import numpy as np

from kernel_cases.case import (
    EXACT,
    Argument,
    Descriptor,
    KernelCase,
    Problem,
    Scalar,
    Shape,
    Tolerance,
    Values,
    blank,
    filled,
)
from kernel_cases.products import aligned_gap, slack
from kernel_cases.rows import ROW_SHAPES, draw, gap_of
from kernel_cases.tokens import make_transpose


def make_tile_copy(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, gap = str(values["dtype"]), aligned_gap(shape[1])
    x = generator.integers(-100, 100, shape).astype(np.float64)
    block = ("BLOCK_ROWS", "BLOCK_COLS")
    arguments: dict[str, Argument] = {
        "out": Descriptor(blank(element, shape, gap=gap, slack=slack(shape[1], element)), block),
        "x": Descriptor(filled(x, element, gap=gap), block),
        "n_rows": shape[0],
        "n_cols": shape[1],
    }
    return Problem(arguments, {"out": x}, {})


def make_cluster_sum(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    x = filled(draw(generator, shape, "fp32"), "fp32", gap=gap_of(shape))
    arguments: dict[str, Argument] = {
        "out": blank("fp32", shape[:1]), "x": x, "stride": x.strides[0], "n_rows": shape[0], "n_cols": shape[1],
    }  # fmt: skip
    return Problem(arguments, {"out": x.values().sum(axis=1)}, {"out": Tolerance(2e-6, 1e-4)})


def make_dependent_scale(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    x = draw(generator, shape, "fp32")
    arguments = {"out": blank("fp32", shape), "x": filled(x, "fp32"), "factor": 0.5, "n": shape[0]}
    return Problem(arguments, {"out": 0.5 * x}, {})


def make_grid_normalize(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    x = np.abs(draw(generator, shape, "fp32"))
    arguments: dict[str, Argument] = {
        "out": blank("fp32", shape), "x": filled(x, "fp32"), "total": filled([0.0], "fp32"),
        "arrived": filled([0], "i32"), "n": shape[0], "programs": 4,
    }  # fmt: skip
    expected = {"out": x / x.sum(), "total": x.sum(keepdims=True), "arrived": np.array([4.0])}
    return Problem(arguments, expected, {})


def make_echo_scalars(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    integers = [1, -100, -30000, -(2**31), -(2**52), 200, 60000, 2**32 - 1, 2**52]
    floats = [1.5, -2.5, 0.1, 0.1]
    names = ("flag", "small", "short", "word", "long", "u_small", "u_short", "u_word", "u_long")
    arguments: dict[str, Argument] = {
        "integers": blank("i64", (9,)), "floats": blank("fp64", (4,)), **dict(zip(names, integers, strict=True)),
        "half": Scalar("fp16", floats[0]), "brain": Scalar("bf16", floats[1]), "single": floats[2], "double": floats[3],
        "pair": (-7, blank("i32", (1,))),
    }  # fmt: skip
    arguments["flag"] = True
    wanted = {"integers": np.array(integers, np.float64), "floats": np.array([*floats[:2], np.float32(0.1), 0.1])}
    return Problem(arguments, {**wanted, "pair.1": np.array([-7.0])}, {})


CASES = (
    KernelCase("gluon_transpose", make_transpose, ((64, 64), (77, 131), (128, 192)), EXACT),
    KernelCase("tile_copy", make_tile_copy, ((32, 64), (45, 77), (96, 128)), EXACT),
    KernelCase("cluster_sum", make_cluster_sum, ROW_SHAPES),
    KernelCase("dependent_scale", make_dependent_scale, ((1024,), (1001,), (4096,)), EXACT),
    KernelCase("grid_normalize", make_grid_normalize, ((1024,), (1001,), (20000,))),
    KernelCase("echo_scalars", make_echo_scalars, ((1,),), EXACT),
)
