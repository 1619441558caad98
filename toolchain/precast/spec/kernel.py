"""Reads `[kernel.NAME]` tables: TOML nodes and the source's signature in, checked `KernelSpec`s out.

Everything that can be said without compiling is said here, at its place: unknown names, missing types and values,
options that a target cannot have, grids that do not parse, targets that nobody can build for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from precast.errors import BugError, SpecError, nearest_hint
from precast.spec.arguments import read_argument
from precast.spec.checks import check_names, check_values, read_equals, read_grid, read_requirements
from precast.spec.counting import check_count
from precast.spec.hints import check_hints, read_hint_sets
from precast.spec.imported import ImportedKernel
from precast.spec.matrix import read_axes, read_configs, read_constants, read_exclude
from precast.spec.model import ArgumentSpec, Constant, KernelSpec, Source
from precast.spec.names import MOST_CHARACTERS, kernel_fault
from precast.spec.options import ALL_OPTIONS, check_options, read_only, read_options, read_sections
from precast.spec.problems import Problems
from precast.spec.questions import add_answers, find_questions
from precast.spec.references import References
from precast.spec.signature import Signature, combine_signatures
from precast.spec.sources import SourceReader
from precast.spec.table import KernelTable
from precast.spec.toml import Document, Node
from precast.spec.tuned import read_tuning
from precast.spec.unmatched import check_unmatched, find_idle
from precast.target import Backend, Target

COOPERATIVE = "launch_cooperative_grid"


# What a source's module says on each target when it is imported, by the target's text. For what `ast` cannot tell.
Importing = Callable[[Source, Sequence[Target]], Mapping[str, ImportedKernel]]


@dataclass(frozen=True)
class Surroundings:
    """What a spec is read against: where sources are, the project's targets, and its default options."""

    sources: SourceReader
    targets: tuple[Target, ...]
    defaults: Mapping[str, Node]
    imported: Importing
    max_units: int  # of one kernel


def kernel_tables(document: Document, problems: Problems) -> Iterator[tuple[str, Node]]:
    """Name and table of each kernel in a spec file."""
    problems.add(document.root.unknown_keys(("kernel",), "table"))
    tables = document.root.table()
    if "kernel" not in tables:
        raise SpecError(f"`{document.name}` has no [kernel.NAME] table")
    yield from tables["kernel"].table().items()


def read_kernel(name: str, node: Node, folder: Path, around: Surroundings) -> KernelSpec:
    """One kernel; all that is wrong with it is raised together."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or "__" in name:
        hint = "it becomes a C function's: letters, digits and single underscores"
        raise node.key_error(f"`{name}` cannot be a kernel's name", hint)
    if len(name) > MOST_CHARACTERS:
        message = f"a kernel's name has at most {MOST_CHARACTERS} characters, this one has {len(name)}"
        raise node.key_error(message, "it becomes part of files' names")
    if kernel_fault(name):
        raise node.key_error(f"`{name}` cannot be a kernel's name", kernel_fault(name))
    table = KernelTable(name, node, node.table())
    table.check_shape()
    if "source" not in table.fields:
        table.problems.add([node.key_error(f"kernel `{name}` has no source", 'write `source = "file.py:function"`')])
        table.problems.raise_any()
    spec = None
    with table.problems.collect():
        source, signature = _read_source(table, folder, around)
        table = _with_source(table, source, signature, folder, around)
        spec = _complete(table, _read_spec(table, source, signature, around), signature, around)
    table.problems.raise_any()
    if spec is None:
        raise BugError("a kernel that is not read has a problem")
    return spec


def _read_source(table: KernelTable, folder: Path, around: Surroundings) -> tuple[Source, Signature]:
    """The kernel's source with its signature: from its text, else from an import of its module."""
    node = table.fields["source"]
    try:
        source, signature = around.sources.read(node, folder)
    except RecursionError:
        raise node.error(f"`{node.text()}` leads back to itself, or is nested too deeply to be read") from None
    if signature is not None:
        return source, signature
    only = read_only(replace(table, problems=Problems()))
    targets = [target for target in around.targets if any(map(target.matches, only))]
    signature = combine_signatures(node, around.imported(source, targets))
    return replace(source, gluon=signature.gluon), signature


def _complete(table: KernelTable, spec: KernelSpec, signature: Signature, around: Surroundings) -> KernelSpec:
    """The spec, checked, with its grid and what an import of its source tells. Nothing is imported for a wrong spec."""
    targets = tuple(target for target in around.targets if any(map(target.matches, spec.only)))
    questions = find_questions(spec, signature, targets)
    _check_targets(table, spec, around, targets)
    check_values(table, spec, signature, targets, questions.asks_for)
    if questions.any and table.problems.errors:
        return spec
    if questions.any:
        spec = add_answers(table, spec, questions, around.imported(spec.source, targets))
        check_values(table, spec, signature, targets)
    check_names(table, spec)
    check_unmatched(table, spec)
    check_count(table, spec, targets, around.max_units)
    spec = replace(
        spec, grid=read_grid(table, spec), equals=read_equals(table, spec), requires=read_requirements(table, spec)
    )
    return replace(spec, tuning=read_tuning(table, spec), warnings=tuple(find_idle(table, spec)))


def _with_source(
    table: KernelTable, source: Source, signature: Signature, folder: Path, around: Surroundings
) -> KernelTable:
    """The table, with what its values are read by."""
    constexprs = frozenset(each.name for each in signature.parameters if each.constexpr)
    references = References(around.sources, folder, around.sources.locate(source).root)
    return replace(table, constexprs=constexprs, references=references)


def _read_spec(table: KernelTable, source: Source, signature: Signature, around: Surroundings) -> KernelSpec:
    constexprs = tuple(each.name for each in signature.parameters if each.constexpr)
    axes = read_axes(table)
    defaults = dict(read_options(around.defaults, table.problems))
    options = {**defaults, **dict(read_options(table.sub_table("options"), table.problems))}
    arguments = _read_arguments(table, source, signature)
    run_time = [each.name for each in signature.parameters if not each.constexpr]
    return KernelSpec(
        name=table.name,
        source=source,
        grid=(),
        arguments=arguments,
        constexprs=constexprs,
        parameters=tuple(each.name for each in signature.parameters),
        defaults=tuple(
            (each.name, each.default)
            for each in signature.parameters
            if each.constexpr and each.has_default and not each.default_text
        ),
        run_time_defaults=tuple(
            (each.name, each.default)
            for each in signature.parameters
            if not each.constexpr and each.has_default and not each.default_text and _is_plain(each.default)
        ),
        constants=read_constants(table, constexprs),
        hints=read_hint_sets(table, source.function, run_time, arguments),
        axes=axes,
        exclude=read_exclude(table),
        configs=read_configs(table, signature),
        configs_of_source="configs" in table.fields and table.fields["configs"].value == "source",
        options=tuple(sorted(options.items())),
        targets=read_sections(table, {*constexprs, *(axis.name for axis in axes)}),
        only=read_only(table),
        source_configs=None if signature.configs is None else tuple(each.values for each in signature.configs),
        heuristics=signature.heuristics,
        docstring=signature.docstring,
        where=table.node.key,
        places=table.places,
    )


def _is_plain(value: Constant) -> bool:
    """Whether a launcher can put a default in an argument's place."""
    return value is None or isinstance(value, bool | int | float)


def _read_arguments(table: KernelTable, source: Source, signature: Signature) -> tuple[ArgumentSpec, ...]:
    """One spec for each run-time parameter that `args` names, in the source's order."""
    entries = table.sub_table("args")
    constexprs = {each.name for each in signature.parameters if each.constexpr}
    run_time = [each.name for each in signature.parameters if not each.constexpr]
    for name, node in entries.items():
        if name in constexprs:
            hint = f"give its values in [kernel.{table.name}.matrix], or one in [kernel.{table.name}.constants]"
            table.problems.add([node.key_error(f"`{name}` is a constexpr: it has a value and no type", hint)])
        elif name not in run_time:
            message = f"`{source.function}` has no argument `{name}`"
            table.problems.add([node.key_error(message, nearest_hint(name, run_time, "arguments"))])
    found = [read_argument(name, entries[name], table.problems) for name in run_time if name in entries]
    return tuple(each for each in found if each)


def _check_targets(table: KernelTable, spec: KernelSpec, around: Surroundings, targets: Sequence[Target]) -> None:
    """What does not go with some target, and options."""
    without = [str(target) for target in targets if target.kind is Backend.CPU]
    if spec.source.gluon and without:
        message = f"`{spec.source.function}` is a Gluon kernel: it cannot be built for {', '.join(without)}"
        hint = f'write `only = ["cuda:*"]` in [kernel.{spec.name}]'
        table.problems.add([table.fields["source"].error(message, hint)])
    _check_cooperation(table, spec, [target for target in targets if target.kind is Backend.CPU])
    axes = {axis.name for axis in spec.axes} - ALL_OPTIONS
    check_options(table, around.defaults, targets, axes.union(spec.constexprs))
    check_hints(table, spec)


def _check_cooperation(table: KernelTable, spec: KernelSpec, targets: list[Target]) -> None:
    """Programs that wait for one another need all of them running; a CPU runs a few at a time."""
    node = table.sub_table("options").get(COOPERATIVE)
    if node is not None and node.value is True and targets:
        message = f"`{COOPERATIVE}`: {', '.join(map(str, targets))} runs a few programs at a time"
        table.problems.add([node.key_error(message, f'write `only = ["cuda:*", "hip:*"]` in [kernel.{spec.name}]')])
