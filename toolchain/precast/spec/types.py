"""Argument types: `i32`, `*fp16`, `*kfp16`, `tensordesc<fp16[128,64]>`, `(i32, *fp16)`, `none`.

In: the text of a type with every `{axis}` place already filled. Out: an `ArgumentType`; `str` gives the text back in
canonical spelling. `none` is the type of an argument that is absent (Python's `None`) in a variant.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from precast.errors import SpecError, nearest_hint

BITS = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u1": 1, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64,
    "fp8e4nv": 8, "fp8e5": 8, "fp8e4b8": 8, "fp8e5b16": 8, "fp8e4b15": 8,
}  # fmt: skip
MAXIMUM_PARTS = 64  # pointers and tuples of one type
# A constexpr that is a data type is written `tl.` and Triton's name or ours; Triton's name is what is kept.
TRITON_NAMES = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16",
    "fp8e4b15": "float8e4b15",
}  # fmt: skip


@dataclass(frozen=True)
class ArgumentType:
    """`kind` is scalar, pointer, descriptor, tuple or none.

    `element` is the scalar's word, or what a pointer points to (a type's text), or a descriptor's element;
    `layout` is the text that follows the block shape of a Gluon descriptor.
    """

    kind: str
    element: str = ""
    const: bool = False
    shape: tuple[int, ...] = ()
    layout: str = ""
    items: tuple[ArgumentType, ...] = ()

    def __str__(self) -> str:
        if self.kind == "pointer":
            return f"*{'k' if self.const else ''}{self.element}"
        if self.kind == "descriptor":
            layout = f",{self.layout}" if self.layout else ""
            return f"tensordesc<{self.element}[{','.join(map(str, self.shape))}]{layout}>"
        if self.kind == "tuple":
            return f"({', '.join(map(str, self.items))})"
        return self.element

    @property
    def is_integer(self) -> bool:
        return self.kind == "scalar" and self.element[0] in "iu"

    def elements(self) -> tuple[str, ...]:
        """Every scalar word inside the type."""
        if self.kind == "tuple":
            return tuple(word for item in self.items for word in item.elements())
        return () if self.kind == "none" else (self.element.lstrip("*k"),)


@functools.lru_cache(maxsize=4096)  # a few texts, asked for again by every variant
def parse_type(text: str) -> ArgumentType:
    """The type that `text` writes; `SpecError` without a place when there is no such type."""
    if max(text.count("("), text.count("*")) > MAXIMUM_PARTS:
        raise SpecError(f"a type of more than {MAXIMUM_PARTS} pointers or tuples")
    word = text.strip()
    if word in BITS:
        return ArgumentType("scalar", word)
    if word == "none":
        return ArgumentType("none", "none")
    if word.startswith("*"):
        return _parse_pointer(word)
    if word.startswith("tensordesc<"):
        return _parse_descriptor(word)
    if word.startswith("(") and word.endswith(")"):
        return ArgumentType("tuple", items=tuple(parse_type(item) for item in _split(word[1:-1])))
    raise unknown_type(word)


def is_unknown(text: str) -> bool:
    """Whether a type's text, as the spec has it, is that of no type, whatever fills its places."""
    if "{" in text:
        return False
    try:
        parse_type(text)
    except SpecError:
        return True
    return False


def unknown_type(text: str) -> SpecError:
    near = nearest_hint(text, [*BITS, *(f"*{word}" for word in BITS)], "types")
    hint = near if near.startswith("did") else f"types are {', '.join(BITS)}, `*T`, `tensordesc<T[128,64]>`, `(T, T)`"
    return SpecError(f"unknown type `{text}`", hint=hint)


def _parse_pointer(word: str) -> ArgumentType:
    const = word.startswith("*k")
    try:
        pointee = parse_type(word[2:] if const else word[1:])
    except SpecError:
        raise unknown_type(word) from None
    if pointee.kind not in ("scalar", "pointer"):
        raise unknown_type(word)
    return ArgumentType("pointer", str(pointee), const=const)


def _parse_descriptor(word: str) -> ArgumentType:
    found = re.fullmatch(r"tensordesc<(\w+)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]\s*(?:,(.+))?>", word)
    if not found:
        raise SpecError(f"`{word}` is not a tensor descriptor", hint="write it as `tensordesc<fp16[128,64]>`")
    if found[1] not in BITS:
        raise unknown_type(found[1])
    shape = tuple(int(size) for size in found[2].split(","))
    if any(size == 0 or size & (size - 1) for size in shape) or len(shape) > 5:
        raise SpecError(f"`{word}`: a block has at most 5 dimensions, each a power of two")
    return ArgumentType("descriptor", found[1], shape=shape, layout=(found[3] or "").strip())


def _split(text: str) -> list[str]:
    """The items of a tuple's inside: commas within brackets do not part."""
    items, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([<") - (letter in ")]>")
        if letter == "," and depth == 0:
            items.append(text[start:index])
            start = index + 1
    return [*items, text[start:]] if text[start:].strip() else items


def normalise_constant(text: str) -> str:
    """`tl.fp16` → `tl.float16`; any other text as it is. `SpecError` for a `tl.` word that is no data type."""
    if not text.startswith("tl."):
        return text
    word = text.removeprefix("tl.")
    if word in TRITON_NAMES.values():
        return text
    if word not in TRITON_NAMES:
        raise SpecError(f"`{text}` is not a Triton data type", hint=nearest_hint(word, TRITON_NAMES, "types"))
    return f"tl.{TRITON_NAMES[word]}"
