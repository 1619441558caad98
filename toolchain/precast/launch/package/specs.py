"""The spec of what was launched: variants of one function as a kernel's table, and such a table as TOML.

In: `Launched` variants. Out: the table that makes a unit of each. One writer for the spec that a refused call ends with
and for those that `precast record` writes; this file goes into a release's Python package, with the standard library
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from precast.spec.spelling import Spelled, items_of, python_value

Table = dict[str, Any]
SECTIONS = ("args", "constants", "options")  # tables of their own; all else stands in the kernel's own table
_ALIGNMENT = 16  # bytes, or a factor: what the JIT asks of an address and of an integer


class Unstated(Exception):
    """No spec can say what a call needs; the text says why."""


@dataclass(frozen=True)
class Variant:
    """What one compiled kernel was launched with.

    Values of constexprs are as TOML has them; hints are written as in a unit's name, `x%16`, `n==1`.
    """

    types: Mapping[str, str]  # run-time arguments, in the source's order
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    hints: frozenset[str] = frozenset()
    range32: frozenset[str] = frozenset()  # pointers whose buffer ends below 2 GiB

    @property
    def row(self) -> str:
        """What must be joint, as a text: types, constexprs and options; `1` is not `true`."""
        return "\n".join(map(str, (*_items(self.types), "", *_items(self.constants), "", *_items(self.options))))

    @property
    def key(self) -> str:
        return f"{self.row}\n\n{' '.join(sorted(self.hints))}"


def _items(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={format_toml(values[name])}" for name in sorted(values)]


def state_value(what: str, value: Any) -> Any:
    """A constexpr's value as TOML has it; a text that a spec would take for something else has quotes of its own."""
    if value is None:
        return "None"
    if isinstance(value, Spelled) and value.is_tuple:
        return [state_value(what, item) for item in items_of(value)]
    if isinstance(value, Spelled):
        return python_value(value)
    if isinstance(value, str) and (value == "None" or value[:1] == '"' or ":" in value):
        return json.dumps(value, ensure_ascii=False)
    if type(value) in (str, bool, int, float):
        return value
    raise Unstated(f"{what} is a {type(value).__name__}, which is no value of a spec")


def make_table(source: str, variants: Sequence[Variant]) -> Table:
    """A kernel's table, without its grid: a unit of each variant.

    What all variants share is said once; what differs is joint, in `configs`. A hint that all of them hold is a
    promise, every other is one of a set.
    """
    rows = list({each.row: each for each in variants}.values())
    types, axes = _place_types([each.types for each in rows], _names(rows))
    constants, constant_columns = _part([each.constants for each in rows])
    options, option_columns = _part([each.options for each in rows])
    configs = _join(axes, constant_columns, option_columns)
    aligned, equal = _held(variants, f"%{_ALIGNMENT}"), _held(variants, "==1")
    ranged = [name for name in types if _in_all(variants, name, lambda each: each.range32, name)]
    promised = {*(f"{name}%{_ALIGNMENT}" for name in aligned), *(f"{name}==1" for name in equal)}
    hints = _hint_sets(variants, promised)
    table: Table = {"source": source}
    if configs:
        table["configs"] = configs
    if hints != [[]]:
        table["hints"] = hints
    arguments = {name: _argument(text, name in aligned, name in equal, name in ranged) for name, text in types.items()}
    sections = {"args": arguments, "constants": constants, "options": options}
    return {**table, **{name: entries for name, entries in sections.items() if entries}}


def _names(rows: Iterable[Variant]) -> set[str]:
    return {name for row in rows for name in (*row.types, *row.constants, *row.options)}


def _argument(text: str, aligned: bool, equal: bool, ranged: bool) -> Any:
    promises = (("align", _ALIGNMENT, aligned), ("equal", 1, equal), ("range32", True, ranged))
    held = {name: value for name, value, holds in promises if holds}
    return {"type": text, **held} if held else text


def _in_all(variants: Iterable[Variant], name: str, of: Any, word: str) -> bool:
    """Whether `word` is in what each variant that has the argument has."""
    having = [of(each) for each in variants if each.types.get(name, "none") != "none"]
    return bool(having) and all(word in each for each in having)


def _held(variants: Sequence[Variant], ending: str) -> list[str]:
    """The arguments whose hint every launch held."""
    names = dict.fromkeys(name for each in variants for name in each.types)
    return [name for name in names if _in_all(variants, name, lambda each: each.hints, f"{name}{ending}")]


def _hint_sets(variants: Sequence[Variant], promised: set[str]) -> list[list[str]]:
    """The sets in the order in which they were seen, each in the order of the arguments."""
    order = {name: place for each in variants for place, name in enumerate(each.types)}
    found = [
        sorted(each.hints - promised, key=lambda hint: order[hint.partition("%")[0].partition("==")[0]])
        for each in variants
    ]
    return [list(each) for each in dict.fromkeys(map(tuple, found))]


def _part(rows: Sequence[Mapping[str, Any]]) -> tuple[Table, list[Table]]:
    """What all rows say alike, and for each row what differs."""
    names = dict.fromkeys(name for row in rows for name in row)
    texts = {name: {format_toml(row[name]) if name in row else None for row in rows} for name in names}
    shared = [name for name in names if len(texts[name]) == 1 and not is_filled_in(rows[0][name])]
    return (
        {name: rows[0][name] for name in shared},
        [{name: row[name] for name in names if name in row and name not in shared} for row in rows],
    )


def is_filled_in(value: Any) -> bool:
    """Whether a constant of this value would name an axis in braces: in a config it is as it stands."""
    return "{" in format_toml(value)


def _place_types(rows: Sequence[Mapping[str, str]], taken: set[str]) -> tuple[dict[str, str], list[Table]]:
    """The arguments' types, with a `{place}` where they differ, and for each row what fills the places.

    Pointers that differ in what they point to share an axis where they do so together.
    """
    texts: dict[str, str] = {}
    places: dict[tuple[str, ...], str] = {}
    names = list(dict.fromkeys(name for row in rows for name in row))
    several = len({_column(rows, name)[1] for name in names if _column(rows, name)[0]}) > 1
    for name in names:
        prefix, column = _column(rows, name)
        if len(set(column)) == 1:
            texts[name] = prefix + column[0]
            continue
        if column not in places:
            wish = f"{name}_type" if not prefix else f"{name}_dtype" if several else "dtype"
            places[column] = _free(wish, {*taken, *places.values()})
        texts[name] = f"{prefix}{{{places[column]}}}"
    return texts, [{place: column[index] for column, place in places.items()} for index in range(len(rows))]


def _column(rows: Sequence[Mapping[str, str]], name: str) -> tuple[str, tuple[str, ...]]:
    """An argument's types, without what begins them all where they are pointers of one kind that differ."""
    column = tuple(row.get(name, "none") for row in rows)
    if len(set(column)) > 1:
        for prefix in ("*k", "*"):
            if all(each.startswith(prefix) for each in column):
                return prefix, tuple(each[len(prefix) :] for each in column)
    return "", column


def _free(wish: str, taken: set[str]) -> str:
    numbered = (wish, *(f"{wish}_{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in numbered if each not in taken)


def _join(*columns: list[Table]) -> list[Table]:
    joined = [{name: value for part in parts for name, value in part.items()} for parts in zip(*columns, strict=True)]
    return joined if any(joined) else []


def render_kernel(name: str, table: Table) -> str:
    """The table as TOML, from its header on."""
    own = [f"{key} = {_render(value)}" for key, value in table.items() if key not in SECTIONS]
    lines = [f"[kernel.{name}]", *own]
    for section in SECTIONS:
        if section in table:
            entries = [f"{format_key(key)} = {format_toml(value)}" for key, value in table[section].items()]
            lines += ["", f"[kernel.{name}.{section}]", *entries]
    return "\n".join(lines)


def _render(value: Any) -> str:
    """A value; an array of several arrays or tables has a line for each."""
    if isinstance(value, list) and len(value) > 1 and isinstance(value[0], (list, dict)):
        return "".join(["[\n", *(f"    {format_toml(each)},\n" for each in value), "]"])
    return format_toml(value)


def format_toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{format_key(key)} = {format_toml(each)}' for key, each in value.items())} }}"
    return f"[{', '.join(map(format_toml, value))}]"


def format_key(name: str) -> str:
    """A name as a key: one with letters beyond ASCII has quotes."""
    return name if name.isascii() else format_toml(name)
