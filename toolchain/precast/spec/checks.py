"""Checks that need the whole kernel: every value is given, every name is used, the grid is computable.

In: a kernel's table and the spec that was read from it. Out: the grid, and problems at their places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from precast.errors import SpecError, find_nearest, nearest_hint
from precast.grid import Expression, Opcode, Step, parse_grid, parse_requirement, parse_value
from precast.spec.keys import MAXIMUM_REQUIREMENTS
from precast.spec.matrix import AXIS_PLACE, config_names
from precast.spec.model import Constant, KernelSpec
from precast.spec.options import ALL_OPTIONS
from precast.spec.signature import Parameter, Signature
from precast.spec.table import KernelTable
from precast.spec.toml import Node
from precast.spec.types import is_unknown
from precast.target import Target


def check_names(table: KernelTable, spec: KernelSpec) -> None:
    """Every axis is a constexpr, an option, or filled in somewhere; every `{axis}` place names an axis."""
    axes = {axis.name for axis in spec.axes} | {name for config in spec.every_config for name, _ in config}
    every_axis = axes | {axis.name for section in spec.targets for axis in section.axes}
    tried = table.sub_table("matrix")
    filled = set()
    entries = table.sub_table("args")
    nodes = [entries[each.name] for each in spec.arguments if each.name in entries]
    for node in [*nodes, *table.sub_table("constants").values()]:
        text = (
            node if isinstance(node.value, str) else node.table().get("type") if isinstance(node.value, dict) else None
        )
        for name in AXIS_PLACE.findall(str(text.value)) if text else []:
            filled.add(name)
            if name not in every_axis and name not in tried and text:  # one that was refused has its error already
                table.problems.add([text.error(f"there is no axis `{name}`", nearest_hint(name, every_axis, "axes"))])
    for axis in spec.axes:
        if axis.name not in {*spec.constexprs, *filled, *ALL_OPTIONS}:
            near = filter(None, [find_nearest(axis.name, ALL_OPTIONS)])
            message = f"axis `{axis.name}` is no constexpr of `{spec.source.function}`, and nothing uses it"
            hint = nearest_hint(axis.name, [*spec.constexprs, *near], "constexprs")
            table.problems.add([tried[axis.name].key_error(message, hint)])


def check_values(
    table: KernelTable,
    spec: KernelSpec,
    signature: Signature,
    targets: Sequence[Target],
    is_asked: Callable[[str], bool] = lambda name: False,
) -> None:
    """Every run-time argument has a type and every constexpr a value, on each target, but those yet to be asked for."""
    typed = set(table.sub_table("args"))
    # One that was refused has its error already.
    tried = {*table.sub_table("matrix"), *table.sub_table("constants"), *(() if spec.configs else config_names(table))}
    for parameter in signature.parameters:
        if not parameter.constexpr and parameter.name not in typed:
            message = f"argument `{parameter.name}` of `{spec.source.function}` has no type"
            hint = f'write `{parameter.name} = "i32"`, or its type, in [kernel.{spec.name}.args]'
            table.problems.add([table.place_of("args").key_error(message, hint)])
        valued = (
            not parameter.constexpr
            or is_asked(parameter.name)
            or all(parameter.name in given_names(spec, target) for target in targets)
        )
        if not valued and parameter.name not in tried:
            table.problems.add([_valueless(table, spec, parameter)])


def given_names(spec: KernelSpec, target: Target) -> set[str]:
    """The constexprs that have a value on a target."""
    sections = [section for section in spec.targets if target.matches(section.pattern)]
    axes = [*spec.axes, *(axis for section in sections for axis in section.axes)]
    configs = spec.configs_on(target)
    joint = set.intersection(*({name for name, _ in config} for config in configs)) if configs else set()
    return {axis.name for axis in axes} | joint | set(dict(spec.constants)) | set(spec.defaults_on(target))


def _valueless(table: KernelTable, spec: KernelSpec, parameter: Parameter) -> SpecError:
    message = f"constexpr `{parameter.name}` of `{spec.source.function}` has no value"
    hint = f"write `{parameter.name} = [128]`, or its values, in [kernel.{spec.name}.matrix]"
    faults = {name: fault for each in spec.imported for name, fault in each.faults}
    if parameter.name in faults:
        message += f": its default `{parameter.default_text}` is {faults[parameter.name]}"
    elif parameter.name in spec.heuristics:
        message += ": its heuristic runs on the host"
    elif spec.source_configs and any(parameter.name in dict(config) for config in spec.source_configs):
        hint = f'write `configs = "source"` in [kernel.{spec.name}] for the configs of @triton.autotune'
    return table.place_of("matrix").key_error(message, hint)


def read_grid(table: KernelTable, spec: KernelSpec) -> tuple[Expression, ...]:
    """One to three expressions over integer arguments, axes and constexprs; `1` for each that is not written.

    None without a grid: then each call gives one.
    """
    found: list[Expression] = []
    node = table.fields.get("grid")
    if node is None:
        return ()
    with table.problems.collect():
        if not 1 <= len(node.items()) <= 3:
            raise node.error(f"a grid has one to three dimensions, not {len(node.items())}")
        found += _read_expressions(table, spec, node, _read_dimension)
    return (*found, *(parse_grid("1", ()) for _ in range(3 - len(found))))


def read_requirements(table: KernelTable, spec: KernelSpec) -> tuple[Expression, ...]:
    """The comparisons of `requires`, over what a grid may be computed from."""
    node = table.fields.get("requires")
    if node is None:
        return ()
    with table.problems.collect():
        if len(node.items()) > MAXIMUM_REQUIREMENTS:
            raise node.error(f"{len(node.items())} requirements; a kernel has at most {MAXIMUM_REQUIREMENTS}")
        return tuple(_read_expressions(table, spec, node, _read_requirement))
    return ()


def _read_expressions(
    table: KernelTable, spec: KernelSpec, node: Node, read: Callable[[Node, Collection[str]], Expression]
) -> Iterator[Expression]:
    """The expressions of an array, of which each name is an integer's."""
    integers = set(grid_names(spec))
    known = {*integers, *spec.parameters, *table.sub_table("matrix")} - {"exclude"}
    for item in node.items():
        with table.problems.collect():
            expression = read(item, known)
            for name in expression.names:
                if name not in integers and name in read_names(spec):
                    raise item.error(f"`{name}` is no integer: a {expression.noun} is computed from integers")
            yield expression


def read_equals(table: KernelTable, spec: KernelSpec) -> tuple[tuple[str, Expression], ...]:
    """What each argument with `equal` equals: an integer, or an expression of axes and constexprs."""
    found = []
    for argument in spec.arguments:
        if argument.fixed:
            with table.problems.collect():
                node = table.sub_table("args")[argument.name].table()["equal"]
                found.append((argument.name, _read_value(table, spec, node)))
    return tuple(found)


def _read_value(table: KernelTable, spec: KernelSpec, node: Node) -> Expression:
    if type(node.value) is not str:
        return Expression(str(node.integer()), (Step(Opcode.CONSTANT, node.integer()),), node.place, "value")
    integers = set(grid_names(spec))
    known = {*integers, *spec.parameters, *table.sub_table("matrix")} - {"exclude"}
    expression = parse_value(node.text(), known, node.inside)
    for name in expression.names:
        if name in {argument.name for argument in spec.arguments}:
            hint = f'write `requires = ["{node.path[-2]} == {name}"]` in [kernel.{spec.name}]'
            raise node.error(f"`{name}` is an argument: a value is computed from axes and constexprs", hint)
        if name not in integers and name in read_names(spec):
            raise node.error(f"`{name}` is no integer: a value is computed from integers")
    return expression


def _read_requirement(item: Node, known: Collection[str]) -> Expression:
    return parse_requirement(item.text(), known, item.inside)


def _read_dimension(item: Node, known: Collection[str]) -> Expression:
    """One entry of `grid`: an expression's text, or an integer."""
    if type(item.value) is int:
        return parse_grid(str(item.value), (), item.place)
    return parse_grid(item.text(), known, item.inside)


def read_names(spec: KernelSpec) -> set[str]:
    """Arguments, axes and constexprs that were read; what is missing from them has been complained about."""
    axes = [*spec.axes, *(axis for section in spec.targets for axis in section.axes)]
    names = {name for values in (spec.every_default, spec.constants, *spec.every_config) for name, _ in values}
    return names | {argument.name for argument in spec.arguments} | {axis.name for axis in axes}


def grid_names(spec: KernelSpec) -> Iterator[str]:
    """The names whose values are integers in every variant, or whose types are none at all: these are told there."""
    for argument in spec.arguments:
        if argument.type[:1] in "iu" or argument.type.startswith("{") or is_unknown(argument.type):
            yield argument.name
    values: dict[str, list[Constant]] = {name: [value] for name, value in spec.constants}
    stated = {*values, *(axis.name for axis in spec.axes)}
    for name, value in spec.every_default:
        if name not in stated:
            values.setdefault(name, []).append(value)
    for axis in [*spec.axes, *(axis for section in spec.targets for axis in section.axes)]:
        values.setdefault(axis.name, []).extend(axis.values)
    for config in spec.every_config:
        for name, value in config:
            values.setdefault(name, []).append(value)
    for name, found in values.items():
        if all(isinstance(value, int) for value in found):
            yield name
