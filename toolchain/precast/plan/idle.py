"""What a project's settings say to no effect: globs that select nothing, targets without a kernel, options and
variables that nobody reads. In: the settings and what was planned by them. Out: warnings with their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from precast.errors import Place, find_nearest
from precast.passes.registry import matches
from precast.project import Project
from precast.spec.model import Unit
from precast.spec.selection import PassSelection
from precast.target import Backend, find_option
from precast.variables import KNOWN, PREFIXES


def find_idle_settings(project: Project) -> Iterator[str]:
    """What the settings alone tell."""
    if ("version", "") in project.places:
        hint = "write `version` in [tool.precast]"
        yield f"{project.places['version', '']}: a dynamic version is not known here: the release has version 0; {hint}"
    kinds = {target.kind for target in project.targets}
    if project.settings.ptxas and Backend.CUDA not in kinds:
        yield f"{project.places['ptxas', '']}: `ptxas` does nothing: no target is NVIDIA's"
    for name, node in project.defaults.items():
        if not any(find_option(kind, name) for kind in kinds):
            yield f"{node.key}: option `{name}` does nothing: none of the project's targets has it"
    for name, _ in project.settings.environment:
        if name.startswith(PREFIXES) and name not in KNOWN:
            near = find_nearest(name, KNOWN, cutoff=0.8)
            hint = f"; did you mean `{near}`?" if near else ""
            yield f"{project.places['triton', name]}: Triton 3.9 has no variable `{name}`{hint}"


def find_idle_globs(project: Project, files: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """The globs of spec files that match none, beside some that do."""
    for glob, found in files.items():
        if not found:
            yield f"{project.places.get(('kernels', glob))}: no spec file matches `{glob}`"


def find_idle_targets(project: Project, units: Iterable[Unit]) -> Iterator[str]:
    """The targets that no kernel is built for, of the `units` of all kernels."""
    having = {unit.target for unit in units}
    for target in project.targets:
        if target not in having:
            yield f"{project.places.get(('targets', str(target)))}: no kernel is built for `{target}`"


def find_idle_passes(project: Project, units: Sequence[Unit]) -> Iterator[str]:
    """The passes that are selected for none of the `units` of all kernels and targets; else their globs of none."""
    for selection in filter(lambda each: each.enabled, project.passes):
        if not any(matches(selection, unit) for unit in units):
            yield f"{selection.where}: pass `{selection.use}` is selected for no unit"
        else:
            yield from _idle_globs(selection, units)


def _idle_globs(selection: PassSelection, units: Sequence[Unit]) -> Iterator[str]:
    selects: Mapping[str, Callable[[Unit, str], bool]] = {
        "kernels": lambda unit, glob: fnmatchcase(unit.kernel, glob),
        "variants": lambda unit, glob: fnmatchcase(str(unit.variant).partition(":")[2], glob),
        "targets": lambda unit, glob: unit.target.matches(glob),
    }
    places: Mapping[tuple[str, str], Place] = selection.places.globs
    for (key, glob), place in places.items():
        if not any(selects[key](unit, glob) for unit in units):
            yield f"{place}: `{glob}` selects no unit"
