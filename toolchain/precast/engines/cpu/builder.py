"""Writes MLIR text: SSA names, constants, structured control. In: forms. Out: the text of one function's body.

Integer arithmetic on known constants is folded here, which keeps the text small; everything else is LLVM's to clean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from precast.engines.cpu.ir import ELEMENT_BITS
from precast.engines.cpu.values import Form, Offsets, Plain, Scalar, Vector, memory_type, register_type

Body = Callable[[Scalar, list[Plain]], Sequence[Plain]]
Repeated = Callable[[list[Plain]], Sequence[Plain]]
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b, "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b, "minsi": min, "maxsi": max,
}  # fmt: skip


def wrap(value: int, element: str) -> int:
    """`value` as a signed integer of the element's width."""
    bits = ELEMENT_BITS[element]
    if bits == 1:
        return value & 1
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_FLOAT_FORMATS = {"f16": ("<H", "<e", 4), "f32": ("<I", "<f", 8), "f64": ("<Q", "<d", 16)}


def round_float(value: float, element: str) -> float:
    """`value` as the format holds it: rounded to nearest even, infinite where it is too large."""
    _, form, _ = _FLOAT_FORMATS[element]
    try:
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float_literal(value: float, element: str) -> str:
    """An exact MLIR literal."""
    bits, form, digits = _FLOAT_FORMATS[element]
    return f"0x{struct.unpack(bits, struct.pack(form, round_float(value, element)))[0]:0{digits}X}"


class Builder:
    """The text of one function, written in order; constants go to its entry block."""

    def __init__(self, half: bool) -> None:
        self.half = half  # whether the machine converts f16
        self.lines: list[str] = []
        self.prologue: list[str] = []
        self.declarations: dict[str, str] = {}
        self.globals: list[str] = []  # strings, and functions of any number of arguments
        self.cuts: list[int] = []  # the lines before which the text may go on in another function
        self.crossing: dict[str, str] = {}  # what is used on both sides of a cut, with its type
        self._constants: dict[tuple[str, str], str] = {}
        self._count = 0
        self._indent = 2

    # Text.

    def line(self, text: str) -> None:
        self.lines.append("  " * self._indent + text)

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def emit(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def scalar(self, text: str, element: str) -> Scalar:
        return Scalar(self.emit(text), element)

    def like(self, form: Plain, text: str, element: str | None = None) -> Plain:
        """Emits an op whose result has the form of `form`, with another element if given."""
        element = element or form.element
        name = self.emit(text)
        return Vector(name, element, form.width) if isinstance(form, Vector) else Scalar(name, element)

    def declare(self, symbol: str, signature: str) -> None:
        """An external function, declared once in the module."""
        self.declarations[symbol] = signature

    def declare_variadic(self, symbol: str, fixed: str) -> None:
        """An external function that takes arguments of the types `fixed` and any others, and returns an i32."""
        line = f"  llvm.func @{symbol}({fixed}, ...) -> i32"
        if line not in self.globals:
            self.globals.append(line)

    def text(self, text: str) -> str:
        """The address of a constant string, which ends with a zero."""
        name = f"text{len(self.globals)}"
        data = text.encode() + b"\0"
        literal = "".join(f"\\{byte:02X}" for byte in data)
        type_ = f"!llvm.array<{len(data)} x i8>"
        self.globals.append(f'  llvm.mlir.global internal constant @{name}("{literal}") : {type_}')
        return self.emit(f"llvm.mlir.addressof @{name} : !llvm.ptr")

    # Constants.

    @property
    def constant_names(self) -> list[str]:
        """The names that the lines of the prologue define."""
        return list(self._constants.values())

    def _constant(self, literal: str, type_: str) -> str:
        key = (literal, type_)
        if key not in self._constants:
            self._constants[key] = self.fresh()
            typed = literal if type_ == "i1" else f"{literal} : {type_}"
            self.prologue.append(f"    {self._constants[key]} = arith.constant {typed}")
        return self._constants[key]

    def constant(self, value: int | float, element: str) -> Scalar:
        """A scalar constant; a `bf16` or 8-bit float is given as its bits."""
        if element in ("f16", "f32", "f64"):
            literal = float_literal(float(value), element)
            return Scalar(self._constant(literal, element), element, round_float(float(value), element))
        value = wrap(int(value), element if element in ELEMENT_BITS else "i8")
        literal = ("false", "true")[value] if element == "i1" else str(value)
        return Scalar(self._constant(literal, register_type(element)), element, value)

    def index(self, value: int) -> Scalar:
        return self.constant(value, "i64")

    def dense(self, values: Sequence[int | float], element: str) -> Vector:
        """A constant vector."""
        return self._dense([self._literal(value, element) for value in values], element, len(values))

    def filled(self, value: int | float, element: str, width: int) -> Vector:
        """A constant vector of one value."""
        return self._dense([self._literal(value, element)], element, width)

    def _dense(self, texts: list[str], element: str, width: int) -> Vector:
        literal = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return Vector(self._constant(f"dense<{literal}>", f"vector<{width}x{register_type(element)}>"), element, width)

    def _literal(self, value: int | float, element: str) -> str:
        if element in ("f16", "f32", "f64"):
            return float_literal(float(value), element)
        number = wrap(int(value), element)
        return ("false", "true")[number] if element == "i1" else str(number)

    def iota(self, width: int, element: str) -> Vector:
        return self.dense(range(width), element)

    def zero(self, element: str, width: int) -> Plain:
        """Zero bits, in as many lanes as `width` says (1: a scalar)."""
        null = "llvm.mlir.zero : !llvm.ptr"
        scalar = self.scalar(null, "ptr") if element == "ptr" else self.constant(0, element)
        return scalar if width == 1 else self.vector(scalar, width)

    # Forms.

    def vector(self, form: Form, width: int) -> Vector:
        """Any form as a vector of `width` lanes."""
        if isinstance(form, Vector):
            return form
        if isinstance(form, Scalar):
            return Vector(
                self.emit(f"vector.broadcast {form.name} : {form.type} to vector<{width}x{form.type}>"),
                form.element, width,
            )  # fmt: skip
        if isinstance(form, Offsets):
            return self._gep_vector(form.base, form.offsets, form.pointee)
        if form.element == "ptr":
            steps = self.binary("muli", self.iota(width, "i64"), self.vector(form.stride, width))
            assert isinstance(steps, Vector)
            return self._gep_vector(form.base, steps, form.pointee)
        lanes = self.iota(width, form.element)
        distances = lanes if form.stride.constant == 1 else self.binary("muli", lanes, form.stride)
        result = self.binary("addi", self.vector(form.base, width), distances)
        assert isinstance(result, Vector)
        return result

    def _gep_vector(self, base: Scalar, offsets: Vector, pointee: str) -> Vector:
        types = f"(!llvm.ptr, {offsets.type}) -> vector<{offsets.width}x!llvm.ptr>, {memory_type(pointee)}"
        return Vector(self.emit(f"llvm.getelementptr {base.name}[{offsets.name}] : {types}"), "ptr", offsets.width)

    def plain(self, form: Form, width: int) -> Plain:
        """A scalar as it is, anything else as a vector."""
        return form if isinstance(form, Scalar) else self.vector(form, width)

    def match(self, first: Form, second: Form) -> tuple[Plain, Plain]:
        """Both as scalars, or both as vectors."""
        if isinstance(first, Scalar) and isinstance(second, Scalar):
            return first, second
        width = next(form.width for form in (first, second) if isinstance(form, Vector))
        return self.vector(first, width), self.vector(second, width)

    # Arithmetic.

    def binary(self, mnemonic: str, first: Form, second: Form) -> Plain:
        """An `arith` op on two operands of one element type (integer, or f16, f32, f64)."""
        a, b = self.match(first, second)
        folded = self._fold(mnemonic, a, b)
        return folded or self.like(a, f"arith.{mnemonic} {a.name}, {b.name} : {a.type}")

    def _fold(self, mnemonic: str, a: Plain, b: Plain) -> Plain | None:
        if (
            not (isinstance(a, Scalar) and isinstance(b, Scalar))
            or a.element.startswith("f")
            or mnemonic not in _FOLDED
            or (a.element == "i1" and mnemonic in ("minsi", "maxsi"))
        ):
            return None
        if a.constant is not None and b.constant is not None:
            return self.constant(_FOLDED[mnemonic](int(a.constant), int(b.constant)), a.element)
        if b.constant == 0 and mnemonic in ("addi", "subi", "ori", "xori"):
            return a
        if a.constant == 0 and mnemonic in ("addi", "ori", "xori"):
            return b
        if a.constant == 0 and mnemonic in ("muli", "andi"):
            return a
        if b.constant == 0 and mnemonic in ("muli", "andi"):
            return b
        if mnemonic == "muli":
            return b if a.constant == 1 else a if b.constant == 1 else None
        if a.element == "i1" and mnemonic == "andi":
            return b if a.constant else a if b.constant else None
        if a.element == "i1" and mnemonic == "ori":
            return a if a.constant else b if b.constant else None
        return None

    def integer(self, mnemonic: str, a: Scalar, b: Scalar | int) -> Scalar:
        """`binary` on scalars."""
        other = self.constant(b, a.element) if isinstance(b, int) else b
        result = self.binary(mnemonic, a, other)
        assert isinstance(result, Scalar)
        return result

    def compare(self, predicate: str, first: Form, second: Form) -> Plain:
        a, b = self.match(first, second)
        if a.element == "ptr":
            a, b = self.cast("llvm.ptrtoint", a, "i64"), self.cast("llvm.ptrtoint", b, "i64")
        mnemonic = "cmpf" if a.element in ("f16", "f32", "f64") else "cmpi"
        if isinstance(a, Scalar) and isinstance(b, Scalar) and mnemonic == "cmpi":
            known = compare_constants(predicate, a, b)
            if known is not None:
                return self.constant(int(known), "i1")
        return self.like(a, f"arith.{mnemonic} {predicate}, {a.name}, {b.name} : {a.type}", "i1")

    def select(self, condition: Form, first: Form, second: Form, width: int) -> Form:
        """`first` where the condition holds, else `second`."""
        if isinstance(condition, Scalar) and condition.constant is not None:
            return first if condition.constant else second
        if isinstance(condition, Scalar) and isinstance(first, Scalar) and isinstance(second, Scalar):
            a: Plain = first
            b: Plain = second
        else:
            a, b = self.vector(first, width), self.vector(second, width)
        if isinstance(condition, Scalar):
            return self.like(a, f"arith.select {condition.name}, {a.name}, {b.name} : {a.type}")
        mask = self.vector(condition, width)
        return self.like(a, f"arith.select {mask.name}, {a.name}, {b.name} : {mask.type}, {a.type}")

    def cast(self, operation: str, form: Plain, element: str) -> Plain:
        """A conversion op with dialect prefix; nothing when the register type stays."""
        if isinstance(form, Scalar) and form.constant is not None and operation.startswith("arith.ext"):
            return self.constant(_extended(operation, form), element)
        target = (
            f"vector<{form.width}x{register_type(element)}>" if isinstance(form, Vector) else register_type(element)
        )
        return self.like(form, f"{operation} {form.name} : {form.type} to {target}", element)

    def resize(self, form: Plain, element: str, signed: bool = True) -> Plain:
        """An integer extended or truncated to another width."""
        old, new = ELEMENT_BITS[form.element], ELEMENT_BITS[element]
        if old == new:
            return form
        if isinstance(form, Scalar) and form.constant is not None and new < old:
            return self.constant(int(form.constant), element)
        return self.cast("arith.trunci" if new < old else "arith.extsi" if signed else "arith.extui", form, element)

    def wide(self, scalar: Scalar, signed: bool = True) -> Scalar:
        """An integer as i64."""
        result = self.resize(scalar, "i64", signed)
        assert isinstance(result, Scalar)
        return result

    def clamp(self, count: Scalar, upper: int) -> Scalar:
        """`count` within [0, upper]."""
        return self.integer("maxsi", self.integer("minsi", count, upper), 0)

    def offset(self, pointer: str, count: Scalar, element: str) -> str:
        """The pointer `count` elements further on."""
        if count.constant == 0:
            return pointer
        types = f"(!llvm.ptr, {count.type}) -> !llvm.ptr, {memory_type(element)}"
        return self.emit(f"llvm.getelementptr {pointer}[{count.name}] : {types}")

    def extract(self, vector: Vector, lane: int) -> Scalar:
        return self.scalar(
            f"vector.extract {vector.name}[{lane}] : {register_type(vector.element)} from {vector.type}", vector.element
        )

    def from_elements(self, items: Sequence[Scalar]) -> Vector:
        names = ", ".join(item.name for item in items)
        type_ = f"vector<{len(items)}x{items[0].type}>"
        return Vector(self.emit(f"vector.from_elements {names} : {type_}"), items[0].element, len(items))

    def shuffle(self, first: Vector, second: Vector, lanes: Sequence[int]) -> Vector:
        chosen = ", ".join(map(str, lanes))
        text = f"vector.shuffle {first.name}, {second.name} [{chosen}] : {first.type}, {second.type}"
        return Vector(self.emit(text), first.element, len(lanes))

    def joined(self, parts: Sequence[Vector]) -> Vector:
        """As many vectors as a power of two, behind one another."""
        while len(parts) > 1:
            parts = [self.shuffle(x, y, range(2 * x.width)) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def hidden(self, form: Plain) -> Plain:
        """The same value, of which LLVM does not know what it is made of."""
        register = "x" if isinstance(form, Vector) else "r"
        return self.like(form, f'llvm.inline_asm "", "={register},0" {form.name} : ({form.type}) -> {form.type}')

    # Control.

    def loop(self, lower: Scalar, upper: Scalar, step: int, carried: Sequence[Plain], body: Body) -> list[Plain]:
        """A counted loop over i64; `body` gets the index and the carried values and returns the next ones."""
        index = Scalar(self.fresh(), "i64")
        return self.loop_named(index, lower, upper, step, carried, body)

    def loop_named(
        self, index: Scalar, lower: Scalar, upper: Scalar, step: int | Scalar, carried: Sequence[Plain], body: Body
    ) -> list[Plain]:
        """`loop` with the index's name given, for cursors that exist before the loop; bounds have the index's type."""
        stride = self.constant(step, index.element) if isinstance(step, int) else step
        head = f"scf.for {index.name} = {lower.name} to {upper.name} step {stride.name}"
        inside = [self._renamed(each) for each in carried]
        results = self._open(head, carried, inside, f" : {index.type}")
        self._indent += 1
        self._yield(body(index, inside))
        self._indent -= 1
        self.line("}")
        return results

    def repeat(self, carried: Sequence[Plain], test: Callable[[list[Plain]], Scalar], body: Repeated) -> list[Plain]:
        """A loop that goes on while `test` of the carried values holds; the values with which it did not."""
        asked, inside = ([self._renamed(each) for each in carried] for _ in range(2))
        name = self.fresh()
        count = f":{len(carried)}" if len(carried) > 1 else ""
        pairs = ", ".join(f"{new.name} = {old.name}" for new, old in zip(asked, carried, strict=True))
        types = ", ".join(each.type for each in carried)
        self.line(f"{name}{count} = scf.while ({pairs}) : ({types}) -> ({types}) {{")
        self._indent += 1
        holds = test(asked)
        self.line(f"scf.condition({holds.name}) {', '.join(each.name for each in asked)} : {types}")
        self._indent -= 1
        self.line("} do {")
        self.line(f"^bb0({', '.join(f'{each.name}: {each.type}' for each in inside)}):")
        self._inner(lambda: body(inside))
        self.line("}")
        return self.results(name, carried)

    def _renamed(self, form: Plain) -> Plain:
        name = self.fresh()
        return Vector(name, form.element, form.width) if isinstance(form, Vector) else Scalar(name, form.element)

    def _open(self, head: str, carried: Sequence[Plain], inside: Sequence[Plain], tail: str) -> list[Plain]:
        if not carried:
            self.line(f"{head}{tail} {{")
            return []
        name = self.fresh()
        pairs = ", ".join(f"{new.name} = {old.name}" for new, old in zip(inside, carried, strict=True))
        types = ", ".join(each.type for each in carried)
        count = f":{len(carried)}" if len(carried) > 1 else ""
        self.line(f"{name}{count} = {head} iter_args({pairs}) -> ({types}){tail} {{")
        return self.results(name, carried)

    def results(self, name: str, like: Sequence[Plain]) -> list[Plain]:
        """The results of a multi-result op, formed as `like`."""
        names = [f"{name}#{i}" for i in range(len(like))] if len(like) > 1 else [name]
        return [
            Vector(n, each.element, each.width) if isinstance(each, Vector) else Scalar(n, each.element)
            for n, each in zip(names, like, strict=True)
        ]

    def _yield(self, values: Sequence[Plain]) -> None:
        if values:
            self.line(f"scf.yield {', '.join(v.name for v in values)} : {', '.join(v.type for v in values)}")

    def branch(
        self,
        condition: Scalar,
        like: Sequence[Plain],
        then: Callable[[], Sequence[Plain]],
        otherwise: Callable[[], Sequence[Plain]] | None = None,
    ) -> list[Plain]:
        """`if`, with results formed as `like`."""
        head = f"scf.if {condition.name}"
        name = ""
        if like:
            name = self.fresh()
            count = f":{len(like)}" if len(like) > 1 else ""
            head = f"{name}{count} = {head} -> ({', '.join(each.type for each in like)})"
        self.line(f"{head} {{")
        self._inner(then)
        if otherwise:
            self.line("} else {")
            self._inner(otherwise)
        self.line("}")
        return self.results(name, like) if like else []

    def _inner(self, body: Callable[[], Sequence[Plain]]) -> None:
        self._indent += 1
        self._yield(body())
        self._indent -= 1


def _extended(operation: str, form: Scalar) -> int | float:
    """The value of a constant after `arith.extf`, `extui` or `extsi`."""
    assert form.constant is not None
    if operation == "arith.extf":
        return form.constant
    bits = ELEMENT_BITS[form.element]
    value = int(form.constant) & ((1 << bits) - 1)
    return value if operation == "arith.extui" else value - ((value >> (bits - 1)) << bits)


def compare_constants(predicate: str, a: Scalar, b: Scalar) -> bool | None:
    """The answer to an integer comparison of two known values, None when it is not known."""
    if a.constant is None or b.constant is None or math.isnan(a.constant) or math.isnan(b.constant):
        return None
    x, y = int(a.constant), int(b.constant)
    if predicate[0] == "u":
        mask = (1 << ELEMENT_BITS[a.element]) - 1
        x, y = x & mask, y & mask
    elif a.element == "i1":  # one bit, which is the sign
        x, y = -x, -y
    comparisons = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return comparisons[predicate[-2:]]
