"""A plan as a value: units with all that their keys are made of, and what a project's build comes to.

In: what `planning` found. Out: frozen values, and the jobs that compile units.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from precast.errors import Place, PlanError, nearest_hint
from precast.identity import Tools
from precast.job import Job
from precast.layout import STORE, facts_path, stage_paths, unit_folder
from precast.passes.selection import PassUse
from precast.plan.evidence import KernelSelection
from precast.plan.key import Ingredients, UnitInputs, describe_inputs
from precast.plan.parts import FailedPart
from precast.project import Project
from precast.reads import Looks
from precast.spec.closure import INSTALLED
from precast.spec.model import KernelSpec, Unit


@dataclass(frozen=True)
class PlannedUnit:
    """One unit with all that decides whether it must be compiled. Paths are project-relative."""

    unit: Unit
    given: UnitInputs

    @property
    def folder(self) -> str:
        return unit_folder(self.unit)

    @property
    def key(self) -> str:
        return self.given.key

    @property
    def passes(self) -> tuple[PassUse, ...]:
        return self.given.around.passes

    @property
    def inputs(self) -> tuple[str, ...]:
        """The source files of the project that its kernel's imports reach."""
        return tuple(name for name, _ in self.given.around.sources if not name.startswith(INSTALLED))

    @cached_property
    def ingredients(self) -> Ingredients:
        """What the key is made of, for people."""
        return describe_inputs(self.given)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The files that the unit's folder gets: the image, facts, and the text of every earlier stage."""
        *texts, image = stage_paths(self.unit)
        return (image, facts_path(self.unit), *texts)


@dataclass(frozen=True)
class Plan:
    """What a project's build comes to. `failed` is what it leaves out, in a build that goes on after errors."""

    project: Project
    kernels: tuple[KernelSpec, ...]
    units: tuple[PlannedUnit, ...]
    tools: Tools
    makers: str = ""  # identity of our own code that makes all but units
    warnings: tuple[str, ...] = ()
    failed: tuple[FailedPart, ...] = ()
    pass_places: Mapping[str, Place | None] = field(default_factory=dict, compare=False)  # for messages about a pass
    looks: Looks = field(default=Looks(), repr=False, compare=False)  # all that was looked at, but for plugins
    selection: tuple[KernelSelection, ...] = ()  # of the kernels that there is evidence for
    problems: str = ""  # of candidates: what there is to measure
    # For each kernel its spec's file and the modules whose text was read; what was read for all of them.
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    shared_files: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    alone: frozenset[str] = frozenset()  # kernels that can be planned without the others

    @property
    def outputs(self) -> tuple[str, ...]:
        """Every file that some unit makes."""
        return tuple(path for planned in self.units for path in planned.outputs)

    @cached_property
    def _by_text(self) -> Mapping[str, PlannedUnit]:
        return {str(planned.unit): planned for planned in self.units}

    def find(self, unit: str) -> PlannedUnit:
        """The unit of that text; `PlanError` with the nearest one when there is none."""
        if unit not in self._by_text:
            kernel = unit.partition("@")[0].partition(":")[0]
            near = [text for text, planned in self._by_text.items() if planned.unit.kernel == kernel]
            kernels = {planned.unit.kernel for planned in self.units}
            hint = nearest_hint(unit, near, "units") if near else nearest_hint(kernel, kernels, "kernels")
            raise PlanError(f"there is no unit `{unit}`", hint=hint)
        return self._by_text[unit]

    def job(self, unit: Unit) -> Job:
        """The job that compiles a unit of this plan."""
        planned = self.find(str(unit))
        return make_job(planned.given, self.project)


def make_job(given: UnitInputs, project: Project) -> Job:
    """The job that compiles what is `given`; of the project it takes places and limits. Its paths are absolute."""
    root, around = project.root, given.around
    return Job(
        unit=given.unit,
        passes=around.passes,
        settings=replace(around.settings, ptxas=project.settings.ptxas),
        tools=around.tools,
        sources=around.sources,
        project=root,
        python_path=tuple(os.path.normpath(os.path.join(root, each)) for each in project.python_path),
        store=os.path.join(root, STORE),
        output=os.path.join(root, unit_folder(given.unit)),
        time_limit_s=project.time_limit_s,
        memory_limit_mb=project.memory_limit_mb,
    )
