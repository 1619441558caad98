"""What pretty TTIR means op by op. In: a `Reader` standing after an op's name. Out: the op filled in, result types.

`normalize` makes generic and pretty forms equal: predicates, axes and kinds are words or plain integers in attributes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from precast.engines.cpu.ir import ELEMENT_BITS, Block, Dense, Op, Type

if TYPE_CHECKING:
    from precast.engines.cpu.reader import Reader

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
ATOMIC_KINDS = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")  # Triton's RMWOp
AXES = {"x": 0, "y": 1, "z": 2}
_NO_RESULT = ("tt.store", "tt.assert", "tt.print", "tt.return", "tt.reduce.return", "tt.scan.return", "scf.yield")
_BARE = ("tt.return", "scf.yield", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return")


def plain_number(text: str) -> int | float:
    """An integer or float of an attribute array."""
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


_FLOAT_FORMATS = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}


def float_value(text: str, element: str) -> float:
    """The value of a float literal; hexadecimal ones hold the element's bits."""
    if text[:2].lower() != "0x":
        return float(text)
    bits = int(text, 16)
    if element == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    if element in _FLOAT_FORMATS:
        pack, unpack = _FLOAT_FORMATS[element]
        return float(struct.unpack(unpack, struct.pack(pack, bits))[0])
    return decode_float8(bits, element)


# Exponent bits, mantissa bits, bias, and whether there is an infinity (OCP 8-bit formats and their FNUZ kin).
FLOAT8 = {
    "f8E4M3FN": (4, 3, 7, False), "f8E5M2": (5, 2, 15, True), "f8E4M3FNUZ": (4, 3, 8, False),
    "f8E5M2FNUZ": (5, 2, 16, False), "f8E4M3B11FNUZ": (4, 3, 11, False),
}  # fmt: skip


def decode_float8(bits: int, element: str) -> float:
    """The value of an 8-bit float's bits."""
    exponent_bits, mantissa_bits, bias, has_infinity = FLOAT8[element]
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits & 0x7F) >> mantissa_bits
    mantissa = bits & ((1 << mantissa_bits) - 1)
    top = (1 << exponent_bits) - 1
    if element.endswith("FNUZ"):
        if bits == 0x80:
            return float("nan")
    elif has_infinity and exponent == top:
        return float("nan") if mantissa else sign * float("inf")
    elif not has_infinity and bits & 0x7F == 0x7F:
        return float("nan")
    if exponent == 0:
        return float(sign * mantissa * 2.0 ** (1 - bias - mantissa_bits))
    return float(sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias))


def dense_value(raw: list[str], type_: Type, splat: bool) -> Dense:
    """A `dense<…>` from its literals; a string literal holds the little-endian bytes of all elements."""
    if raw and raw[0].startswith('"'):
        return _dense_bytes(bytes.fromhex(raw[0].strip('"')[2:]), type_)
    values = [_literal(each, type_) for each in raw]
    if not splat and len(values) == 1 and type_.count > 1:
        splat = True
    return Dense(tuple(values), splat)


def _literal(text: str, type_: Type) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    return float_value(text, type_.element) if type_.is_float else int(text, 0)


def _dense_bytes(data: bytes, type_: Type) -> Dense:
    size = max(1, ELEMENT_BITS[type_.element] // 8)
    chunks = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    if type_.is_float:
        return Dense(tuple(float_value(hex(each), type_.element) for each in chunks), False)
    return Dense(tuple(chunks), False)


def parse_pretty(reader: Reader, operation: Op, results: int) -> list[Type]:
    """Reads the rest of a pretty op; returns the types of its results."""
    if operation.name in _SPECIAL:
        return _SPECIAL[operation.name](reader, operation)
    if operation.name in _BARE:
        return _parse_bare(reader, operation)
    words = _parse_loose(reader, operation)
    operation.attributes["words"] = words
    return _result_types(reader, operation, results)


def _parse_bare(reader: Reader, operation: Op) -> list[Type]:
    """`name` or `name %a, %b : T, T`."""
    while reader.kind == "ssa":
        operation.operands.append(reader.parse_operand())
        reader.accept(",")
    if operation.operands:
        reader.expect(":")
        _parse_type_list(reader)
    return []


def _parse_loose(reader: Reader, operation: Op) -> list[str]:
    words: list[str] = []
    while not reader.starts_line and (reader.token not in (":", "loc", "}") or reader.kind == "string"):
        if reader.kind == "ssa":
            operation.operands.append(reader.parse_operand())
        elif reader.token == "{":
            operation.attributes.update(reader.parse_attributes())
        elif reader.token in (",", "(", ")", "[", "]"):
            reader.take()
        elif reader.peek() == "=":
            name = reader.take()
            reader.take()
            operation.attributes[name] = reader.take()
        elif reader.peek() == "<":
            name = reader.take()
            operation.attributes[name] = _angle_text(reader)
        elif reader.kind in ("word", "string", "number", "symbol"):
            words.append(reader.take().strip('"'))
        else:
            raise reader.fail(f"an operand of `{operation.name}`")
    return words


def _angle_text(reader: Reader) -> str:
    reader.expect("<")
    text = ""
    while not reader.accept(">"):
        text += reader.take()
    return text


def _parse_type_list(reader: Reader) -> list[Type]:
    types = reader.parse_types()
    while reader.token in (",", "*"):
        reader.take()
        types += reader.parse_types()
    return types


def _result_types(reader: Reader, operation: Op, results: int) -> list[Type]:
    if not reader.accept(":"):
        return []
    types = _parse_type_list(reader)
    if reader.accept("->") or reader.accept("to"):
        named = _parse_type_list(reader)
        return named * results if operation.name == "tt.split" else named if results else []
    return _infer_results(operation, types, results)


def _infer_results(operation: Op, types: list[Type], results: int) -> list[Type]:
    if operation.name in _NO_RESULT or not results:
        return []
    first = types[0]
    if operation.name == "tt.load":
        return [Type(first.pointee, first.shape)]
    if operation.name == "tt.addptr":
        return [first]
    if operation.name in ("arith.cmpi", "arith.cmpf", "math.isnan", "math.isinf", "math.isfinite"):
        return [first.with_element("i1")]
    if operation.name == "tt.unsplat":
        return [first.scalar]
    if operation.name in ("arith.mului_extended", "arith.mulsi_extended"):
        return [first, first]
    if operation.name == "arith.addui_extended":
        return [first, first.with_element("i1")]
    return [types[-1]] * results


def _parse_constant(reader: Reader, operation: Op) -> list[Type]:
    if reader.token == "{":
        operation.attributes.update(reader.parse_attributes())
    if reader.token in ("true", "false"):
        operation.attributes["value"] = reader.take() == "true"
        return [Type("i1")]
    if reader.token == "dense":
        start = reader.at
        operation.attributes["value"] = reader.parse_attribute()
        end, reader.at = reader.at, start
        type_ = _type_after_dense(reader)
        reader.at = end
        return [type_]
    text = reader.take()
    reader.expect(":")
    type_ = reader.parse_type()
    operation.attributes["value"] = float_value(text, type_.element) if type_.is_float else int(text, 0)
    return [type_]


def _type_after_dense(reader: Reader) -> Type:
    while not (reader.token == ">" and reader.peek() == ":"):
        reader.take()
    reader.take()
    reader.take()
    return reader.parse_type()


def _parse_for(reader: Reader, operation: Op) -> list[Type]:
    if reader.accept("unsigned"):
        operation.attributes["unsigned"] = True
    induction = reader.take()
    reader.expect("=")
    operation.operands = [reader.parse_operand()]
    reader.expect("to")
    operation.operands.append(reader.parse_operand())
    reader.expect("step")
    operation.operands.append(reader.parse_operand())
    names, types = [induction], []
    if reader.accept("iter_args"):
        names += _parse_carried(reader, operation)
        reader.expect("->")
        types = reader.parse_types()
    induction_type = reader.parse_type() if reader.accept(":") else Type("index")
    arguments = [reader.declare(name, each) for name, each in zip(names, [induction_type, *types], strict=True)]
    operation.regions = [_closed(reader.parse_region(operation, arguments))]
    if reader.token == "{":
        operation.attributes.update(reader.parse_attributes())
    return types


def _parse_carried(reader: Reader, operation: Op) -> list[str]:
    """`(%a = %init, …)`: the names; the initial values become operands."""

    def pair() -> str:
        name = reader.take()
        reader.expect("=")
        operation.operands.append(reader.parse_operand())
        return name

    return reader.listed("(", ")", pair)


def _closed(blocks: list[Block]) -> list[Block]:
    """The region with the `scf.yield` that pretty text leaves out."""
    last = blocks[-1].operations
    if not last or last[-1].name != "scf.yield":
        last.append(Op("scf.yield", block=blocks[-1]))
    return blocks


def _parse_if(reader: Reader, operation: Op) -> list[Type]:
    operation.operands = [reader.parse_operand()]
    types = reader.parse_types() if reader.accept("->") else []
    operation.regions = [_closed(reader.parse_region(operation))]
    if reader.accept("else"):
        operation.regions.append(_closed(reader.parse_region(operation)))
    if reader.token == "{":
        operation.attributes.update(reader.parse_attributes())
    return types


def _parse_while(reader: Reader, operation: Op) -> list[Type]:
    names = _parse_carried(reader, operation) if reader.token == "(" else []
    reader.expect(":")
    inputs = reader.parse_types()
    reader.expect("->")
    results = reader.parse_types()
    arguments = [reader.declare(name, each) for name, each in zip(names, inputs, strict=True)]
    operation.regions = [reader.parse_region(operation, arguments)]
    reader.expect("do")
    operation.regions.append(_closed(reader.parse_region(operation)))
    if reader.accept("attributes"):
        operation.attributes.update(reader.parse_attributes())
    return results


def _parse_condition(reader: Reader, operation: Op) -> list[Type]:
    reader.expect("(")
    operation.operands = [reader.parse_operand()]
    reader.expect(")")
    return _parse_bare(reader, operation) if reader.kind == "ssa" else []


def _parse_branch(reader: Reader, operation: Op) -> list[Type]:
    if operation.name == "cf.cond_br":
        operation.operands = [reader.parse_operand()]
        reader.expect(",")
    operation.successors.append(reader.parse_successor())
    while reader.accept(","):
        operation.successors.append(reader.parse_successor())
    if reader.token == "{":
        operation.attributes.update(reader.parse_attributes())
    return []


def _parse_call(reader: Reader, operation: Op) -> list[Type]:
    operation.attributes["callee"] = reader.take()[1:].strip('"')
    operation.operands = reader.listed("(", ")", reader.parse_operand)
    if reader.token == "{":
        operation.attributes.update(reader.parse_attributes())
    reader.expect(":")
    reader.parse_types()
    reader.expect("->")
    return reader.parse_types()


_SPECIAL: dict[str, Callable[[Reader, Op], list[Type]]] = {
    "arith.constant": _parse_constant,
    "scf.for": _parse_for,
    "scf.if": _parse_if,
    "scf.while": _parse_while,
    "scf.condition": _parse_condition,
    "cf.br": _parse_branch,
    "cf.cond_br": _parse_branch,
    "tt.call": _parse_call,
}


def normalize(operation: Op) -> None:
    """Gives attributes one form, whichever text they came from."""
    words = operation.attributes.get("words", [])
    if operation.name in ("arith.cmpi", "arith.cmpf"):
        _normalize_predicate(operation, words)
    elif operation.name in ("tt.get_program_id", "tt.get_num_programs"):
        axis = words[0] if words else operation.attributes["axis"]
        operation.attributes["axis"] = AXES.get(axis, axis)
    elif operation.name == "tt.atomic_rmw":
        kind = words[0] if words else operation.attributes["atomic_rmw_op"]
        operation.attributes["kind"] = ATOMIC_KINDS[kind] if isinstance(kind, int) else kind
    elif operation.name in ("tt.assert", "tt.print") and words:
        operation.attributes.setdefault("message", words[0])
    elif operation.name == "cf.cond_br" and len(operation.successors) == 2 and len(operation.operands) > 1:
        _split_branch_operands(operation)
    elif operation.name == "cf.br" and operation.operands:
        operation.successors = [(operation.successors[0][0], operation.operands)]
        operation.operands = []


def _normalize_predicate(operation: Op, words: list[str]) -> None:
    known = INTEGER_PREDICATES if operation.name == "arith.cmpi" else FLOAT_PREDICATES
    predicate = words[0] if words else operation.attributes["predicate"]
    operation.attributes["predicate"] = known[predicate] if isinstance(predicate, int) else predicate


def _split_branch_operands(operation: Op) -> None:
    """Generic `cf.cond_br` holds its successors' operands after the condition, in order."""
    condition, *rest = operation.operands
    true_block, false_block = (block for block, _ in operation.successors)
    taken = len(true_block.arguments) or operation.attributes.get("operandSegmentSizes", (1, len(rest), 0))[1]
    operation.operands = [condition]
    operation.successors = [(true_block, rest[:taken]), (false_block, rest[taken:])]
