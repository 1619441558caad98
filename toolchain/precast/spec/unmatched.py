"""What a spec says of something that is never there: values to exclude that no axis has, sections for targets that
`only` leaves out, options that no target has. Each would be passed over in silence.

In: a kernel's table and its spec. Out: errors at their places; warnings for what a spec may well say for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from precast.errors import SpecError
from precast.spec.counting import axes_on
from precast.spec.model import KernelSpec, Values, format_constant
from precast.spec.options import ALL_OPTIONS, backends_like, targets_like
from precast.spec.table import KernelTable
from precast.spec.toml import Node
from precast.spec.tuned import every_axis
from precast.target import Target, find_option


def check_unmatched(table: KernelTable, spec: KernelSpec) -> None:
    """Errors for all that no target which anybody can build for could ever match."""
    only = targets_like(*spec.only)
    table.problems.add(_exclude_errors(table, spec, only))
    table.problems.add(_section_errors(table, only))


def find_idle(table: KernelTable, spec: KernelSpec) -> Iterator[str]:
    """A warning for each option that none of the targets has which `only` selects, and for tuning of no problem."""
    for key in ("tune", "ship"):
        if key in table.fields and "problem" not in table.fields:
            yield f"{table.fields[key].key}: `{key}` does nothing: kernel `{spec.name}` has no problem to measure"
    kinds = backends_like(*spec.only)
    nodes = {**table.sub_table("options"), **table.sub_table("matrix")}
    for name in ALL_OPTIONS.intersection(nodes).difference(spec.constexprs):
        if kinds and not any(find_option(kind, name) for kind in kinds):
            selected = ", ".join(f"`{glob}`" for glob in spec.only)
            yield f"{nodes[name].key}: option `{name}` does nothing: {selected} has no such option"


def _exclude_errors(table: KernelTable, spec: KernelSpec, only: Sequence[Target]) -> Iterator[SpecError]:
    node = table.sub_table("matrix").get("exclude")
    items = node.items() if node and isinstance(node.value, list) else []
    words = {name: [format_constant(value) for value in values] for name, values in every_axis(spec).items()}
    seen: list[dict[str, str]] = []
    for item, entry in zip(items, spec.exclude, strict=False):  # one that cannot be read has its error
        said = {name: format_constant(value) for name, value in entry}
        # An axis that was refused has its error; what a source computes is known for the project's targets alone.
        open_names = {*table.sub_table("matrix"), *_computed_names(spec)}
        yield from item.unknown_keys([*words, *open_names.difference(words, {"exclude"})], "axis")
        if not said:
            yield item.error("this entry of `exclude` names no axis", 'write one or more: `{ dtype = "fp32" }`')
        elif said in seen:
            yield item.error("this entry of `exclude` is there twice")
        elif said.keys() <= words.keys() - _computed_names(spec):
            yield from _unmatched_values(spec, item, said, words, only)
        seen.append(said)


def _computed_names(spec: KernelSpec) -> set[str]:
    """What configs say that an import of the source told."""
    return {name for each in spec.imported for config in each.configs for name, _ in config}


def _unmatched_values(
    spec: KernelSpec, item: Node, said: dict[str, str], words: dict[str, list[str]], only: Sequence[Target]
) -> Iterator[SpecError]:
    """What an entry says of axes that are there, and no variant has."""
    wrong = [name for name, word in said.items() if word not in words[name]]
    for name in wrong:
        known = ", ".join(dict.fromkeys(words[name]))
        yield item.table()[name].error(f"axis `{name}` has no value {said[name]} to exclude", f"it has {known}")
    if not wrong and not any(_is_there(spec, target, said) for target in only):
        yield item.error("no target has a variant with these values together")


def _is_there(spec: KernelSpec, target: Target, said: dict[str, str]) -> bool:
    """Whether a target has a combination with these values: axes are free, what a config says is joint."""
    axes = {name: {format_constant(value) for value in axis.values} for name, axis in axes_on(spec, target).items()}
    return any(_goes_with(axes, config, said) for config in spec.configs_on(target) or ((),))


def _goes_with(axes: dict[str, set[str]], config: Values, said: dict[str, str]) -> bool:
    fixed = {name: {format_constant(value)} for name, value in config}
    return all(word in {**axes, **fixed}.get(name, set()) for name, word in said.items())


def _section_errors(table: KernelTable, only: Sequence[Target]) -> Iterator[SpecError]:
    for pattern, node in table.sub_table("target").items():
        selected = targets_like(pattern)  # else that is told
        if isinstance(node.value, dict) and selected and only and not any(target.matches(pattern) for target in only):
            hint = f"leave the section out, or add `{pattern}` to `only` of [kernel.{table.name}]"
            yield node.key_error(f"`only` leaves out every target that `{pattern}` selects", hint)
