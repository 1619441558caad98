"""What attributes of TTIR mean. In: their text, or an op as it was read. Out: values; the op with plain ones.

Predicates and kinds become words, axes integers, and branch operands go to the successors that they are for.
"""

from __future__ import annotations

import struct

from precast.engines.cpu.ir import ELEMENT_BITS, Dense, Op, Type

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
ATOMIC_KINDS = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")  # Triton's RMWOp


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


def normalize(operation: Op) -> None:
    """Gives attributes their meaning."""
    attributes = operation.attributes
    if operation.name in ("arith.cmpi", "arith.cmpf"):
        known = INTEGER_PREDICATES if operation.name == "arith.cmpi" else FLOAT_PREDICATES
        attributes["predicate"] = known[attributes["predicate"]]
    elif operation.name == "tt.atomic_rmw":
        attributes["kind"] = ATOMIC_KINDS[attributes["atomic_rmw_op"]]
    elif operation.name == "cf.cond_br":
        _split_branch_operands(operation)
    elif operation.name == "cf.br" and operation.operands:
        operation.successors = [(operation.successors[0][0], operation.operands)]
        operation.operands = []


def _split_branch_operands(operation: Op) -> None:
    """Generic `cf.cond_br` holds its successors' operands after the condition, in order."""
    condition, *rest = operation.operands
    true_block, false_block = (block for block, _ in operation.successors)
    taken = len(true_block.arguments) or operation.attributes.get("operandSegmentSizes", (1, len(rest), 0))[1]
    operation.operands = [condition]
    operation.successors = [(true_block, rest[:taken]), (false_block, rest[taken:])]
