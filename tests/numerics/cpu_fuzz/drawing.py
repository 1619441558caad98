"""How a random program is written. In: chance. Out: ops at the end of a block, on values that are in scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cpu_fuzz.program import BITS, INTEGERS, Block, Op, Program, Type, Value

_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Drawing:
    """What every kind of statement is written with."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.program = Program(seed, [], Block())
        self.program.signed_zeros = bool(self.chance(0.5))
        self.program.strict = bool(self.chance(0.15))
        self.program.grid = tuple(int(self.rng.integers(1, 3)) for _ in range(3)) if self.chance(0.3) else (1, 1, 1)  # type: ignore[assignment]
        self.block = self.program.body
        self.values: list[Value] = []
        self.constants: dict[tuple[str, Type], Value] = {}
        self.depth = 0
        self.scalars_alone = False
        self.aliased = False

    # Choices.

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, items: Sequence) -> object:  # type: ignore[type-arg]
        return items[int(self.rng.integers(0, len(items)))]

    def shape(self) -> tuple[int, ...]:
        """One to four dimensions, powers of two, some of them 1."""
        count = int(self.pick(_COUNTS))  # type: ignore[call-overload]
        rank = int(self.pick((1, 1, 1, 2, 2, 3, 4)))  # type: ignore[call-overload]
        sizes = [1] * rank
        while count > 1:
            sizes[int(self.rng.integers(0, rank))] *= 2
            count //= 2
        return tuple(sizes)

    # Writing.

    def add(self, name: str, operands: Sequence[Value], types: Sequence[Type], keep: bool = True, exact: bool = True,
            regions: Sequence[Block] = (), **attributes: str) -> list[Value]:  # fmt: skip
        exact = exact and all(each.exact for each in operands)
        results = [Value(type_, exact or not type_.is_float) for type_ in types]
        self.block.operations.append(Op(name, list(operands), results, attributes, list(regions)))
        if keep:
            self.values += [each for each in results if not each.type.pointer]
        return results

    def one(self, name: str, operands: Sequence[Value], type_: Type, keep: bool = True, exact: bool = True,
            regions: Sequence[Block] = (), **attributes: str) -> Value:  # fmt: skip
        return self.add(name, operands, [type_], keep, exact, regions, **attributes)[0]

    def constant(self, value: float, type_: Type) -> Value:
        if type_.element == "i1":
            text = "true" if value else "false"
        elif type_.is_float:
            text = f"{float(value):e}"
        else:
            text = str(int(value))
        typed = f"dense<{text}> : {type_}" if type_.shape else text if type_.element == "i1" else f"{text} : {type_}"
        return self.one("arith.constant", [], type_, keep=False, value=typed)

    def compare(self, a: Value, b: Value, predicate: int) -> Value:
        name = "arith.cmpf" if a.type.is_float else "arith.cmpi"
        return self.one(name, [a, b], Type("i1", a.type.shape), predicate=f"{predicate} : i64")

    # Finding operands.

    def find(self, accept: Callable[[Value], bool]) -> Value | None:
        """A value in scope, late ones preferred."""
        found = [each for each in self.values if accept(each)]
        if not found:
            return None
        index = len(found) - 1 - min(int(self.rng.exponential(4)), len(found) - 1)
        return found[index]

    def get(self, type_: Type, exact: bool = True) -> Value:
        """A value of a type, made if there is none."""
        found = self.find(lambda each: each.type == type_ and (each.exact or not exact))
        if found is not None and not self.chance(0.15):
            return found
        scalar = None
        if type_.shape:
            scalar = self.find(lambda each: each.type == Type(type_.element) and (each.exact or not exact))
        if scalar is not None and self.chance(0.5):
            return self.one("tt.splat", [scalar], type_)
        if type_.is_float:
            return self.constant(float(self.pick((0.5, -2.0, 1.0, 3.25))), type_)  # type: ignore[arg-type]
        if type_.element == "i1":
            return self.constant(self.rng.integers(0, 2), type_)
        bits = min(32, BITS[type_.element])
        value = int(self.pick((1, -1, 3, 5, 7, 2**7 - 1, -(2 ** (bits - 1)), 100, -17)))  # type: ignore[call-overload]
        return self.constant(max(-(2 ** (bits - 1)), min(value, 2 ** (bits - 1) - 1)), type_)

    def resize(self, value: Value, element: str) -> Value:
        """An integer as another one."""
        order = ("i1", *INTEGERS)
        old, new = order.index(value.type.element), order.index(element)
        if old == new:
            return value
        name = "arith.trunci" if new < old else str(self.pick(("arith.extsi", "arith.extui")))
        return self.one(name, [value], value.type.of(element))

    def linear(self, shape: tuple[int, ...], element: str = "i32") -> Value:
        """The row-major index of each element."""
        total: Value | None = None
        stride = 1
        for axis in reversed(range(len(shape))):
            if shape[axis] > 1 or (axis == 0 and total is None):
                part = self.along(shape, axis)
                if stride > 1:
                    part = self.one("arith.muli", [part, self.constant(stride, part.type)], part.type)
                total = part if total is None else self.one("arith.addi", [total, part], part.type)
            stride *= shape[axis]
        assert total is not None
        return self.resize(total, element) if element != "i32" else total

    def along(self, shape: tuple[int, ...], axis: int) -> Value:
        """The index in one dimension."""
        size = shape[axis]
        value = self.one("tt.make_range", [], Type("i32", (size,)), start="0 : i32", end=f"{size} : i32")
        for other in range(len(shape)):
            if other != axis:
                dims = list(value.type.shape)
                dims.insert(other, 1)
                value = self.one("tt.expand_dims", [value], value.type.shaped(*dims), axis=f"{other} : i32")
        return value if value.type.shape == shape else self.one("tt.broadcast", [value], value.type.shaped(*shape))
