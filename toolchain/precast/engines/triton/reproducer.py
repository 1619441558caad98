"""MLIR reproducers: their pipeline string, mapped onto Triton's passes as listings name them.

In: the text of an IR file with an `mlir_reproducer` resource, or a pipeline string. Out: steps. The names and options
that MLIR knows a pass by are asked from Triton itself: a manager with that one pass prints them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton._C import libtriton

from precast.engines.triton.pipeline import builtin_names, find_builtin
from precast.errors import PassError, nearest_hint
from precast.passes.pipeline import Argument, Step

_RESOURCE = re.compile(r'mlir_reproducer\s*:\s*\{.*?pipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PASS = re.compile(r"([\w-]+)(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})?")
_PARAMETER = re.compile(r"arg\d*: (?:[\w.]*\.)?(\w+)")


def read_reproducer(text: str) -> str:
    """The pipeline string of a reproducer. `PassError` when the file holds none."""
    found = _RESOURCE.search(text)
    if not found:
        raise PassError("the file holds no `mlir_reproducer` resource", hint="MLIR writes one when a pass crashes")
    return found[1]


def parse_passes(pipeline: str) -> tuple[Step, ...]:
    """The steps that a pipeline string says; nesting is dropped, for each pass knows what it runs on.

    `PassError` for a pass that Triton does not offer, or an option value that its Python interface cannot give.
    """
    return tuple(_find_step(name, options) for name, options in _split(pipeline))


def _split(pipeline: str) -> Iterator[tuple[str, str]]:
    """Each pass's name and options: the words that are not anchors, which are followed by a parenthesis."""
    position = 0
    while position < len(pipeline):
        match = _PASS.match(pipeline, position)
        if not match:
            position += 1
            continue
        position = match.end()
        if not pipeline.startswith("(", position) and not pipeline.startswith(".", position):
            yield match[1], (match[2] or "").strip("{} ")
        elif pipeline.startswith(".", position):  # an anchor such as `builtin.module`
            position = pipeline.index("(", position)


@dataclass(frozen=True)
class _Known:
    """A pass of Triton under MLIR's name: `plain` is how it prints, `slots` the option that each argument sets."""

    op: str
    kinds: tuple[str, ...]
    slots: tuple[str, ...]


def _find_step(name: str, options: str) -> Step:
    known = _known_passes()
    if name not in known:
        raise PassError(f"Triton offers no pass `{name}`", hint=nearest_hint(name, known, "passes"))
    given = _options(options)
    for candidate in known[name]:
        slots = zip(candidate.slots, candidate.kinds, strict=True)
        args = tuple(_convert(given.get(slot, "0"), kind) for slot, kind in slots)
        if _printed(candidate.op, args) == (name, given):
            return Step(candidate.op, args)
    raise PassError(f"pass `{name}{{{options}}}` of the reproducer has options that Triton's own pass cannot be given")


def _options(text: str) -> dict[str, str]:
    """`a=1 b={x y}` as a dictionary."""
    return dict(re.findall(r"([\w-]+)=(\{[^}]*\}|\S*)", text))


def _convert(text: str, kind: str) -> Argument:
    if kind == "bool":
        return text in ("true", "1")
    return int(text) if kind == "int" and text.lstrip("-").isdigit() else (0 if kind == "int" else text)


def _printed(op: str, args: tuple[Argument, ...]) -> tuple[str, dict[str, str]]:
    """How MLIR prints a manager with this one pass: its name and options."""
    manager = libtriton.ir.pass_manager(libtriton.ir.context())
    find_builtin(op)(manager, *args)
    name, options = next(_split(manager.get_pipeline_str()), ("", ""))
    return name, _options(options)


@functools.cache
def _known_passes() -> dict[str, tuple[_Known, ...]]:
    """Every pass of Triton by MLIR's name. One name may have several: with and without arguments, or a vendor's own."""
    found: dict[str, list[_Known]] = {}
    for op in builtin_names():
        for kinds in _signatures(op):
            plain = tuple(_sample(kind, 0) for kind in kinds)
            name, options = _printed(op, plain)
            slots = tuple(_find_slot(op, plain, index, kind, options) for index, kind in enumerate(kinds))
            found.setdefault(name, []).append(_Known(op, kinds, slots))
    return {name: tuple(passes) for name, passes in found.items()}


def _signatures(op: str) -> tuple[tuple[str, ...], ...]:
    """The types of the arguments after the manager, for each way to call a pass: nanobind documents each in a line."""
    lines = str(find_builtin(op).__doc__).splitlines()
    calls = dict.fromkeys(line.strip("- ") for line in lines if "pass_manager" in line)
    return tuple(tuple(_PARAMETER.findall(line)[1:]) for line in calls)


def _sample(kind: str, number: int) -> Any:
    return {"int": 32 + 32 * number, "bool": bool(number)}.get(kind, f"gfx9{number}a" if kind == "str" else number)


def _find_slot(op: str, plain: tuple[Any, ...], index: int, kind: str, before: dict[str, str]) -> str:
    """The option that argument `index` sets: the one that changes with it. "" when none shows it."""
    changed = (*plain[:index], _sample(kind, 1), *plain[index + 1 :])
    _, after = _printed(op, changed)
    return next((name for name in {**before, **after} if before.get(name) != after.get(name)), "")
