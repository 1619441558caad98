"""Elementwise ops on forms. In: an op and its operands' forms at one place. Out: its results' forms there.

Integer and pointer arithmetic keeps affine forms symbolic; the rest becomes one op on scalars or vectors. Affine
integers are exact modulo their width. Only what addresses memory is taken not to wrap when it is widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from precast.engines.cpu import division, floats, maths
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import ELEMENT_BITS, Op
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Affine, Form, Offsets, Plain, Scalar, Vector, memory_type

# A constant stride beyond this is hashing, not indexing: it may wrap.
_LARGEST_STRIDE = 1 << 24
UNSIGNED_EXTENSIONS = ("arith.extui", "arith.index_castui")
_INTEGER = ("andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui")
_FLOAT = (
    "addf", "subf", "mulf", "divf", "maxnumf", "minnumf", "maximumf", "minimumf",
)  # fmt: skip
MIRRORED = {
    "slt": "sgt",
    "sle": "sge",
    "ult": "ugt",
    "ule": "uge",
    "sgt": "slt",
    "sge": "sle",
    "ugt": "ult",
    "uge": "ule",
}


def _assumes(form: Form) -> tuple[Affine, ...]:
    return form.assumes if isinstance(form, Affine) else ()


def stays_affine(operation: Op, form: Form) -> bool:
    """Whether widening an index gives an affine form, as long as the index does not wrap."""
    if operation.name not in ("arith.extsi", "arith.index_cast") or not isinstance(form, Affine):
        return False
    return form.stride.constant is None or abs(form.stride.constant) <= _LARGEST_STRIDE


class Arithmetic:
    """Lowers elementwise ops with one builder for one machine; `width` is the number of lanes of this place."""

    def __init__(self, builder: Builder, machine: Machine) -> None:
        self.b = builder
        self.machine = machine

    def apply(self, operation: Op, forms: Sequence[Form], width: int) -> list[Form]:
        """The forms of `operation`'s results."""
        dialect, _, name = operation.name.partition(".")
        special = _SPECIAL.get(operation.name)
        if special:
            result = special(self, operation, list(forms), width)
            return result if isinstance(result, list) else [result]
        if dialect == "arith" and name in _INTEGER:
            return [self._bitwise(name, forms[0], forms[1], width)]
        if dialect == "arith" and name in _FLOAT:
            return [self.float_op(name, self.plain(forms, width))]
        if dialect == "math" or operation.name in maths.NAMED:
            return [maths.lower(self.b, self.machine, operation, self.plain(forms, width), width)]
        raise refuse(operation, "the op is not known to it")

    def plain(self, forms: Sequence[Form], width: int) -> list[Plain]:
        """All as scalars when all are, else all as vectors."""
        scalars = [form for form in forms if isinstance(form, Scalar)]
        return list(scalars) if len(scalars) == len(forms) else [self.b.vector(form, width) for form in forms]

    # Floats.

    def float_op(self, name: str, operands: Sequence[Plain]) -> Plain:
        """A float op; formats that are kept as bits are widened, computed in f32 and rounded."""
        element = operands[0].element
        if floats.by_hand(self.b, element):
            wide = [floats.widen(self.b, each) for each in operands]
            return floats.narrow(self.b, self.float_op(name, wide), element)
        return self.b.binary(name, operands[0], operands[1])

    def negate(self, operation: Op, forms: list[Form], width: int) -> Form:
        x = self.b.plain(forms[0], width)
        if x.element in floats.HAND:
            sign = 1 << (ELEMENT_BITS[x.element] - 1)
            return self._retag(self.b.binary("xori", x, floats.filled(self.b, x, sign, x.element)), x.element)
        if x.element == "f16":
            bits = floats.bits_of(self.b, x)
            flipped = self.b.binary("xori", bits, floats.filled(self.b, bits, 1 << 15, "i16"))
            return self.b.cast("arith.bitcast", flipped, "f16")
        return self.b.like(x, f"arith.negf {x.name} : {x.type}")

    def _retag(self, x: Plain, element: str) -> Plain:
        return Vector(x.name, element, x.width) if isinstance(x, Vector) else Scalar(x.name, element)

    def compare_floats(self, operation: Op, forms: list[Form], width: int) -> Form:
        a, b = (floats.widen(self.b, each) for each in self.plain(forms, width))
        predicate = operation.attributes["predicate"]
        return self.b.like(a, f"arith.cmpf {predicate}, {a.name}, {b.name} : {a.type}", "i1")

    # Integers.

    def add(self, operation: Op, forms: list[Form], width: int) -> Form:
        return self._linear("addi", forms[0], forms[1], width)

    def subtract(self, operation: Op, forms: list[Form], width: int) -> Form:
        return self._linear("subi", forms[0], forms[1], width)

    def _linear(self, name: str, x: Form, y: Form, width: int) -> Form:
        if isinstance(x, (Scalar, Affine)) and isinstance(y, (Scalar, Affine)):
            if isinstance(x, Scalar) and isinstance(y, Scalar):
                return self.b.binary(name, x, y)
            zero = self.b.constant(0, x.element)
            x_base, x_stride = (x.base, x.stride) if isinstance(x, Affine) else (x, zero)
            y_base, y_stride = (y.base, y.stride) if isinstance(y, Affine) else (y, zero)
            base = self.b.integer(name, x_base, y_base)
            stride = self.b.integer(name, x_stride, y_stride)
            return base if stride.constant == 0 else Affine(base, stride, "", (*_assumes(x), *_assumes(y)))
        return self.b.binary(name, self.b.vector(x, width), self.b.vector(y, width))

    def multiply(self, operation: Op, forms: list[Form], width: int) -> Form:
        x, y = forms
        if isinstance(x, Scalar) and isinstance(y, Affine):
            x, y = y, x
        if isinstance(x, Affine) and isinstance(y, Scalar):
            base, stride = self.b.integer("muli", x.base, y), self.b.integer("muli", x.stride, y)
            return base if stride.constant == 0 else Affine(base, stride, "", x.assumes)
        a, b = self.plain([x, y], width)
        return self.b.binary("muli", a, b)

    def shift_left(self, operation: Op, forms: list[Form], width: int) -> Form:
        x, y = forms
        if isinstance(x, Affine) and isinstance(y, Scalar) and y.constant is not None:
            amount = int(y.constant)
            factor = 1 << amount if 0 <= amount < ELEMENT_BITS[x.element] else 0
            return self.multiply(operation, [x, self.b.constant(factor, x.element)], width)
        return self._shift("shli", x, y, width)

    def shift_right(self, operation: Op, forms: list[Form], width: int) -> Form:
        return self._shift(operation.name[6:], forms[0], forms[1], width)

    def _shift(self, name: str, x: Form, y: Form, width: int) -> Form:
        """A shift; amounts past the width give zero or the sign, never poison."""
        value, amount = self.plain([x, y], width)
        bits = ELEMENT_BITS[value.element]
        if isinstance(y, Scalar) and y.constant is not None and 0 <= y.constant < bits:
            return self.b.binary(name, value, amount)
        limit = floats.filled(self.b, amount, bits, amount.element)
        inside = self.b.compare("ult", amount, limit)
        last = floats.filled(self.b, amount, bits - 1, amount.element)
        safe = self.b.plain(self.b.select(inside, amount, last, width), width)
        shifted = self.b.binary(name, value, safe)
        if name == "shrsi":
            return shifted
        return self.b.select(inside, shifted, floats.filled(self.b, value, 0, value.element), width)

    def _bitwise(self, name: str, x: Form, y: Form, width: int) -> Form:
        if name in ("andi", "ori") and x.element == "i1":
            for known, other in ((x, y), (y, x)):
                if isinstance(known, Scalar) and known.constant is not None:
                    keeps = bool(known.constant) == (name == "andi")
                    return other if keeps else known
        a, b = self.plain([x, y], width)
        return self.b.binary(name, a, b)

    def compare(self, operation: Op, forms: list[Form], width: int) -> Form:
        """A comparison. Values that step alike are equal where their bases are; which is less, wrapping decides."""
        predicate = operation.attributes["predicate"]
        x, y = forms
        if isinstance(x, Affine) and isinstance(y, Affine) and x.stride == y.stride and predicate in ("eq", "ne"):
            x, y = x.base, y.base
        a, b = self.plain([x, y], width)
        return self.b.compare(predicate, a, b)

    def prefix_count(self, predicate: str, x: Affine, y: Scalar) -> Scalar:
        """How many lanes from the first on satisfy `x predicate y` (`slt`, `sle`, and `ult`, `ule` where x ≥ 0).

        An i64 that may leave the lanes' range; the difference of two i64 is kept from overflowing.
        """
        base, limit = self.b.wide(x.base), self.b.wide(y, signed=predicate[0] == "s")
        count = self.b.integer("subi", limit, base)
        if x.element == "i64":
            above = self.b.compare("sge", limit, base)
            distance = self.b.integer("minui", count, 1 << 62)
            chosen = self.b.select(above, distance, self.b.index(-1), 1)
            assert isinstance(chosen, Scalar)
            count = chosen
        return self.b.integer("addi", count, 1) if predicate.endswith("le") else count

    def extend(self, operation: Op, forms: list[Form], width: int) -> Form:
        signed = operation.name not in UNSIGNED_EXTENSIONS
        element = operation.result.type.element
        return self.b.resize(self.b.plain(forms[0], width), element, signed)

    def extend_address(self, operation: Op, x: Affine) -> Form:
        """A widened index that stays affine: what addresses memory is taken not to wrap."""
        element = operation.result.type.element
        base, stride = self.b.resize(x.base, element), self.b.resize(x.stride, element)
        assert isinstance(base, Scalar)
        assert isinstance(stride, Scalar)
        return Affine(base, stride, "", (*x.assumes, x))

    def truncate(self, operation: Op, forms: list[Form], width: int) -> Form:
        element = operation.result.type.element
        x = forms[0]
        if isinstance(x, Affine) and ELEMENT_BITS[element] >= 32:
            base, stride = self.b.resize(x.base, element), self.b.resize(x.stride, element)
            assert isinstance(base, Scalar)
            assert isinstance(stride, Scalar)
            return Affine(base, stride, "", x.assumes)
        return self.b.resize(self.b.plain(x, width), element)

    def choose(self, operation: Op, forms: list[Form], width: int) -> Form:
        return self.b.select(forms[0], forms[1], forms[2], width)

    def divide(self, operation: Op, forms: list[Form], width: int) -> Form:
        a, b = self.plain(forms, width)
        return division.divide(self.b, operation.name[6:], a, b)

    def multiply_high(self, operation: Op, forms: list[Form], width: int) -> list[Form]:
        """`tt.mulhiui`, and the extended products: low and high halves."""
        a, b = self.plain(forms, width)
        signed = "mulsi" in operation.name
        if ELEMENT_BITS[a.element] < 64:
            low, high = self._wide_product(a, b, signed)
        else:
            name = self.b.fresh()
            kind = "mulsi_extended" if signed else "mului_extended"
            self.b.line(f"{name}:2 = arith.{kind} {a.name}, {b.name} : {a.type}")
            low, high = self.b.results(name, [a, a])
        return [high] if operation.name == "tt.mulhiui" else [low, high]

    def _wide_product(self, a: Plain, b: Plain, signed: bool) -> tuple[Plain, Plain]:
        bits = ELEMENT_BITS[a.element]
        x, y = self.b.resize(a, "i64", signed), self.b.resize(b, "i64", signed)
        product = self.b.binary("muli", x, y)
        high = self.b.binary("shrui", product, floats.filled(self.b, product, bits, "i64"))
        return self.b.resize(product, a.element), self.b.resize(high, a.element)

    # Conversions.

    def to_float(self, operation: Op, forms: list[Form], width: int) -> Form:
        element = operation.result.type.element
        x = self.b.plain(forms[0], width)
        if x.element == "i1" and operation.name == "arith.sitofp":
            x = self.b.resize(x, "i32")
        target = element if element in ("f16", "f32", "f64") else "f32"
        if element == "f16" or (element in floats.HAND and ELEMENT_BITS[x.element] > 16):
            target = "f64"  # exact for i32, so that the rounding to the small format is the only one
        return floats.convert(self.b, self.b.cast(operation.name, x, target), element)

    def to_integer(self, operation: Op, forms: list[Form], width: int) -> Form:
        """A saturating conversion: NaN gives 0."""
        element = operation.result.type.element
        x = floats.widen(self.b, self.b.plain(forms[0], width))
        kind = "fptosi" if operation.name.endswith("fptosi") else "fptoui"
        return division.saturate(self.b, x, element, kind)

    def convert_float(self, operation: Op, forms: list[Form], width: int) -> Form:
        x = self.b.plain(forms[0], width)
        element = operation.result.type.element
        if operation.attributes.get("rounding") in ("rtz", 0) and "rounding" in operation.attributes:
            return floats.truncate(self.b, x, element)
        return floats.convert(self.b, x, element)

    def bitcast(self, operation: Op, forms: list[Form], width: int) -> Form:
        result = operation.result.type
        form = forms[0]
        if result.is_pointer:
            return self._bitcast_pointer(form, result.pointee, width)
        x = self.b.plain(form, width)
        source = self._retag(x, x.type if isinstance(x, Scalar) else x.type.split("x")[1][:-1])
        target = self._retag(x, result.element)
        if source.type == target.type:
            return target
        return self.b.cast("arith.bitcast", source, result.element)

    def _bitcast_pointer(self, form: Form, pointee: str, width: int) -> Form:
        """Offsets are in elements, so a pointer to another element size becomes a vector of pointers."""
        if isinstance(form, (Affine, Offsets)):
            if ELEMENT_BITS[form.pointee] // 8 == ELEMENT_BITS[pointee] // 8:
                return (
                    Affine(form.base, form.stride, pointee)
                    if isinstance(form, Affine)
                    else Offsets(form.base, form.offsets, pointee)
                )
            return self.b.vector(form, width)
        return form

    def pointer_cast(self, operation: Op, forms: list[Form], width: int) -> Form:
        x = self.b.plain(forms[0], width)
        if operation.name == "tt.ptr_to_int":
            return self.b.cast("llvm.ptrtoint", x, operation.result.type.element)
        return self.b.cast("llvm.inttoptr", x, "ptr")

    def add_pointer(self, operation: Op, forms: list[Form], width: int) -> Form:
        pointee = operation.result.type.pointee
        pointer, offset = forms
        if isinstance(offset, Vector):
            return self._add_offsets(pointer, offset, pointee, width)
        if isinstance(offset, Affine):
            moved = self._add_uniform(pointer, offset.base, pointee)
            return self._add_stride(moved, self.b.wide(offset.stride), pointee, width)
        assert isinstance(offset, Scalar)
        return self._add_uniform(pointer, offset, pointee)

    def _add_uniform(self, pointer: Form, offset: Scalar, pointee: str) -> Form:
        if isinstance(pointer, Vector):
            types = f"({pointer.type}, {offset.type}) -> {pointer.type}, {memory_type(pointee)}"
            return self.b.like(pointer, f"llvm.getelementptr {pointer.name}[{offset.name}] : {types}")
        base = pointer if isinstance(pointer, Scalar) else pointer.base
        moved = Scalar(self.b.offset(base.name, offset, pointee), "ptr")
        if isinstance(pointer, Affine):
            return Affine(moved, pointer.stride, pointee)
        return Offsets(moved, pointer.offsets, pointee) if isinstance(pointer, Offsets) else moved

    def _add_stride(self, pointer: Form, stride: Scalar, pointee: str, width: int) -> Form:
        if isinstance(pointer, Scalar):
            return Affine(pointer, stride, pointee)
        if isinstance(pointer, Affine):
            total = self.b.integer("addi", pointer.stride, stride)
            return pointer.base if total.constant == 0 else Affine(pointer.base, total, pointee)
        steps = self.b.vector(Affine(self.b.index(0), stride), width)
        return self._add_offsets(pointer, steps, pointee, width)

    def _add_offsets(self, pointer: Form, offsets: Vector, pointee: str, width: int) -> Form:
        if isinstance(pointer, Scalar):
            return Offsets(pointer, offsets, pointee)
        if isinstance(pointer, Vector):
            types = f"({pointer.type}, {offsets.type}) -> {pointer.type}, {memory_type(pointee)}"
            return self.b.like(pointer, f"llvm.getelementptr {pointer.name}[{offsets.name}] : {types}")
        wide = self.b.resize(offsets, "i64")
        if isinstance(pointer, Affine):
            other: Plain = self.b.vector(Affine(self.b.index(0), pointer.stride), width)
        else:
            assert isinstance(pointer, Offsets)
            other = self.b.resize(pointer.offsets, "i64")
        total = self.b.binary("addi", wide, other)
        assert isinstance(total, Vector)
        return Offsets(pointer.base, total, pointee)

    def clamp(self, operation: Op, forms: list[Form], width: int) -> Form:
        """min(max(x, low), high); NaN stays only when the op says so."""
        word = operation.attributes.get("propagateNan", "none")
        kept = word in ("all", 0xFFFF)
        x = self.float_op("maximumf" if kept else "maxnumf", self.plain(forms[:2], width))
        return self.float_op("minimumf" if kept else "minnumf", self.plain([x, forms[2]], width))


_SPECIAL: dict[str, Callable[[Arithmetic, Op, list[Form], int], Form | list[Form]]] = {
    "arith.addi": Arithmetic.add,
    "arith.subi": Arithmetic.subtract,
    "arith.muli": Arithmetic.multiply,
    "arith.shli": Arithmetic.shift_left,
    "arith.shrsi": Arithmetic.shift_right,
    "arith.shrui": Arithmetic.shift_right,
    "arith.divsi": Arithmetic.divide,
    "arith.divui": Arithmetic.divide,
    "arith.remsi": Arithmetic.divide,
    "arith.remui": Arithmetic.divide,
    "arith.ceildivsi": Arithmetic.divide,
    "arith.floordivsi": Arithmetic.divide,
    "arith.cmpi": Arithmetic.compare,
    "arith.cmpf": Arithmetic.compare_floats,
    "arith.select": Arithmetic.choose,
    "arith.negf": Arithmetic.negate,
    "arith.extsi": Arithmetic.extend,
    "arith.extui": Arithmetic.extend,
    "arith.trunci": Arithmetic.truncate,
    "arith.index_cast": Arithmetic.extend,
    "arith.index_castui": Arithmetic.extend,
    "arith.extf": Arithmetic.convert_float,
    "arith.truncf": Arithmetic.convert_float,
    "tt.fp_to_fp": Arithmetic.convert_float,
    "arith.sitofp": Arithmetic.to_float,
    "arith.uitofp": Arithmetic.to_float,
    "arith.fptosi": Arithmetic.to_integer,
    "arith.fptoui": Arithmetic.to_integer,
    "arith.bitcast": Arithmetic.bitcast,
    "tt.bitcast": Arithmetic.bitcast,
    "tt.ptr_to_int": Arithmetic.pointer_cast,
    "tt.int_to_ptr": Arithmetic.pointer_cast,
    "tt.addptr": Arithmetic.add_pointer,
    "tt.mulhiui": Arithmetic.multiply_high,
    "arith.mului_extended": Arithmetic.multiply_high,
    "arith.mulsi_extended": Arithmetic.multiply_high,
    "tt.clampf": Arithmetic.clamp,
    "tt.precise_divf": lambda self, op, forms, width: self.float_op("divf", self.plain(forms, width)),
    "tt.approx_divf": lambda self, op, forms, width: self.float_op("divf", self.plain(forms, width)),
    "arith.remf": lambda self, op, forms, width: maths.remainder(self.b, self.plain(forms, width)),
}
