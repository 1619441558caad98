"""Products of bytes. In: what is in scope, the program's arrays. Out: their ops, the result stored."""

from __future__ import annotations

from cpu_fuzz.draw_memory import Accesses
from cpu_fuzz.program import INTEGERS, Type, Value

_ROWS, _COLUMNS, _DEPTHS = (1, 8, 16, 32), (1, 8, 16, 32, 64, 128), (2, 32, 32, 64)
_KEPT = 256  # elements of a product that other statements may use


class Products(Accesses):
    """In sizes for which machines have instructions and in others."""

    def product(self) -> None:
        m, n, k = (int(self.pick(sizes)) for sizes in (_ROWS, _COLUMNS, _DEPTHS))  # type: ignore[call-overload]
        batch = (2,) if self.chance(0.2) else ()
        start, total = len(self.values), Type("i32", (*batch, m, n))
        operands = [self._matrix((*batch, m, k)), self._matrix((*batch, k, n)), self.get(total)]
        del self.values[start:]
        attributes = {"inputPrecision": "0 : i32", "maxNumImpreciseAcc": "0 : i32"}
        self.store_result(self.one("tt.dot", operands, total, total.count <= _KEPT, **attributes))

    def _matrix(self, shape: tuple[int, ...]) -> Value:
        """Bytes that differ: loaded, computed or what there is, some of them transposed."""
        if self.chance(0.3):
            order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            source = self._matrix(tuple(shape[each] for each in order))
            return self.one("tt.trans", [source], source.type.shaped(*shape), order=f"array<i32: {str(order)[1:-1]}>")
        kind = self.pick(("scope", "index", "load", "load", "load"))
        if kind == "scope":
            return self.get(Type("i8", shape))
        if kind == "load":
            return self._part(shape)
        index = self.linear(shape)
        factor = self.constant(int(self.rng.integers(1, 99)), index.type)
        return self.resize(self.one("arith.muli", [index, factor], index.type), "i8")

    def _part(self, shape: tuple[int, ...]) -> Value:
        """Loaded numbers, of which those from some row and some column on are zero."""
        argument = self.array(lambda each: not each.sink and each.count != 4096 and each.element in INTEGERS)
        if argument is None:
            return self.get(Type("i8", shape))
        pointer, mask = self.place(argument, shape, False)
        for axis in range(len(shape) - 2, len(shape)):
            if self.chance(0.5):
                index = self.along(shape, axis)
                limit = self.constant(int(self.rng.integers(0, shape[axis] + 1)), index.type)
                inside = self.compare(index, limit, 2)
                mask = inside if mask is None else self.one("arith.andi", [mask, inside], inside.type)
        self.fence(argument)
        operands = [pointer, *([mask] if mask is not None else [])]
        segments = f"array<i32: 1, {len(operands) - 1}, 0>"
        type_ = Type(self.program.parameters[argument].element, shape)
        value = self.one("tt.load", operands, type_, isVolatile="false", operandSegmentSizes=segments)
        self.fence(argument)
        return self.resize(value, "i8")
