"""Kernels whose variants differ in what a call can mean; on the CPU a unit writes its number to `out`.

`biased`: an argument that one variant is without, and two element types. `numbers`: numbers of several types. `sole`:
one variant of a flag, a truth value and a real number. `promised`: alignments beside hints. `joint`: sets of hints that
a spec writes out, none of them empty. `bounded`: what a call must meet. `pinned` and `tiled`:
numbers that promise to have one value. `signed`: real numbers that are no ordinary ones. `split`: words beside
numbers. `ordered`: nothing that a call says decides. Those of `table_rules`: rows of the selection table do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import table_rules
from launch_release import TestUnit, make_unit

from precast.spec.model import Argument, Hint, Spelled

TARGETS = ("cpu:x86-64-v2", "cuda:90")
X = Hint("x", 16)


def argument(name: str, kind: str, divisibility: int = 0) -> Argument:
    return Argument(name, kind, kind == "none", None, divisibility)


def hinted(name: str, hints: tuple[Hint, ...]) -> Argument:
    """An i32 with what the hints say of it."""
    if Hint(name, 1) in hints:
        return Argument(name, "i32", True, 1)
    return argument(name, "i32", 16 * (Hint(name, 16) in hints))


def choice_units() -> Iterator[TestUnit]:
    for target in TARGETS:
        yield from numbered(target, "biased", [
            ([("W", kind)], [argument("w", kind), argument("n", "i32")], ())
            for kind in ("none", "*fp32", "*fp64")
        ])  # fmt: skip
        yield from numbered(target, "sole", [
            ([("CAUSAL", 1), ("EVEN", True), ("RATE", 0.5)], [argument("n", "i32")], ())
        ])  # fmt: skip
        yield from numbered(target, "promised", [
            ([], [argument("x", "*fp32", 64), argument("n", "i32", 64 if hints else 32)], hints)
            for hints in ((Hint("x", 16), Hint("n", 16)), ())
        ])  # fmt: skip
        yield from numbered(target, "joint", [
            ([], [argument("x", "*fp32", 16 * (X in hints)), hinted("n", hints), hinted("m", hints)], hints)
            for hints in ((Hint("n", 1),), (X, Hint("m", 16)), (X, Hint("n", 16)), (X, Hint("n", 1), Hint("m", 1)))
        ])  # fmt: skip
        yield from numbered(target, "pinned", [
            ([("BLOCK", block)], [Argument("one", "i64", True, 1, equal=1), Argument("low", "i8", equal=-7),
                                  Argument("size", "u32", equal=block)], ())
            for block in (64, 128)
        ])  # fmt: skip
        yield from numbered(target, "tiled", [
            ([], [argument("x", "*fp32", 16), Argument("size", "i32", equal=64), hinted("n", hints)], hints)
            for hints in ((Hint("n", 16),), ())
        ])  # fmt: skip
        yield from numbered(target, "bounded", [
            ([("BLOCK", block)], [hinted("n", hints), argument("m", "i32")], hints)
            for block in (64, 256)
            for hints in ((Hint("n", 16),), ())
        ], ("n <= BLOCK", "m // n < 4"))  # fmt: skip
        yield from numbered(target, "ordered", [
            ([("BLOCK", block)], [argument("n", "i32", 32 if block == 32 else 0)], ()) for block in (128, 32, 64)
        ])  # fmt: skip
        yield from numbered(target, "signed", [
            ([("RATE", rate), ("FLAG", True)], [argument("n", "i32")], ())
            for rate in (0.5, 0.0, Spelled("-0.0"), Spelled("nan"), Spelled("-inf"))
        ])  # fmt: skip
        yield from numbered(target, "split", [
            ([("SPLIT", split)], [argument("n", "i32")], ()) for split in (0, 4, None, True, -7)
        ])  # fmt: skip
    for kernel in table_rules.KERNELS:
        yield from numbered(TARGETS[0], kernel, [
            ([("BLOCK", block), ("WARPS", warps)], [argument(name, "i32") for name in "nmk"], ())
            for block in table_rules.BLOCKS for warps in table_rules.WARPS
        ])  # fmt: skip
    yield from numbered(TARGETS[0], "numbers", [
        ([("T", integer), ("A", real)], [argument("n", integer), argument("alpha", real)], ())
        for integer, real in itertools.product(("u8", "i64", "i32", "u64", "i1"), ("fp64", "none", "fp32"))
    ])  # fmt: skip


def numbered(target: str, kernel: str, variants: list, requires: tuple[str, ...] = ()) -> Iterator[TestUnit]:
    for number, (values, arguments, hints) in enumerate(variants):
        unit, facts = make_unit(kernel, target, values, [Argument("out", "*i64"), *arguments], ("1", "1", "1"), hints,
                                **({} if target.startswith("cpu") else {"num_warps": 1}))  # fmt: skip
        unit = replace(unit, requires=requires)
        yield TestUnit(unit, facts, f"NUMBER({facts.symbol}, {number})" if target.startswith("cpu") else "")
