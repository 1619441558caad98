"""Statements that touch memory. In: what is in scope, the program's arrays. Out: their ops, all of them determined."""

from __future__ import annotations

from collections.abc import Callable

from cpu_fuzz.drawing import Drawing
from cpu_fuzz.program import SMALL_FLOATS, Array, Op, Type, Value

TABLE = 256  # elements of arrays that are addressed by the low bits of any integer


class Accesses(Drawing):
    """Loads, stores, atomics and barriers."""

    def array(self, accept: Callable[[Array], bool]) -> int | None:
        found = [i for i, each in enumerate(self.program.parameters) if isinstance(each, Array) and accept(each)]
        return int(self.pick(found)) if found else None  # type: ignore[call-overload]

    def place(self, argument: int, shape: tuple[int, ...], injective: bool) -> tuple[Value, Value | None]:
        """Pointers of a shape into an array, and the mask that keeps them inside where one is needed."""
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        if not shape:
            return self._scalar_place(argument, array)
        index = self.linear(shape)
        mask: Value | None = None
        if array.bounded:
            index = self._offset(index)
            n = self.block_argument(0)
            limit = self.one("tt.splat", [n], index.type)
            if self.chance(0.25):  # from the end
                last = self.one("arith.subi", [limit, self.constant(1, index.type)], index.type)
                index = self.one("arith.subi", [last, index], index.type)
                mask = self.compare(index, self.constant(0, index.type), 5)
                low = self.compare(index, limit, 2)
                mask = self.one("arith.andi", [mask, low], mask.type)
            else:
                mask = self.compare(*((index, limit, 2) if self.chance(0.7) else (limit, index, 4)))
            if self.chance(0.3):
                index = self.one("arith.extsi", [index], index.type.of("i64"))
        else:
            index = self._table_index(index, injective)
        return self._pointers(argument, index), mask

    def block_argument(self, number: int) -> Value:
        return self.program.body.arguments[number]

    def _offset(self, index: Value) -> Value:
        """Each program its own part, sometimes a little off."""
        if self.program.grid != (1, 1, 1) and self.chance(0.5):
            number = self.one("tt.get_program_id", [], Type("i32"), axis="0 : i32")
            start = self.one("arith.muli", [number, self.constant(index.type.count, Type("i32"))], Type("i32"))
            index = self.one("arith.addi", [index, self.one("tt.splat", [start], index.type)], index.type)
        if self.chance(0.3):
            index = self.one("arith.addi", [index, self.constant(int(self.rng.integers(0, 5)), index.type)], index.type)
        return index

    def _table_index(self, index: Value, injective: bool) -> Value:
        last = self.constant(TABLE - 1, index.type)
        if injective or self.chance(0.4):
            odd = self.constant(int(self.pick((1, 1, 3, -1, 77))), index.type)  # type: ignore[call-overload]
            index = self.one("arith.muli", [index, odd], index.type)
            index = self.one(
                "arith.addi", [index, self.constant(int(self.rng.integers(0, 99)), index.type)], index.type
            )
        else:
            index = self.get(index.type)
        return self.one("arith.andi", [index, last], index.type)

    def _scalar_place(self, argument: int, array: Array) -> tuple[Value, Value | None]:
        index = self.get(Type("i32"))
        mask = None
        if array.bounded:
            mask = self.compare(index, self.block_argument(0), 6)
        else:
            index = self.one("arith.andi", [index, self.constant(TABLE - 1, index.type)], index.type)
        return self._pointers(argument, index), mask

    def _pointers(self, argument: int, index: Value) -> Value:
        base = self.block_argument(argument)
        if index.type.shape:
            base = self.one("tt.splat", [base], base.type.shaped(*index.type.shape), keep=False)
        return self.one("tt.addptr", [base, index], base.type, keep=False)

    def fence(self, argument: int) -> None:
        """A barrier between accesses through two names of one memory."""
        if self.aliased and not self.program.strict:
            self.block.operations.append(Op("ttg.barrier", attributes={"addrSpace": "31 : i32"}))

    def load(self) -> None:
        argument = self.array(lambda each: not each.sink and each.count != 4096)
        assert argument is not None
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        shape = self.shape() if self.chance(0.85) else ()
        pointer, inside = self.place(argument, shape, False)
        mask = inside
        if self.chance(0.4):
            extra = self.get(Type("i1", shape))
            mask = extra if inside is None else self.one("arith.andi", [inside, extra], extra.type)
        other = mask is not None and self.chance(0.6)
        type_ = Type(array.element, shape)
        operands = [pointer, *([mask] if mask is not None else [])]
        if other:
            plain = Type("i8", shape)
            filler = (
                self.get(type_)
                if array.element not in SMALL_FLOATS
                else self.one("tt.bitcast", [self.get(plain)], type_)
            )
            operands.append(filler)
        self.fence(argument)
        self.one("tt.load", operands, type_, isVolatile="true" if self.chance(0.05) else "false",
                 operandSegmentSizes=f"array<i32: 1, {int(mask is not None)}, {int(other)}>")  # fmt: skip
        self.fence(argument)

    def store(self) -> None:
        value = self.find(lambda each: each.exact and each.type.count <= TABLE)
        if value is None:
            return
        argument = self.array(lambda each: each.element == value.type.element and not each.sink and each.count != 4096)
        if argument is None:
            self.store_result(value)
            return
        pointer, mask = self.place(argument, value.type.shape, True)
        if self.chance(0.5):
            shape = value.type.shape
            extra = self.wrapped_mask(shape) if shape and self.chance(0.5) else self.get(Type("i1", shape))
            mask = extra if mask is None else self.one("arith.andi", [mask, extra], extra.type)
        self._write(argument, pointer, value, mask)

    def wrapped_mask(self, shape: tuple[int, ...]) -> Value:
        """An index that wraps within the block, compared with a scalar."""
        index = self.linear(shape)
        middle = int(self.rng.integers(0, index.type.count + 1))
        start = self.constant(2**31 - 1 - middle, index.type)
        index = self.one("arith.addi", [index, start], index.type)
        limit = self.one("tt.splat", [self.get(Type("i32"))], index.type)
        return self.compare(index, limit, int(self.rng.integers(2, 10)))

    def shift(self) -> None:
        """An array read and written at other places of itself."""
        argument = self.array(lambda each: not each.sink and each.count != 4096 and each.element not in SMALL_FLOATS)
        if argument is None:
            return
        shape = self.shape()
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        source, inside = self.place(argument, shape, False)
        self.fence(argument)
        segments = f"array<i32: 1, {int(inside is not None)}, 0>"
        operands = [source, *([inside] if inside is not None else [])]
        type_ = Type(array.element, shape)
        value = self.one("tt.load", operands, type_, isVolatile="false", operandSegmentSizes=segments)
        target, mask = self.place(argument, shape, True)
        self._write(argument, target, value, mask)

    def _write(self, argument: int, pointer: Value, value: Value, mask: Value | None) -> None:
        self.fence(argument)
        self.block.operations.append(Op("tt.store", [pointer, value, *([mask] if mask is not None else [])]))
        self.fence(argument)

    def store_result(self, value: Value) -> None:
        """A value into an array that is only written: a sink for floats."""
        element = value.type.element
        argument = self.array(lambda each: each.count == 4096 and each.element == element)
        if argument is None or value.type.count > 4096:
            return
        free = self.used[argument]
        if free + value.type.count > 4096:
            return
        self.used[argument] = free + value.type.count
        index = self.linear(value.type.shape) if value.type.shape else self.constant(0, Type("i32"))
        index = self.one("arith.addi", [index, self.constant(free, index.type)], index.type)
        mask = self.get(Type("i1", value.type.shape)) if self.chance(0.4) else None
        self._write(argument, self._pointers(argument, index), value, mask)

    def atomic(self) -> None:
        argument = self.array(lambda each: not each.sink and each.count != 4096 and each.element not in
                              ("i1", "i8", "i16", *SMALL_FLOATS))  # fmt: skip
        if argument is None:
            return
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        shape = self.shape() if self.chance(0.7) else ()
        value = self.get(Type(array.element, shape))
        pointer, mask = self.place(argument, shape, False)
        kind = 5 if value.type.is_float else int(self.pick((1, 2, 3, 4, 6, 7, 8, 9, 10)))  # type: ignore[call-overload]
        self.fence(argument)
        self.one("tt.atomic_rmw", [pointer, value, *([mask] if mask is not None else [])], value.type,
                 atomic_rmw_op=f"{kind} : i32", scope="1 : i32", sem="4 : i32")  # fmt: skip
        self.fence(argument)

    def swap(self) -> None:
        argument = self.array(lambda each: each.count == TABLE and each.element in ("i32", "i64"))
        if argument is None:
            return
        type_ = Type(self.program.parameters[argument].element, self.shape() if self.chance(0.6) else ())
        pointer, _ = self.place(argument, type_.shape, False)
        self.fence(argument)
        self.one("tt.atomic_cas", [pointer, self.get(type_), self.get(type_)], type_, scope="1 : i32", sem="4 : i32")
        self.fence(argument)

    def barrier(self) -> None:
        self.block.operations.append(Op("ttg.barrier", attributes={"addrSpace": "31 : i32"}))
