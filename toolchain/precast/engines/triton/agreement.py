"""Whether the kernel that was imported is the one that the plan read.

In: a unit, and its jit function as imported. Out: nothing, or a `StageFailure` at the function's own line. The plan
reads text and runs nothing: two definitions of one name, a value that is set anew or a list that grows can make it
read what never is. The launchers are made from what it read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from precast.engines import StageFailure
from precast.engines.triton.imported import describe_imported
from precast.errors import Place
from precast.spec.decorators import describe_config, digest_configs
from precast.spec.imported import ImportedKernel
from precast.spec.model import SourceReading, Unit, format_constant

HINT = "give each name one value: the plan reads the text of a source and does not run it"


def check_agreement(unit: Unit, function: Any, tuner: Any, place: Place) -> None:
    """`StageFailure` at `place`, the function's definition, for the first thing that the plan took for another."""
    difference = find_difference(unit, describe_imported(function, tuner))
    if difference:
        raise StageFailure(f"`{unit.source.text}` is not what the plan read: {difference}", place, HINT)


def find_difference(unit: Unit, imported: ImportedKernel) -> str:
    """What the plan read and what was imported, in a sentence; empty where they agree."""
    if unit.source.gluon != imported.gluon:
        read, found = ("Gluon", "Triton") if unit.source.gluon else ("Triton", "Gluon")
        return f"it read a {read} kernel and imported a {found} one"
    read = _signature((each.name, each.type == "constexpr") for each in unit.arguments)
    found = _signature((each.name, each.constexpr) for each in imported.parameters)
    if read != found:
        return f"it read the arguments {read} and imported {found}"
    return _defaults_difference(unit, imported) or _configs_difference(unit.reading, imported)


def _signature(parameters: Iterable[tuple[str, bool]]) -> str:
    return f"({', '.join(f'{name}: constexpr' if constexpr else name for name, constexpr in parameters)})"


def _defaults_difference(unit: Unit, imported: ImportedKernel) -> str:
    found = {each.name: each for each in imported.parameters}
    for name, value in unit.reading.defaults:
        read = f"it read `{name} = {format_constant(value)}` by default and imported"
        if not found[name].has_default:
            return f"{read} no default"
        if found[name].fault:
            return f"{read} {found[name].fault}".rstrip(",")
        if format_constant(found[name].default) != format_constant(value):
            return f"{read} `{name} = {format_constant(found[name].default)}`"
    return ""


def _configs_difference(reading: SourceReading, imported: ImportedKernel) -> str:
    if not reading.configs:
        return ""
    if imported.configs is None:
        return "it read configs of @triton.autotune and imported none"
    if imported.configs_fault:
        return f"it read configs of @triton.autotune and imported {imported.configs_fault}".rstrip(",")
    own = describe_config(reading.config)
    if own not in map(describe_config, imported.configs):
        return f"it read the config `{own}`, which the imported @triton.autotune does not have"
    same = digest_configs(imported.configs) == reading.configs
    return "" if same else "the imported @triton.autotune has other configs than those that it read"


def definition_of(function: Any, project: Path) -> Place:
    """Where a jit function is defined."""
    file = Path(function.file_name)
    shown = file.relative_to(project).as_posix() if file.is_relative_to(project) else str(file)
    return Place(shown, function.def_file_line_number, function.def_file_col_number)
