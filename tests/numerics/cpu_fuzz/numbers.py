"""Numbers of every element type in NumPy. In: elements, values. Out: arrays, rounding, units in the last place.

Integers are signed arrays of their width, `i1` is bool. f16, f32 and f64 are NumPy's; bf16 and the 8-bit floats are
float32 arrays that hold only values of the format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]

REGISTERS = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16,
    "f32": np.float32, "f64": np.float64, "bf16": np.float32, "f8E4M3FN": np.float32, "f8E5M2": np.float32,
}  # fmt: skip
MEMORY = {**REGISTERS, "i1": np.uint8, "bf16": np.uint16, "f8E4M3FN": np.uint8, "f8E5M2": np.uint8}
# Bits of the mantissa with the hidden one, exponent of the smallest normal number, largest finite number.
FORMATS = {
    "f16": (11, -14, 65504.0), "bf16": (8, -126, float(np.float32(3.3895314e38))),
    "f32": (24, -126, 3.4028234663852886e38),
    "f64": (53, -1022, 1.7976931348623157e308), "f8E4M3FN": (4, -6, 448.0), "f8E5M2": (3, -14, 57344.0),
}  # fmt: skip


def unit(element: str, values: Numbers) -> Numbers:
    """The distance of neighbours in the format, where the values are."""
    digits, lowest, _ = FORMATS[element]
    magnitude = np.abs(np.asarray(values, np.float64))
    exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, lowest) - (digits - 1))


def round_to(element: str, values: Numbers) -> Numbers:
    """float64 values rounded to nearest even in the format; 8-bit formats saturate, others overflow to infinity."""
    values = np.asarray(values, np.float64)
    if element == "f64":
        return values
    _, _, largest = FORMATS[element]
    step = unit(element, values)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.where(np.isfinite(values), np.rint(values / step) * step, values)
        limit = largest if element.startswith("f8") else np.inf
        over = np.abs(rounded) > largest
        rounded = np.where(over, np.copysign(limit, rounded), rounded)
        return rounded.astype(REGISTERS[element])


def cut_to(element: str, values: Numbers) -> Numbers:
    """Values rounded towards zero in the format."""
    exact = np.asarray(values, np.float64)
    nearest = np.asarray(round_to(element, exact), np.float64)
    below = np.where(np.isinf(nearest), FORMATS[element][2], np.abs(nearest) - unit(element, exact))
    with np.errstate(invalid="ignore"):
        kept = np.where(np.abs(nearest) > np.abs(exact), np.copysign(below, exact), nearest)
    return kept.astype(REGISTERS[element])


def _decode8(element: str) -> Numbers:
    digits, lowest, _ = FORMATS[element]
    table = np.zeros(256, np.float32)
    for bits in range(256):
        exponent, mantissa = (bits & 0x7F) >> (digits - 1), bits & ((1 << (digits - 1)) - 1)
        scale = 2.0 ** (max(exponent, 1) - 1 + lowest)
        value = (mantissa / (1 << (digits - 1)) + (exponent > 0)) * scale
        if element == "f8E5M2" and exponent == 31:
            value = np.inf if mantissa == 0 else np.nan
        elif element == "f8E4M3FN" and bits & 0x7F == 0x7F:
            value = np.nan
        table[bits] = -value if bits & 0x80 else value
    return table


_TABLES = {element: _decode8(element) for element in ("f8E4M3FN", "f8E5M2")}


def from_memory(element: str, stored: Numbers) -> Numbers:
    """Register values of what memory holds."""
    if element == "i1":
        return stored != 0
    if element == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return _TABLES[element][stored] if element in _TABLES else stored


def to_memory(element: str, values: Numbers) -> Numbers:
    """What memory holds for register values; NaN becomes some NaN."""
    if element == "i1":
        return values.astype(np.uint8)
    if element == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if element in _TABLES:
        table = _TABLES[element]
        order = {(float(value), bool(np.signbit(value))): bits for bits, value in reversed([*enumerate(table)])}
        nan = int(np.flatnonzero(np.isnan(table))[0])
        flat = [nan if np.isnan(v) else order[(float(v), bool(np.signbit(v)))] for v in np.ravel(values)]
        return np.array(flat, np.uint8).reshape(np.shape(values))
    return np.asarray(values).astype(MEMORY[element])


_EDGES = {
    "float": (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3.0, 0.1, 1e-40, 65504.0, 2.0**20, -7.25),
    "tame": (0.0, 1.0, -1.5, 3.0, 0.1, 100.0, -7.25, 0.5, 2.0**10),
}


def draw(rng: np.random.Generator, element: str, count: int, tame: bool = False) -> Numbers:
    """Register values: edges, small and arbitrary ones mixed."""
    if element == "i1":
        return rng.integers(0, 2, count).astype(np.bool_)
    if element[0] == "i":
        bounds = np.iinfo(REGISTERS[element])
        edges = np.array([bounds.min, bounds.max, 0, 1, -1, bounds.max - 1, bounds.min + 1], REGISTERS[element])
        wide = rng.integers(bounds.min, bounds.max, count, REGISTERS[element], endpoint=True)
        small = rng.integers(-9, 10, count).astype(REGISTERS[element])
        kind = rng.integers(0, 4, count)
        return np.where(kind == 0, rng.choice(edges, count), np.where(kind < 3, small, wide))
    edges = np.array(_EDGES["tame" if tame else "float"])
    values = np.where(rng.random(count) < 0.3, rng.choice(edges, count), rng.standard_normal(count) * 4)
    return round_to(element, values)
