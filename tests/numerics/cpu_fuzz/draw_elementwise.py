"""Statements that work element by element. In: what is in scope. Out: their ops."""

from __future__ import annotations

from collections.abc import Sequence

from cpu_fuzz.drawing import Drawing
from cpu_fuzz.program import FLOATS, INTEGERS, SMALL_FLOATS, Type, Value

_MATHS = ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "rsqrt")
BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
_SHIFTS = ("shli", "shrsi", "shrui")
_DIVISIONS = ("divsi", "divui", "remsi", "remui")


class Elementwise(Drawing):
    """Arithmetic, comparisons, functions and conversions."""

    def any_type(self, elements: Sequence[str]) -> Type:
        found = self.find(lambda each: each.type.element in elements and each.exact)
        if found is not None and self.chance(0.8):
            return found.type
        shape = () if self.scalars_alone or self.chance(0.2) else self.shape()
        return Type(str(self.pick(elements)), shape)

    def integer(self) -> None:
        type_ = self.any_type(INTEGERS)
        a, b = self.get(type_), self.get(type_)
        kind = self.rng.random()
        if kind < 0.6:
            self.one(f"arith.{self.pick(BINARY)}", [a, b], type_)
        elif kind < 0.75:
            self.one(f"arith.{self.pick(_SHIFTS)}", [a, b], type_)
        elif kind < 0.92:
            divisor = self.one("arith.ori", [b, self.constant(1, type_)], type_, keep=False)
            self.one(f"arith.{self.pick(_DIVISIONS)}", [a, divisor], type_)
        elif type_.element in ("i32", "i64"):
            self.one("tt.mulhiui", [a, b], type_)
        else:
            self.one("math.absi", [a], type_)

    def splat(self) -> None:
        scalar = self.find(lambda each: not each.type.shape)
        if scalar is not None:
            self.one("tt.splat", [scalar], scalar.type.shaped(*self.shape()))

    def comparison(self) -> None:
        kind = self.rng.random()
        if kind < 0.4:
            shape = self.shape()
            index = self.linear(shape)
            if self.chance(0.5):  # near the ends of the range, where it wraps
                far = self.constant(
                    int(self.pick((2**31 - 1 - index.type.count // 2, -(2**31), 40503 * 65521 - 2**32, 5))), index.type
                )  # type: ignore[call-overload]
                index = self.one(f"arith.{self.pick(('addi', 'muli'))}", [index, far], index.type)
            index = self.resize(index, str(self.pick(("i32", "i32", "i64"))))
            limit = self.get(index.type)
            pair = [index, limit] if self.chance(0.7) else [limit, index]
            self.compare(pair[0], pair[1], int(self.rng.integers(0, 10)))
        elif kind < 0.7:
            type_ = self.any_type(("i1", *INTEGERS))
            self.compare(self.get(type_), self.get(type_), int(self.rng.integers(0, 10)))
        elif kind < 0.85:
            type_ = self.any_type(FLOATS)
            self.compare(self.get(type_), self.get(type_), int(self.rng.integers(1, 15)))
        else:
            type_ = self.any_type(("i1",))
            self.one(f"arith.{self.pick(('andi', 'ori', 'xori', 'addi'))}", [self.get(type_), self.get(type_)], type_)

    def selection(self) -> None:
        type_ = self.any_type(("i1", *INTEGERS, *FLOATS))
        condition = self.get(Type("i1", type_.shape if self.chance(0.8) else ()))
        self.one("arith.select", [condition, self.get(type_, False), self.get(type_, False)], type_)

    def floating(self) -> None:
        type_ = self.any_type(FLOATS)
        a, b = self.get(type_), self.get(type_)
        names = ["addf", "subf", "mulf"]
        names += ["divf"] if self.program.signed_zeros else ["maxnumf", "minnumf", "maximumf", "minimumf"]
        kind = self.rng.random()
        if kind < 0.75:
            self.one(f"arith.{self.pick(names)}", [a, b], type_)
        elif kind < 0.85:
            self.one(f"{self.pick(('arith.negf', 'math.absf'))}", [a], type_)
        elif kind < 0.9:
            self.one("arith.remf", [a, b], type_)
        elif kind < 0.94 and not self.program.signed_zeros:
            self.one("tt.clampf", [a, b, self.get(type_)], type_, propagateNan=f"{self.pick((0, 0xFFFF))} : i32")
        elif type_.element in ("f32", "f64"):
            names = ["math.sqrt", "math.floor", "math.ceil", "math.trunc", "math.roundeven"]
            self.one(str(self.pick(names + ["tt.precise_sqrt"] * (type_.element == "f32"))), [a], type_)

    def function(self) -> None:
        """A function whose rounding is not determined; little may be done with the result."""
        type_ = self.any_type(FLOATS)
        result = self.one(f"math.{self.pick(_MATHS)}", [self.get(type_)], type_, exact=False)
        if self.chance(0.5):
            result = self.one(f"arith.{self.pick(('addf', 'subf'))}", [result, self.get(type_, False)], type_)
        if self.chance(0.3) and type_.element != "f64":
            result = self.one("arith.extf", [result], type_.of("f64" if type_.element == "f32" else "f32"))

    def conversion(self) -> None:
        source = self.find(lambda each: each.exact)
        if source is None:
            return
        element, type_ = source.type.element, source.type
        if element in ("i1", *INTEGERS):
            kind = self.rng.random()
            if kind < 0.5:
                self.resize(source, str(self.pick(("i1", *INTEGERS))))
            elif kind < 0.8:
                name = str(self.pick(("arith.sitofp", "arith.uitofp")))
                self.one(name, [source], type_.of(str(self.pick(FLOATS))))
            elif element != "i1":
                same = {"i8": ("f8E4M3FN", "f8E5M2"), "i16": ("f16", "bf16"), "i32": ("f32",), "i64": ("f64",)}[element]
                self.one("tt.bitcast", [source], type_.of(str(self.pick(same))))
        elif element in SMALL_FLOATS:
            self.one("tt.fp_to_fp", [source], type_.of(str(self.pick(FLOATS))))
        else:
            self._convert_float(source)

    def _convert_float(self, source: Value) -> None:
        element, type_ = source.type.element, source.type
        if self.chance(0.4):
            name = str(self.pick(("arith.fptosi", "arith.fptoui")))
            self.one(name, [source], type_.of(str(self.pick(INTEGERS))))
            return
        target = str(self.pick([each for each in (*FLOATS, *SMALL_FLOATS) if each != element]))
        widths = {"f8E4M3FN": 0, "f8E5M2": 0, "f16": 1, "bf16": 1, "f32": 2, "f64": 3}
        if widths[element] == widths[target]:
            return
        if widths[target] > widths[element]:
            self.one("arith.extf", [source], type_.of(target))
        elif target in SMALL_FLOATS or self.chance(0.4):
            self.one("tt.fp_to_fp", [source], type_.of(target), rounding=f"{self.pick((0, 1))} : i32")
        else:
            self.one("arith.truncf", [source], type_.of(target))
