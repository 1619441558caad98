"""The kernel's parameters in a stage's IR, so that an outside pass cannot change them unseen.

In: a module's text or an upstream module, before and after a pass. Out: the types of the one public function, or a
sentence that says how a pass broke what launchers rely on. A pass may rename the kernel, and may add what it declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from precast.passes.ir import entry_block, find_functions

BUFFER = "!tt.ptr<i32>"
HIDDEN = 2  # parameters that Triton adds in llir: two scratch pointers
_HEADER = re.compile(r"^ *(?:tt|llvm|func)\.func (?:(\w+) )*?@[^(]*\(", re.MULTILINE)
_ALIAS = re.compile(r"^([#!][A-Za-z_]\w*) = (.*)$", re.MULTILINE)
_NAME = re.compile(r"[#!][A-Za-z_]\w*")
_HIDDEN_WORDS = {"private", "internal", "nested"}
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*")
_LLVM = re.compile(r"^define ([^@]*)@[^(]*\(", re.MULTILINE)
_ENTRY = re.compile(r"^\.visible \.entry [^(]*\(([^)]*)\)", re.MULTILINE)


@dataclass(frozen=True)
class Signature:
    """A function's name and the types of its parameters, in order."""

    name: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.types)})"


Signatures = tuple[Signature, ...]


def public_in_module(module: Any) -> Signatures:
    """The public functions with a body of an upstream module."""
    found = []
    for function in find_functions(module):
        attributes = function.attributes
        hidden = [str(attributes[name]) for name in ("sym_visibility", "linkage") if name in attributes]
        is_hidden = any(word in text for text in hidden for word in _HIDDEN_WORDS)
        if not is_hidden and len(function.regions[0].blocks):
            types = tuple(str(argument.type) for argument in entry_block(function).arguments)
            found.append(Signature(attributes["sym_name"].value, types))
    return tuple(found)


def public_in_text(text: str) -> Signatures:
    """The public functions with a body in MLIR's own printed form, of ttir, ttgir or llir."""
    aliases = dict(_ALIAS.findall(text))
    found = []
    for match in _HEADER.finditer(text):
        head, line_end = text[match.start() : match.end()], text.find("\n", match.end())
        parameters, rest = _split_call(text[match.end() : line_end])
        if _HIDDEN_WORDS.isdisjoint(head.split()) and "{" in _without_attributes(rest):
            types = tuple(_expand(_type_of(each), aliases) for each in parameters)
            found.append(Signature(head.partition("@")[2].rstrip("(").strip('"'), types))
    return tuple(found)


def _split_call(text: str) -> tuple[list[str], str]:
    """The parts between the commas up to the closing parenthesis, and what follows it."""
    parts, depth, start, quoted = [], 0, 0, False
    for index, letter in enumerate(text):
        quoted ^= letter == '"'
        if quoted or (letter == ">" and text[index - 1] == "-"):
            continue
        if letter in ")]}>" and depth == 0:
            parts.append(text[start:index])
            return [each.strip() for each in parts if each.strip()], text[index + 1 :]
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [], ""


def _without_attributes(text: str) -> str:
    """What follows a header's parameters, less its `attributes {…}`: a body's brace is left, or nothing."""
    before, found, after = text.partition("attributes {")
    return before + (_split_call(after)[1] if found else "")


def _type_of(parameter: str) -> str:
    """The type in `%name: type {attributes} loc(…)`."""
    text, depth = parameter.partition(":")[2].strip(), 0
    for index, letter in enumerate(text):
        if depth == 0 and (letter == "{" or text.startswith("loc(", index)):
            return text[:index].strip()
        depth += (letter in "<(") - (letter in ">)")
    return text


def _expand(text: str, aliases: dict[str, str]) -> str:
    for _ in range(8):  # aliases name other aliases, a few levels deep
        text, before = _NAME.sub(lambda match: aliases.get(match[0], match[0]), text), text
        if text == before:
            break
    return text


def explain_change(before: Signatures, after: Signatures, buffers: int = 0) -> str:
    """What an outside pass did to the kernel's parameters that it may not do; "" when it did nothing of the kind."""
    if len(before) != 1:
        return ""  # not a kernel to begin with: a file of one's own
    if not after:
        return "it left no public function with a body: the kernel is gone"
    if len(after) > 1:
        return f"it left {len(after)} public functions: {', '.join(each.name for each in after)}; a kernel has one"
    wanted = (*before[0].types, *(BUFFER,) * buffers)
    if after[0].types != wanted:
        return f"it changed the kernel's parameters from {Signature('', wanted)} to {after[0]}"
    if not _SYMBOL.fullmatch(after[0].name):
        return f"it named the kernel `{after[0].name}`, which cannot be a symbol"
    return ""


CHANGE_HINT = "launchers pass what the spec says; `context.add_buffer` adds a parameter of the pass's own"


def explain_emitted(before: str, after: str | bytes) -> str:
    """As `explain_change`, for a stage whose text a hook made: LLVM IR from MLIR, PTX from LLVM IR. Kinds only."""
    wanted, found = _kinds(before), _kinds(after) if isinstance(after, str) else None
    if wanted is None or found is None:
        return ""
    hidden = 0 if _LLVM.search(before) else HIDDEN
    if len(found) == 1 and found[0] == (*wanted[0], *("pointer",) * hidden):
        return ""
    if len(found) != 1:
        return f"it left {len(found)} kernels where one is"
    return f"it changed the kernel's parameters: {len(wanted[0]) + hidden} of them were to come, and it left " + str(
        len(found[0])
    )


def _kinds(text: str) -> list[tuple[str, ...]] | None:
    """For each kernel of a text, which parameters are pointers; None where that cannot be told from the text."""
    if _ENTRY.search(text):
        lists = [match.split(",") for match in _ENTRY.findall(text)]
        return [tuple(map(_kind, filter(str.strip, each))) for each in lists]
    if _LLVM.search(text):
        return [tuple(map(_kind, each)) for each in _llvm_kernels(text)]
    found = public_in_text(text)
    is_plain = len(found) == 1 and not any("tensordesc" in each for each in found[0].types)
    return [tuple(map(_kind, found[0].types))] if is_plain else None


def _llvm_kernels(text: str) -> Iterator[Sequence[str]]:
    for match in _LLVM.finditer(text):
        if _HIDDEN_WORDS.isdisjoint(match[1].split()):
            yield _split_call(text[match.end() : text.find("\n", match.end())])[0]


def _kind(parameter: str) -> str:
    return "pointer" if "ptr" in parameter else "number"
