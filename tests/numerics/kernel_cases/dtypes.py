"""Element types of Triton in NumPy, bit by bit: fp16, bf16, fp32, fp64, fp8 and integers, to and from float64.

In: float64 values. Out: arrays of a storage type of the same size (bf16 as uint16, fp8 as uint8), and back.
Facts: IEEE 754; OCP 8-bit floating point (e4nv, e5); the `fnuz` formats of gfx942 (e4b8, e5b16).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Storage = npt.NDArray[np.generic]

STORAGE: dict[str, type[np.generic]] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64,
    "fp8e4nv": np.uint8, "fp8e5": np.uint8, "fp8e4b8": np.uint8, "fp8e5b16": np.uint8,
}  # fmt: skip


@dataclass(frozen=True)
class Fp8:
    """An 8-bit format. `zero_negative`: 0x80 is -0 (else the only NaN); `infinities`: the top exponent is IEEE's."""

    mantissa_bits: int
    bias: int
    largest: float
    zero_negative: bool
    infinities: bool


FP8 = {
    "fp8e4nv": Fp8(3, 7, 448.0, True, False),
    "fp8e5": Fp8(2, 15, 57344.0, True, True),
    "fp8e4b8": Fp8(3, 8, 240.0, False, False),
    "fp8e5b16": Fp8(2, 16, 57344.0, False, False),
}
# Half a unit in the last place, relative to the value: the largest error of one rounding.
HALF_ULP = {
    "fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "fp64": 2.0**-53,
    "fp8e4nv": 2.0**-4, "fp8e5": 2.0**-3, "fp8e4b8": 2.0**-4, "fp8e5b16": 2.0**-3,
}  # fmt: skip


def encode(values: npt.ArrayLike, element: str) -> Storage:
    """`values` rounded to nearest even, as storage of `element`; fp8 saturates, integers must be exact."""
    exact = np.asarray(values)
    if element == "bf16":
        return _encode_bf16(exact.astype(np.float32))
    if element in FP8:
        return _encode_fp8(exact.astype(np.float64), element)
    return exact.astype(STORAGE[element])


def decode(storage: Storage, element: str) -> Floats:
    """The values that `storage` of `element` holds. 64-bit integers beyond 2⁵³ lose bits."""
    if element == "bf16":
        return (storage.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if element in FP8:
        return fp8_values(element)[storage]
    return storage.astype(np.float64)


def round_to(values: npt.ArrayLike, element: str) -> Floats:
    """`values` as they read after a trip through `element`."""
    return decode(encode(values, element), element)


def _encode_bf16(values: npt.NDArray[np.float32]) -> Storage:
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


@lru_cache
def fp8_values(element: str) -> Floats:
    """The value of each of the 256 codes of an fp8 type."""
    kind = FP8[element]
    codes = np.arange(128)
    exponent, fraction = codes >> kind.mantissa_bits, codes & ((1 << kind.mantissa_bits) - 1)
    steps = np.where(exponent > 0, fraction + (1 << kind.mantissa_bits), fraction).astype(np.float64)
    positive = np.ldexp(steps, np.maximum(exponent, 1) - kind.bias - kind.mantissa_bits)
    positive[positive > kind.largest] = np.nan
    if kind.infinities:
        positive[0x7C] = np.inf
    values = np.concatenate([positive, -positive])
    if not kind.zero_negative:
        values[0x80] = np.nan
    return values


def _encode_fp8(values: Floats, element: str) -> Storage:
    kind = FP8[element]
    table = fp8_values(element)[:128]
    table = table[np.isfinite(table)]
    size = np.minimum(np.abs(values), kind.largest)
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    below_gap, above_gap = size - table[above - 1], table[above] - size
    up = (above_gap < below_gap) | ((above_gap == below_gap) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    negative = (values < 0) & (kind.zero_negative | (code > 0))
    not_a_number = 0x80 if not kind.zero_negative else 0x7F
    return np.where(np.isnan(values), not_a_number, code | (negative << 7)).astype(np.uint8)
