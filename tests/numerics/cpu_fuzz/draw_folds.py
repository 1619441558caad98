"""Products in loops, computed with, reduced and multiplied again. In: what is in scope. Out: the loop."""

from __future__ import annotations

from cpu_fuzz.draw_control import Control
from cpu_fuzz.program import Op, Type, Value

_SIZES, _DEPTHS = (2, 8, 16, 32), (2, 8, 32)
_BINARY = ("arith.addi", "arith.subi", "arith.muli", "arith.xori", "arith.maxsi", "arith.minsi")
_ATTRIBUTES = {"inputPrecision": "0 : i32", "maxNumImpreciseAcc": "0 : i32"}


class Folds(Control):
    """What stays, times the transpose of what is loaded each time round."""

    def fold(self) -> None:
        m, n, d = (int(self.pick(_SIZES)) for _ in range(3))  # type: ignore[call-overload]
        k, i32 = int(self.pick(_DEPTHS)), Type("i32")  # type: ignore[call-overload]
        left, filled = self._matrix((m, k)), self.constant(int(self.rng.integers(-3, 3)), i32.shaped(m, n))
        total, weight = self.get(i32.shaped(m, d)), self.get(i32.shaped(m))
        arguments = [Value(i32), Value(total.type), Value(weight.type)]

        def finish() -> Op:
            right = self.one("tt.trans", [self._matrix((n, k))], Type("i8", (k, n)), order="array<i32: 1, 0>")
            score = self.one("tt.dot", [left, right, filled], filled.type, **_ATTRIBUTES)
            for _ in range(int(self.rng.integers(0, 5))):
                score = self._compute(score)
            reduced = self._reduced(score, 1)
            if self.chance(0.3):
                lines = self.one("tt.splat", [self._reduced(self._reduced(score, 0), 0)], weight.type)
                reduced = self.one("arith.xori", [reduced, lines], weight.type)
            operands = [self.resize(score, "i8"), self._matrix((n, d)), arguments[1]]
            following = self.one("tt.dot", operands, total.type, **_ATTRIBUTES)
            scaled = self.one("arith.muli", [arguments[2], self.constant(3, weight.type)], weight.type)
            return Op("scf.yield", [following, self.one("arith.addi", [scaled, reduced], weight.type)])

        body = self.nested(arguments, int(self.rng.integers(0, 3)), finish)
        bounds = [self.constant(each, i32) for each in (0, int(self.rng.integers(0, 4)), 1)]
        for each in self.add("scf.for", [*bounds, total, weight], [total.type, weight.type], regions=[body]):
            self.store_result(each)

    def _compute(self, score: Value) -> Value:
        """The score with a number, its place in a line, another of its values or whatever is in scope."""
        type_ = score.type
        kind, line = str(self.pick(("number", "line", "mask", "twice", "scope"))), self.along(type_.shape, self._axis())
        number = self.constant(int(self.rng.integers(-40, 40)), type_)
        if kind == "mask":
            return self.one("arith.select", [self.compare(line, number, 2), score, line], type_)
        other = {"number": number, "line": line, "twice": score}.get(kind) or self.get(type_)
        operands = [score, other] if self.chance(0.5) else [other, score]
        return self.one(str(self.pick(_BINARY)), operands, type_)

    def _axis(self) -> int:
        return int(self.rng.integers(0, 2))

    def _reduced(self, value: Value, axis: int) -> Value:
        shape = value.type.shape
        kept = (*shape[:axis], *shape[axis + 1 :])
        op = str(self.pick(("addi", "maxsi", "xori", "first", "last")))
        region = self._region(op, [value.type.element], "tt.reduce.return")
        return self.one("tt.reduce", [value], value.type.shaped(*kept), regions=[region], axis=f"{axis} : i32")
