"""Options of a kernel for each target, checked at their places before anything is compiled.

In: the nodes of `options`, `matrix`, `configs`, `target` sections and the project's defaults. Out: the sections as
values, and errors: an unknown option, a value out of range, an option that a target cannot have. An option that only
other backends have is no error where it is said for every target: specs are shared between projects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from precast.errors import Place, SpecError, nearest_hint
from precast.spec.matrix import read_axis, read_constant
from precast.spec.model import Axis, Options, TargetSection, format_constant
from precast.spec.problems import Problems
from precast.spec.table import KernelTable
from precast.spec.toml import Node
from precast.target import ARCHITECTURES, OPTIONS, Backend, Target, find_option, option_fault

RULES = {rule.name: rule for rules in OPTIONS.values() for rule in rules}
ALL_OPTIONS = frozenset(RULES)
EVERY_TARGET = tuple(Target(backend.value, arch) for backend in Backend for arch in ARCHITECTURES[backend])


@dataclass(frozen=True)
class OptionNodes:
    """The nodes of the options that hold for the targets that `pattern` selects; of several, the later wins."""

    pattern: str
    nodes: Mapping[str, Node]


def read_options(nodes: Mapping[str, Node], problems: Problems) -> Options:
    """Options as values, sorted by name."""
    found = []
    for name, node in sorted(nodes.items()):
        with problems.collect():
            if isinstance(node.value, list):
                raise node.error(f"option `{name}` has one value", "write several in `matrix`, where they are an axis")
            found.append((name, node.scalar()))
    return tuple(found)


def read_sections(table: KernelTable, axis_names: Iterable[str]) -> tuple[TargetSection, ...]:
    """The `target."GLOB"` sections: what is named like an axis or constexpr is an axis, all else an option."""
    names = set(axis_names)
    sections = []
    for pattern, node in table.sub_table("target").items():
        with table.problems.collect():
            if not isinstance(node.value, dict):
                hint = f'write it below [kernel.{table.name}.target."cuda:*"], or another glob'
                raise node.key_error(f"`{pattern}` is said of no target", hint)
            entries = node.table()
            options = read_options({name: each for name, each in entries.items() if name not in names}, table.problems)
            axes = tuple(_section_axis(table, name, each) for name, each in entries.items() if name in names)
            sections.append(TargetSection(pattern, options, axes, node.key))
    return tuple(sections)


def _section_axis(table: KernelTable, name: str, node: Node) -> Axis:
    """An array of values, or one value by itself."""
    return read_axis(table, name, node) if isinstance(node.value, list) else Axis(name, (read_constant(table, node),))


def read_only(table: KernelTable) -> tuple[str, ...]:
    """The globs of the targets that the kernel is built for."""
    with table.problems.collect():
        if "only" in table.fields:
            if not table.fields["only"].items():
                raise table.fields["only"].error("`only` is empty", "leave it out for all targets of the project")
            for item in table.fields["only"].items():
                table.problems.add(pattern_errors(item.text(), item.place))
            return table.fields["only"].texts()
    return ("*",)


def pattern_errors(pattern: str, place: Place) -> Iterator[SpecError]:
    """An error when a glob selects no target that anybody can build for."""
    if not targets_like(pattern):
        forms = [*(f"{backend.value}:*" for backend in Backend), *map(str, EVERY_TARGET)]
        yield SpecError(f"target `{pattern}` matches nothing", place, nearest_hint(pattern, forms, "targets"))


def check_options(table: KernelTable, defaults: Mapping[str, Node], targets: Sequence[Target], axes: set[str]) -> None:
    """Every option of the kernel against every target it is built for; `axes` are names that are no options."""
    matrix = {name: node for name, node in table.sub_table("matrix").items() if name in ALL_OPTIONS - axes}
    sections = [OptionNodes("*", defaults), OptionNodes("*", {**table.sub_table("options"), **matrix})]
    table.problems.add(unknown_options(table.sub_table("options"), "*"))
    for pattern, node in table.sub_table("target").items():
        if not isinstance(node.value, dict):  # told where the sections are read
            continue
        table.problems.add(pattern_errors(pattern, node.key))
        options = {name: each for name, each in node.table().items() if name not in axes}
        table.problems.add(unknown_options(options, pattern, axes))
        sections.append(OptionNodes(pattern, options))
    table.problems.add(option_errors(sections, targets))
    configs = table.fields.get("configs")
    for item in configs.items() if configs and isinstance(configs.value, list) else []:
        options = {name: node for name, node in item.table().items() if name in ALL_OPTIONS - axes}
        table.problems.add(option_errors([OptionNodes("*", options)], targets))


def check_defaults(defaults: Mapping[str, Node], targets: Sequence[Target]) -> Iterator[SpecError]:
    """The project's default options: known, and such that each target which has the option can have the value."""
    yield from unknown_options(defaults, "*")
    yield from option_errors([OptionNodes("*", defaults)], targets)


@functools.lru_cache(maxsize=1024)
def targets_like(*patterns: str) -> tuple[Target, ...]:
    """The targets that anybody can build for and one of the globs selects."""
    return tuple(target for target in EVERY_TARGET if any(map(target.matches, patterns)))


@functools.lru_cache(maxsize=1024)
def backends_like(*patterns: str) -> frozenset[Backend]:
    """The backends of those."""
    return frozenset(target.kind for target in targets_like(*patterns))


def unknown_options(options: Mapping[str, Node], pattern: str, axes: Iterable[str] = ()) -> Iterator[SpecError]:
    """An error for each option that no target like `pattern` has; one that only some have is for these."""
    backends = backends_like(pattern)
    known = {rule.name for backend in backends for rule in OPTIONS[backend]}
    for name, node in options.items():
        if backends and name not in known:
            words = " or ".join(sorted(f"{backend.value}" for backend in backends))
            message = f"{words} targets have no option `{name}`" if name in ALL_OPTIONS else f"unknown option `{name}`"
            yield node.key_error(message, nearest_hint(name, {*known, *axes}, "names"))


def option_errors(sections: Sequence[OptionNodes], targets: Iterable[Target]) -> Iterator[SpecError]:
    """An error for each option value that a target cannot have, once, with all the targets that refuse it."""
    refused: dict[tuple[str, Place], tuple[Node, list[str]]] = {}
    for target in targets:
        for name, value in _effective(sections, target):
            own = RULES[name].fault(value.value) if name in RULES else None
            has = find_option(target.kind, name) is not None
            fault = own or (option_fault(target, name, value.value) if has else None)
            if fault and not value.is_too_large:  # which is told where it is read
                message = f"option `{name}` = {format_constant(value.scalar())} {fault}"
                refused.setdefault((message, value.place), (value, []))[1].append("" if own else str(target))
    for (message, _), (value, names) in refused.items():
        refusing = ", ".join(filter(None, names))
        yield value.error(f"{message}: {refusing} cannot have it" if refusing else message)


def _effective(sections: Sequence[OptionNodes], target: Target) -> Iterator[tuple[str, Node]]:
    """Every (option, value) that holds for a target; of an axis, each of its values."""
    nodes: dict[str, Node] = {}
    for section in sections:
        if target.matches(section.pattern):
            nodes.update(section.nodes)
    for name, node in nodes.items():
        for value in node.items() if isinstance(node.value, list) else [node]:
            yield name, value
