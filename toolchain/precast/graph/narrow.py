"""A build after an edit that touches few kernels: these are planned, and all else is taken as it was kept.

In: an earlier build of which nothing but some sources has moved. Out: the plan of the kernels that rest on these, and
the steps that may be stale; or nothing, where the edit changes more than the keys of their units: then everything is
planned. Costs what these kernels and the join of a release do, whatever else the project has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from precast import collector
from precast.digest import FileState
from precast.errors import PrecastError
from precast.graph.inputs import ImagesInputs, KeptImages
from precast.graph.kept import KeptKernel, KeptKernels, KeptPlan, KeptRelease, describe_kernels, read_kept
from precast.graph.making import read_kept_parts
from precast.graph.request import Request
from precast.graph.snapshot import Found, snapshot_path, stamp_of
from precast.graph.steps import (
    LaunchersStep,
    Steps,
    find_script,
    find_toolchain,
    plan_library,
    plan_release,
    plan_steps,
)
from precast.layout import KEPT_PLAN, LAUNCHERS
from precast.plan import Plan, plan_again
from precast.project import Project
from precast.release.contents import ImagesPart
from precast.shell import find_ignored


@dataclass(frozen=True)
class Narrow:
    """The kernels that may be stale, planned; `steps` are theirs, and those that all kernels share."""

    earlier: Found
    kernels: KeptKernels
    release: KeptRelease
    plan: Plan
    steps: Steps

    @property
    def other_units(self) -> int:
        return self.kernels.units - len(self.steps.units)

    @cached_property
    @collector.resting()
    def parts(self) -> Mapping[str, ImagesPart] | None:
        """What the release says of files with images that are as they were, by place; None where some of it is lost."""
        return read_kept_parts(self.steps.release.given.images, self.plan.project.folder)

    @cached_property
    def states(self) -> Mapping[str, FileState]:
        """The files that the release is made of, as they were just seen."""
        return self.earlier.snapshot.outputs.select(frozenset(self.release.inputs))

    def moved_since(self, root: Path) -> Iterator[str]:
        """The sources of all kernels that moved while these were built."""
        table = self.earlier.snapshot.sources
        try:
            for number, place in table.moved(str(root), os.stat):
                name = place.removeprefix(f"{root}/")
                if name not in self.earlier.moved and table.look(number, place) is None:
                    yield name
        except OSError as error:
            yield str(error.filename).removeprefix(f"{root}/")


def plan_narrowly(project: Project, request: Request, earlier: Found) -> Narrow | None:
    """To be asked by who holds the lock of the build folder; None where everything must be planned."""
    root, snapshot = project.folder.resolve(), earlier.snapshot
    if request.part or request.check is not None or not (earlier.moved and snapshot.plan):
        return None
    if stamp_of(root / snapshot_path(request)) != earlier.stamp:  # somebody has built meanwhile
        return None
    kept = read_kept(root / KEPT_PLAN, snapshot.plan)
    touched = kept.kernels.touched(earlier.moved) if kept else ()
    if kept is None or not touched:
        return None
    try:
        plan = plan_again(project, [*dict.fromkeys(kernel.spec for kernel in touched)])
        own = plan_steps(project, plan.units, plan.tools, toolchain=find_toolchain(plan)) if plan.units else None
    except PrecastError:  # told by a plan of everything
        return None
    if own is None or not _are_the_same(touched, plan, own):
        return None
    return _join(project, earlier, kept, plan, own)


def _are_the_same(touched: tuple[KeptKernel, ...], plan: Plan, own: Steps) -> bool:
    """Whether kernels are as they were but for the keys of their units, so that nothing else can have changed."""
    files = {kernel.name: (kernel.spec,) for kernel in touched}
    if own.cpu_libraries or plan.files.keys() != files.keys():
        return False
    now = describe_kernels(plan, own.packs, files, frozenset())
    return now == tuple(replace(kernel, files=(kernel.spec,)) for kernel in touched)


def _join(project: Project, earlier: Found, kept: KeptPlan, plan: Plan, own: Steps) -> Narrow:
    release, toolchain = kept.read_release(), find_toolchain(plan)
    packs = {step.given.place: step.given for step in own.packs}
    images: list[ImagesInputs | KeptImages] = [packs.get(each.place, each) for each in release.images]
    launchers = LaunchersStep("launchers", release.launchers, (), (f"{LAUNCHERS}/files.json",))
    library = plan_library(toolchain, release.launchers.interface, launchers.outputs + find_script(project))
    last = plan_release(
        project, toolchain, launchers, images, library, plan.tools, "", release.selection, release.inputs
    )
    steps = replace(own, launchers=launchers, library=library, release=last)
    warnings = (*find_ignored(os.environ, project.settings), *release.warnings)
    return Narrow(earlier, kept.kernels, release, replace(plan, warnings=warnings), steps)
