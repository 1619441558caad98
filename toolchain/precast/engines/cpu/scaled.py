"""`tt.dot_scaled`, as a product of f32. In: a function's IR. Out: the IR with the op's meaning spelled out.

An operand is decoded (e2m1: two elements in a byte, the first in the low half), multiplied by its scales (e8m0: powers
of two; or 8-bit floats), one of which stands for a run of elements along K, and goes into a plain product.
"""

from __future__ import annotations

from precast.engines.cpu.expansion import Expansion, shaped
from precast.engines.cpu.ir import Op, Value

_E2M1 = 4  # Triton's ScaleDotElemType


class ScaledProduct(Expansion):
    """One product being spelled out."""

    def run(self) -> None:
        attributes = self.operation.attributes
        a, b, c, *scales = self.operation.operands
        _, _, _, has_left, has_right = attributes.get("operandSegmentSizes", (1, 1, 1, 1, 1))
        rank = len(a.type.shape)
        left = self.decode(a, attributes["a_elem_type"], rank - 1 if attributes.get("lhs_k_pack", True) else rank - 2)
        right = self.decode(b, attributes["b_elem_type"], rank - 2 if attributes.get("rhs_k_pack", True) else rank - 1)
        if has_left:
            left = self.scale(left, self.spread(scales[0], left.type.shape[-1]))
        if has_right:
            spread = self.spread(scales[-1], right.type.shape[-2])
            right = self.scale(right, self.turn(spread, rank - 2, rank - 1))
        self.finish(Op("tt.dot", [left, right, c]), self.operation.results)

    # Small ops.

    def with_constant(self, name: str, x: Value, value: int) -> Value:
        return self.emit(name, [x, self.filled(value, x.type)], x.type)

    def where_equal(self, x: Value, value: int, then: float, otherwise: Value) -> Value:
        same = self.emit("arith.cmpi", [x, self.filled(value, x.type)], x.type.with_element("i1"), predicate="eq")
        return self.emit("arith.select", [same, self.filled(then, otherwise.type), otherwise], otherwise.type)

    def turn(self, x: Value, first: int, second: int) -> Value:
        """Two dimensions exchanged."""
        order = list(range(len(x.type.shape)))
        order[first], order[second] = second, first
        return self.emit("tt.trans", [x], shaped(x, [x.type.shape[each] for each in order]), order=tuple(order))

    # Operands.

    def decode(self, x: Value, kind: int, packed: int) -> Value:
        """The elements as f32; those of e2m1 lie two in a byte along the dimension `packed`."""
        if kind != _E2M1:
            name = "tt.fp_to_fp" if x.type.element.startswith("f8") else "arith.extf"
            return x if x.type.element == "f32" else self.emit(name, [x], x.type.with_element("f32"))
        low, high = self.with_constant("arith.andi", x, 15), self.with_constant("arith.shrui", x, 4)
        halves = [self.decode_e2m1(each) for each in (low, high)]
        joined = self.emit("tt.join", halves, shaped(halves[0], [*x.type.shape, 2]))
        last = len(x.type.shape)
        order = [*range(packed + 1), last, *range(packed + 1, last)]
        if order != sorted(order):
            shape = [joined.type.shape[each] for each in order]
            joined = self.emit("tt.trans", [joined], shaped(joined, shape), order=tuple(order))
        shape = [2 * size if axis == packed else size for axis, size in enumerate(x.type.shape)]
        return self.reshape(joined, shape)

    def decode_e2m1(self, code: Value) -> Value:
        """Sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""
        wide = self.emit("arith.extui", [code], code.type.with_element("i32"))
        magnitude = self.with_constant("arith.andi", wide, 7)
        normal = self.with_constant("arith.addi", self.with_constant("arith.shli", magnitude, 22), 126 << 23)
        value = self.emit("tt.bitcast", [normal], wide.type.with_element("f32"))
        value = self.where_equal(magnitude, 1, 0.5, self.where_equal(magnitude, 0, 0.0, value))
        sign = self.with_constant("arith.shli", self.with_constant("arith.andi", wide, 8), 28)
        bits = self.emit("tt.bitcast", [value], wide.type)
        signed = self.emit("arith.ori", [bits, sign], wide.type)
        return self.emit("tt.bitcast", [signed], value.type)

    # Scales.

    def spread(self, scales: Value, size: int) -> Value:
        """The scales as f32, each as often as it has elements along the last dimension of `size`."""
        values = self.decode_scale(scales)
        *kept, runs = values.type.shape
        repeated = self.emit("tt.expand_dims", [values], shaped(values, [*kept, runs, 1]), axis=len(kept) + 1)
        wide = self.emit("tt.broadcast", [repeated], shaped(values, [*kept, runs, size // runs]))
        return self.reshape(wide, [*kept, size])

    def decode_scale(self, scales: Value) -> Value:
        """A byte is an exponent with bias 127, 255 is NaN."""
        if scales.type.is_float:
            return self.emit("tt.fp_to_fp", [scales], scales.type.with_element("f32"))
        wide = self.emit("arith.extui", [scales], scales.type.with_element("i32"))
        power = self.emit("tt.bitcast", [self.with_constant("arith.shli", wide, 23)], wide.type.with_element("f32"))
        power = self.where_equal(wide, 0, 2.0**-127, power)
        return self.where_equal(wide, 255, float("nan"), power)

    def scale(self, x: Value, scales: Value) -> Value:
        return self.emit("arith.mulf", [x, scales], x.type)
