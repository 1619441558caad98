"""The hint sets of a kernel: those that `hints` writes, or those that `specialize` makes.

In: a kernel's table, or its spec. Out: `HintSet`s, each a variant of every combination of the matrix; problems at
their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from precast.errors import SpecError, nearest_hint
from precast.spec.arguments import (
    MAXIMUM_HINT_VARIANTS,
    check_divisor,
    check_specialized,
    count_hint_variants,
    hint_place,
    hint_variants,
)
from precast.spec.model import ArgumentSpec, Hint, HintSet, KernelSpec
from precast.spec.naming import parse_hint
from precast.spec.table import KernelTable
from precast.spec.toml import Node

SETS = 'write `hints = [["x%16", "n==1"], []]`: a variant for each set, and one without hints where `[]` stands'


def read_hint_sets(
    table: KernelTable, function: str, run_time: Collection[str], arguments: Iterable[ArgumentSpec]
) -> tuple[HintSet, ...]:
    """The sets of `hints` in the order written, each in the order of the arguments; none where there is no `hints`."""
    node = table.fields.get("hints")
    if node is None:
        return ()
    types = {argument.name: argument for argument in arguments}
    reader = _HintReader(function, table.constexprs, tuple(run_time), types)
    found: dict[tuple[Hint, ...], HintSet] = {}
    with table.problems.collect():
        if not node.items():
            raise node.error("`hints` is empty", SETS)
    for item in node.items() if isinstance(node.value, list) else []:
        with table.problems.collect():
            hints = reader.read_set(item)
            if hints in found:
                raise item.error(f"the hint set [{', '.join(map(str, hints))}] is there twice")
            found[hints] = HintSet(hints, item.place)
    table.problems.add(_specialized_too(table, arguments))
    return tuple(found.values())


def _specialized_too(table: KernelTable, arguments: Iterable[ArgumentSpec]) -> Iterable[SpecError]:
    """Two ways to say which hints there are cannot stand side by side."""
    for argument in arguments:
        if argument.specialize:
            node = table.sub_table("args")[argument.name].table()["specialize"]
            message = f"kernel `{table.name}` has `hints`, so `specialize` of `{argument.name}` has no place"
            yield node.key_error(message, "write what may hold together as sets of `hints`")


class _HintReader:
    """Reads hints of one kernel's arguments."""

    def __init__(
        self, function: str, constexprs: Collection[str], run_time: tuple[str, ...], types: dict[str, ArgumentSpec]
    ) -> None:
        self._function = function
        self._constexprs = constexprs
        self._run_time = run_time
        self._types = types

    def read_set(self, node: Node) -> tuple[Hint, ...]:
        if not isinstance(node.value, list):
            raise node.error("a set of `hints` is an array of texts", SETS)
        hints: dict[str, Hint] = {}
        for item in node.items():
            hint = self._read_hint(item)
            if hint.argument in hints:
                raise item.error(f"the set has two hints for `{hint.argument}`", "leave one of them out")
            hints[hint.argument] = hint
        return tuple(hints[name] for name in self._run_time if name in hints)

    def _read_hint(self, node: Node) -> Hint:
        hint = parse_hint(node.text())
        if hint is None or hint.divisor not in (16, 1):
            message = f"`{node.text()}` is no hint"
            raise node.error(message, "write `x%16` for an argument that 16 divides, `n==1` for one that is 1")
        name = hint.argument
        if name in self._constexprs:
            raise node.error(f"`{name}` is a constexpr: it has values and no hints")
        if name not in self._run_time:
            near = nearest_hint(name, self._run_time, "arguments")
            raise node.error(f"`{self._function}` has no argument `{name}`", near)
        if name in self._types and self._types[name].fixed:
            raise node.error(f"`{name}` has no hints: `equal` says its value")
        if name in self._types:
            check_divisor(node, self._types[name].type, hint.divisor)
            check_specialized(node, self._types[name].type)
        return hint


def check_hints(table: KernelTable, spec: KernelSpec) -> None:
    """Specialisation makes at most eight variants of each combination of the matrix; sets that are written, any."""
    count = count_hint_variants(spec.arguments)
    if not spec.hints and count > MAXIMUM_HINT_VARIANTS:
        message = (
            f"`specialize` makes {count} variants of every combination; at most {MAXIMUM_HINT_VARIANTS} are allowed"
        )
        hint = "leave out `each`, so that arguments hold together, specialise fewer, or write the sets of `hints`"
        table.problems.add([SpecError(message, hint_place(spec.arguments), hint)])


def count_hint_sets(spec: KernelSpec) -> int:
    """How many variants of each combination of the matrix there are at most."""
    return len(spec.hints) or count_hint_variants(spec.arguments)


def hint_sets(spec: KernelSpec, present: Collection[str]) -> tuple[HintSet, ...]:
    """The hint sets of a variant that has the arguments `present`: the absent have no hint, and equal sets are one."""
    if not spec.hints:
        made = hint_variants([argument for argument in spec.arguments if argument.name in present])
        return tuple(map(HintSet, made))
    found: dict[tuple[Hint, ...], HintSet] = {}
    for each in spec.hints:
        hints = tuple(hint for hint in each.hints if hint.argument in present)
        found.setdefault(hints, HintSet(hints, each.where))
    return tuple(found.values())
