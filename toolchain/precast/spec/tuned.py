"""What a spec says of tuning: `[[kernel.NAME.problem]]`, `tune` and `ship`. In: a kernel's table and its spec. Out:
`Tuning`, and errors at their places."""

from __future__ import annotations

from collections.abc import Collection

from precast.errors import nearest_hint
from precast.grid import Expression, Opcode, Step, parse_value
from precast.spec.keys import TENSOR_KEYS
from precast.spec.matrix import AXIS_PLACE, read_constant
from precast.spec.model import Constant, KernelSpec
from precast.spec.problem import MOST_SHIPPED, Problem, ProblemArgument, Tuning
from precast.spec.rows import read_rows
from precast.spec.table import KernelTable
from precast.spec.toml import Node

SIZE = 'write a number, or an expression such as `"n_rows * n_cols"`'


def read_tuning(table: KernelTable, spec: KernelSpec) -> Tuning:
    """What is tuned. Without `tune` that is what the kernel's `configs` set, but for what fills places of types."""
    found = Tuning()
    with table.problems.collect():
        axes = _read_axes(table, spec)
        ship = table.fields["ship"].integer() if "ship" in table.fields else MOST_SHIPPED
        if ship < 1:
            raise table.fields["ship"].error(f"`ship` must be 1 or more, not {ship}")
        problems = tuple(_read_problems(table, spec, axes))
        rows = read_rows(table, spec, every_axis(spec))
        where = next((table.fields[key].key for key in ("problem", "selection") if key in table.fields), table.node.key)
        found = Tuning(problems, axes, ship, rows, where)
    return found


def _read_axes(table: KernelTable, spec: KernelSpec) -> tuple[str, ...]:
    node = table.fields.get("tune")
    known = every_axis(spec)
    if node is not None:
        for item in node.items():
            if item.text() not in known:
                raise item.error(f"there is no axis `{item.text()}`", nearest_hint(item.text(), known, "axes"))
        return node.texts()
    if "problem" not in table.fields:
        return ()
    filled = {name for argument in spec.arguments for name in AXIS_PLACE.findall(argument.type)}
    names = (name for config in spec.every_config for name, _ in config if name not in filled)
    found = tuple(dict.fromkeys(names))
    if not found:
        message = f"kernel `{spec.name}` has problems, and nothing of it is tuned"
        raise table.fields["problem"].key_error(message, 'write `tune = ["BLOCK"]` with axes, or `configs`')
    return found


def every_axis(spec: KernelSpec) -> dict[str, list[Constant]]:
    """All axes of a kernel with their values over all targets."""
    axes: dict[str, list[Constant]] = {}
    for axis in (*spec.axes, *(each for section in spec.targets for each in section.axes)):
        axes.setdefault(axis.name, []).extend(axis.values)
    for config in spec.every_config:
        for name, value in config:
            axes.setdefault(name, []).append(value)
    return axes


def _read_problems(table: KernelTable, spec: KernelSpec, tuned: Collection[str]) -> list[Problem]:
    if "problem" not in table.fields:
        return []
    if not spec.grid:
        message = f"kernel `{spec.name}` has problems and no grid to run them with"
        raise table.fields["problem"].key_error(message, f"write `grid` in [kernel.{spec.name}]")
    found = []
    for item in table.fields["problem"].tables():
        with table.problems.collect():
            found.append(_ProblemReader(table, spec, tuned, item).read())
    return found


class _ProblemReader:
    """Reads one table."""

    def __init__(self, table: KernelTable, spec: KernelSpec, tuned: Collection[str], node: Node) -> None:
        self._table = table
        self._spec = spec
        self._tuned = tuned
        self._node = node
        self._axes = every_axis(spec)
        self._types = {argument.name: argument.type for argument in spec.arguments}
        self._fields = node.table()
        integers = [name for name, kind in self._types.items() if kind[:1] in "iu{" and name in self._fields]
        self._names = [*integers, *(name for name in self._fields if name in self._axes)]

    def read(self) -> Problem:
        axes, arguments = [], {}
        for name, node in self._fields.items():
            with self._table.problems.collect():
                if name in self._axes:
                    axes.append((name, self._axis(name, node)))
                elif name in self._types:
                    arguments[name] = self._argument(name, node)
                else:
                    known = [*self._types, *self._axes]
                    message = f"`{self._spec.source.function}` has no argument or axis `{name}`"
                    raise node.key_error(message, nearest_hint(name, known, "names"))
        self._check_missing()
        return Problem(tuple(axes), tuple(arguments[name] for name in self._types if name in arguments), self._node.key)

    def _check_missing(self) -> None:
        standard = dict(self._spec.run_time_defaults)
        equal = dict(self._spec.equals)
        for name, kind in self._types.items():
            is_open = kind == "none" or kind.startswith("{")  # an argument that some variants may lack
            if name not in self._fields and name not in standard and not is_open and name not in equal:
                message = f"the problem says nothing of argument `{name}`"
                kinds = {"*": f'write `{name} = "n"` with its number of elements', "t": f'write `{name} = ["m", "n"]`'}
                raise self._node.key_error(message, kinds.get(kind[:1], f"write `{name} = 4096`, or an expression"))

    def _axis(self, name: str, node: Node) -> tuple[Constant, ...]:
        if name in self._tuned:
            raise node.key_error(
                f"`{name}` is tuned: a problem does not give it", "leave it out here, or out of `tune`"
            )
        known = self._axes[name]
        items = node.items() if isinstance(node.value, list) else [node]
        found = [read_constant(self._table, item) for item in items]
        for item, value in zip(items, found, strict=True):
            if not any(type(value) is type(each) and value == each for each in known):
                raise item.error(f"no variant of `{self._spec.name}` has {name}={item.value}")
        return tuple(found)

    def _argument(self, name: str, node: Node) -> ProblemArgument:
        kind = self._types[name]
        if kind.startswith("*"):
            return self._tensor(name, node)
        if kind.startswith("tensordesc"):
            shape = tuple(self._expression(each) for each in node.items())
            return ProblemArgument(name, expressions=shape)
        if kind.startswith("("):
            raise node.key_error(f"`{name}` is a tuple: no problem can state it")
        if isinstance(node.value, str):
            return ProblemArgument(name, expressions=(self._expression(node),))
        items = node.items() if isinstance(node.value, list) else [node]
        return ProblemArgument(name, numbers=tuple(self._number(kind, each) for each in items))

    def _tensor(self, name: str, node: Node) -> ProblemArgument:
        if not isinstance(node.value, dict):
            return ProblemArgument(name, expressions=(self._expression(node),))
        fields = node.table()
        self._table.problems.add(node.unknown_keys(TENSOR_KEYS.names))
        if "elements" not in fields:
            raise node.key_error(f"tensor `{name}` has no number of elements", 'write `elements = "m * n"`')
        below = self._expression(fields["below"]) if "below" in fields else None
        return ProblemArgument(name, expressions=(self._expression(fields["elements"]),), below=below)

    def _number(self, kind: str, node: Node) -> int | float | bool:
        value = node.scalar()
        if isinstance(value, str):
            raise node.error(f"`{node.label}` has several values: each is a number", "write the expression alone")
        if kind[:1] in "iu" and isinstance(value, float):
            raise node.error(f"`{node.label}` is an integer, and this is {value}")
        return float(value) if kind[:2] in ("fp", "bf") else value

    def _expression(self, node: Node) -> Expression:
        if type(node.value) is int:
            return Expression(str(node.integer()), (Step(Opcode.CONSTANT, node.integer()),), node.place, "value")
        if not isinstance(node.value, str):
            raise node.error(f"`{node.label}` cannot be {node.value}", SIZE)
        return parse_value(node.text(), self._names, node.inside)
