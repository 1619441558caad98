"""A long kernel in parts, each a function. In: the text of its program and where it may be cut. Out: functions' text.

LLVM's loop passes look at what lies before a loop in its function: thousands of loops in one would take the square of
their number. A part takes what it uses of earlier ones as parameters and returns what later ones use.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from precast.engines.cpu.builder import Builder

_NAME = re.compile(r"%\w+(?:#\d+)?")


@dataclass
class _Part:
    name: str
    lines: list[str]
    used: dict[str, None] = field(default_factory=dict)  # names, in order
    results: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Text:
    """A program's lines, where they may be cut, its constants by name, its parameters, and what may cross a cut."""

    lines: Sequence[str]
    cuts: Sequence[int]
    constants: Mapping[str, str]
    parameters: Mapping[str, str]
    crossing: Mapping[str, str]


def split_program(
    program: str, builder: Builder, parameters: Mapping[str, str], attributes: str
) -> tuple[list[str], list[str]]:
    """Functions, and the lines of a program that calls them; none, and all of its lines, where it stays whole."""
    if not builder.cuts:
        return [], builder.lines
    constants = dict(zip(builder.constant_names, builder.prologue, strict=True))
    crossing = {
        name: type_ for name, type_ in builder.crossing.items() if name not in constants and name not in parameters
    }
    text = _Text(builder.lines, builder.cuts, constants, parameters, crossing)
    parts = _cut(program, text)
    owner = _find_owners(parts)
    for number, part in enumerate(parts):
        for name in part.used:
            first = owner[_base(name)]
            if first == number or name in parameters or name in constants:
                continue
            if name not in crossing:
                return [], builder.lines
            if name not in parts[first].results:
                parts[first].results.append(name)
    functions = [line for number, part in enumerate(parts) for line in _render(part, number, owner, text, attributes)]
    return functions, _render_calls(parts, owner, text)


def _cut(program: str, text: _Text) -> list[_Part]:
    bounds = [0, *text.cuts, len(text.lines)]
    parts = [
        _Part(f"{program}.{number}", list(text.lines[begin:end]))
        for number, (begin, end) in enumerate(itertools.pairwise(bounds))
        if begin < end
    ]
    for part in parts:
        for line in part.lines:
            part.used.update(dict.fromkeys(_NAME.findall(line)))
    return parts


def _base(name: str) -> str:
    return name.partition("#")[0]


def _find_owners(parts: Sequence[_Part]) -> dict[str, int]:
    """The part in which each name is met first, which is where it is defined."""
    owner: dict[str, int] = {}
    for number, part in enumerate(parts):
        for name in part.used:
            owner.setdefault(_base(name), number)
    return owner


def _inputs(part: _Part, number: int, owner: Mapping[str, int], text: _Text) -> list[str]:
    crossed = [name for name in part.used if name in text.crossing and owner[_base(name)] < number]
    return [name for name in part.used if name in text.parameters] + crossed


def _render(part: _Part, number: int, owner: Mapping[str, int], text: _Text, attributes: str) -> list[str]:
    types = {**text.crossing, **text.parameters}
    inputs = _inputs(part, number, owner, text)
    renamed = {name: name.replace("%", "%result").replace("#", "_") if "#" in name else name for name in inputs}
    parameters = ", ".join(f"{renamed[name]}: {types[name]}" for name in inputs)
    results = ", ".join(types[name] for name in part.results)
    head = f'  func.func private @"{part.name}"({parameters}) -> ({results}) '
    constants = [text.constants[name] for name in part.used if name in text.constants]
    body = [_NAME.sub(lambda found: renamed.get(found[0], found[0]), line) for line in part.lines]
    end = f"    return {', '.join(part.results)} : {results}" if part.results else "    return"
    return [
        f"{head}attributes {{llvm.linkage = #llvm.linkage<internal>, {attributes}}} {{",
        *constants,
        *body,
        end,
        "  }",
    ]


def _render_calls(parts: Sequence[_Part], owner: Mapping[str, int], text: _Text) -> list[str]:
    types = {**text.crossing, **text.parameters}
    known = {name: name for name in text.parameters}
    lines = []
    for number, part in enumerate(parts):
        inputs = _inputs(part, number, owner, text)
        result = f"%part{number}" if part.results else ""
        several = f":{len(part.results)}" if len(part.results) > 1 else ""
        for index, name in enumerate(part.results):
            known[name] = f"{result}#{index}" if several else result
        passed, taken = (", ".join(known[name] for name in inputs), ", ".join(types[name] for name in inputs))
        given = ", ".join(types[name] for name in part.results)
        call = f'func.call @"{part.name}"({passed}) : ({taken}) -> ({given})'
        lines.append(f"    {result}{several} = {call}" if result else f"    {call}")
    return lines
