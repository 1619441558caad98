"""What problems' tensors hold, and whether two configs computed the same. In: element types by their names in a spec.
Out: NumPy arrays. Goes into candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

_BYTES = {"fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2, "u16": 2}
_PLAIN = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
          "u64": np.uint64}  # fmt: skip
# How far two results may lie apart: of the largest value, and of each. What has fewer bits is rounded more often.
TOLERANCE = {"fp64": 1e-10, "fp32": 2e-3, "fp16": 1e-2, "bf16": 4e-2}
TOLERANCE_FP8 = 0.25
MADE = 1_000_003  # elements that are made at random; longer tensors hold them again and again
COMPARED = 1 << 20  # elements of a tensor; of a longer one, as many in pieces that are spread over it
PIECES = 64


def bytes_of(kind: str) -> int:
    """The size of one element."""
    return _BYTES.get(kind, 1)


def choose_pieces(kind: str, elements: int) -> list[tuple[int, int]]:
    """First byte and size of what is compared of a tensor: all of it, or pieces from its first element to its last."""
    size = bytes_of(kind)
    if elements <= COMPARED:
        return [(0, elements * size)] if elements else []
    length = COMPARED // PIECES
    return [((elements - length) * number // (PIECES - 1) * size, length * size) for number in range(PIECES)]


def make_tensor(kind: str, elements: int, below: int, seed: int) -> np.ndarray[Any, Any]:
    """The bytes of a tensor: reals as a normal distribution has them, integers from 0 to less than `below`."""
    made = _make_bytes(kind, min(elements, MADE), below, seed)
    return np.resize(made, elements * bytes_of(kind)) if elements > MADE else made


def _make_bytes(kind: str, elements: int, below: int, seed: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    if kind[0] in "iu":
        numbers = generator.integers(0, max(below, 1), elements, dtype=np.int64)
        return numbers.astype(_PLAIN.get(kind, np.int8)).view(np.uint8)
    if kind.startswith("fp8"):
        # Any of the 8-bit formats: exponents in the middle of their range, all fractions and signs.
        return (generator.integers(0, 16, elements, dtype=np.uint8) + 48) | (
            generator.integers(0, 2, elements, dtype=np.uint8) << 7
        )
    reals = generator.standard_normal(elements, dtype=np.float32)
    if kind == "bf16":
        return (reals.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return reals.astype(_PLAIN[kind]).view(np.uint8)


def find_difference(kind: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> str:
    """How the second result is another than the first; "" where it is as good."""
    if np.array_equal(expected, found):
        return ""
    if kind[0] in "iu":
        return "integers differ"
    ours, theirs = (_reals(kind, each) for each in (expected, found))
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return "numbers that are not finite differ"
    both = np.isfinite(ours)
    ours, theirs = ours[both], theirs[both]
    scale = np.sqrt(np.mean(np.square(ours), dtype=np.float64)) if len(ours) else 0.0
    apart = np.abs(ours - theirs) / (np.abs(ours) + scale + 1e-30)
    worst = float(apart.max(initial=0.0))
    allowed = TOLERANCE.get(kind, TOLERANCE_FP8)
    return f"numbers differ by {worst:.2g}, more than {allowed:g}" if worst > allowed else ""


def _reals(kind: str, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if kind == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if kind.startswith("fp8"):
        return np.take(_read_fp8(kind), data)
    return data.view(_PLAIN[kind]).astype(np.float64 if kind == "fp64" else np.float32)


def _read_fp8(kind: str) -> np.ndarray[Any, Any]:
    """All 256 values of an 8-bit format."""
    bits = 2 if "e5" in kind else 3
    bias = {"fp8e5": 15, "fp8e5b16": 16, "fp8e4nv": 7, "fp8e4b8": 8, "fp8e4b15": 15}[kind]
    codes = np.arange(256)
    exponent, fraction = (codes >> bits) & (127 >> bits), codes & ((1 << bits) - 1)
    sizes = np.where(
        exponent == 0,
        fraction * 2.0 ** (1 - bias - bits),
        (1 + fraction / (1 << bits)) * 2.0 ** (exponent.astype(np.float64) - bias),
    )
    return np.where(codes >> 7, -sizes, sizes).astype(np.float32)
