"""The steps of a build: units, packs, CPU libraries, launcher sources, the library, the release; and what feeds which.

In: a plan. Out: frozen steps in the order of the flow. A step is named by what it makes; its key covers all that may
change its outputs, so one question to the index says whether it is fresh. Pure: no file is read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from precast.errors import PlanError, PrecastError
from precast.launch.formats.interface import describe_interface, interface_digest
from precast.launch.formats.values import LAUNCH_ABI, SCHEMA, ReleaseInterface
from precast.passes.registry import Origin
from precast.plan import FailedPart, Plan, PlannedUnit
from precast.spec.model import Unit
from precast.spec.problems import Problems
from precast.target import Backend, Target

# The build folder, relative to the project.
BUILD = "build"
INDEX_FILE = f"{BUILD}/index.sqlite"
STORE = f"{BUILD}/store"
UNITS = f"{BUILD}/units"
PLUGINS = f"{BUILD}/plugins"
PACKS = f"{BUILD}/packs"
LAUNCHERS = f"{BUILD}/launchers"
OBJECTS = f"{BUILD}/objects"
LIBRARIES = f"{BUILD}/lib"
SIGNATURES = f"{BUILD}/sconsign"
GENERATED = "generated"
SCONSTRUCT = "SConstruct"

Digest = Callable[[str], str | None]


@dataclass(frozen=True)
class Step:
    """One node of the graph. Paths are relative to the project.

    `key` covers what is known before anything is built, `inputs` are files whose content counts as well.
    """

    name: str
    key: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def full_key(self, digest: Digest) -> str:
        """The key with the inputs' content in it; "" while an input is not there."""
        total = hashlib.sha256(f"{self.name}\0{self.key}\n".encode())
        for path in self.inputs:
            content = digest(path)
            if content is None:
                return ""
            total.update(f"{path}\0{content}\n".encode())
        return total.hexdigest()


@dataclass(frozen=True)
class ProbeStep(Step):
    """Describes one plugin module, in a child process."""

    origin: Origin


@dataclass(frozen=True)
class UnitStep(Step):
    """Compiles one unit."""

    planned: PlannedUnit


@dataclass(frozen=True)
class FailedStep(Step):
    """Stands for what could not be planned, and fails; so nothing is made of the rest but its units."""

    error: PrecastError


@dataclass(frozen=True)
class ImagesStep(Step):
    """Puts the images of several units into one file: a pack, or a CPU shared object."""

    target: Target
    units: tuple[PlannedUnit, ...]
    place: str  # the file's path in the release


@dataclass(frozen=True)
class Steps:
    """All steps of one build."""

    probes: tuple[ProbeStep, ...]
    units: tuple[UnitStep, ...]
    packs: tuple[ImagesStep, ...]
    cpu_libraries: tuple[ImagesStep, ...]
    launchers: Step
    library: Step
    release: Step
    interface: ReleaseInterface
    failed: tuple[FailedStep, ...] = ()

    @cached_property
    def all(self) -> tuple[Step, ...]:
        """Every step, each after those that feed it. Without failed parts, that is all that makes a release."""
        if self.failed:
            return (*self.probes, *self.units, *self.failed)
        last = (self.launchers, self.library, self.release)
        return (*self.probes, *self.units, *self.packs, *self.cpu_libraries, *last)


def image_path(planned: PlannedUnit) -> str:
    """The unit's image in the build folder."""
    return planned.outputs[0]


def facts_path(planned: PlannedUnit) -> str:
    return f"{planned.folder}/facts.json"


def plan_steps(
    name: str,
    version: str,
    units: Sequence[PlannedUnit],
    probes: Sequence[tuple[Origin, tuple[str, ...]]],
    toolchain: str,
    failed: Sequence[FailedPart] = (),
) -> Steps:
    """The steps that turn `units` into a release of the project `name`, `version`.

    `probes` are the plugin modules with the files that decide what each says; `toolchain` is the digest of the code
    that makes packs, launchers and releases; `failed` is what the plan had to leave out.
    """
    interface = describe_interface(name, [each.unit for each in units])
    packs = tuple(_plan_pack(*group, members) for group, members in _group_for_packs(units).items())
    cpu_libraries = tuple(
        _plan_cpu_library(interface.name, target, members) for target, members in _group_for_cpu(units).items()
    )
    launchers = Step(
        "launchers", f"{toolchain} {version} {interface_digest(interface)}", (), (f"{LAUNCHERS}/files.json",)
    )
    library = Step("library", toolchain, launchers.outputs, (f"{LIBRARIES}/lib{interface.name}.so",))
    images = [path for step in packs + cpu_libraries for path in step.outputs]
    release = Step(
        "release",
        f"{toolchain} {name} {version}",
        (*[facts_path(each) for each in units], *images, *launchers.outputs, *library.outputs),
        (f"{GENERATED}/{name}/release.json",),
    )
    return Steps(
        tuple(_plan_probe(origin, files) for origin, files in probes),
        tuple(_plan_unit(each) for each in units),
        packs,
        cpu_libraries,
        launchers,
        library,
        release,
        interface,
        tuple(_plan_failed(number, part) for number, part in enumerate(failed)),
    )


def check_launchers(plan: Plan) -> None:
    """`PlanError` at the kernel, or `PlanFailed`, when the variants of one cannot share a launcher."""
    problems = Problems()
    members: dict[str, list[Unit]] = {spec.name: [] for spec in plan.kernels}
    for each in plan.units:
        members[each.unit.kernel].append(each.unit)
    for spec in plan.kernels:
        try:
            describe_interface(plan.project.name, members[spec.name])
        except PlanError as error:
            problems.add([PlanError(error.message, spec.where, error.hint)])
    problems.raise_any()


def _plan_probe(origin: Origin, files: tuple[str, ...]) -> ProbeStep:
    return ProbeStep(f"probe {origin.name}", origin.owner, files, (f"{PLUGINS}/{origin.probe_file}",), origin)


def _plan_unit(planned: PlannedUnit) -> UnitStep:
    return UnitStep(str(planned.unit), planned.key, (), planned.outputs, planned)


def _plan_failed(number: int, part: FailedPart) -> FailedStep:
    return FailedStep(part.name, "", (), (f"{BUILD}/failed-{number}",), part.error)


def _group_for_packs(units: Sequence[PlannedUnit]) -> dict[tuple[Target, str], list[PlannedUnit]]:
    groups: dict[tuple[Target, str], list[PlannedUnit]] = {}
    for each in units:
        if each.unit.target.kind is not Backend.CPU:
            groups.setdefault((each.unit.target, each.unit.kernel), []).append(each)
    return groups


def _group_for_cpu(units: Sequence[PlannedUnit]) -> dict[Target, list[PlannedUnit]]:
    groups: dict[Target, list[PlannedUnit]] = {}
    for each in units:
        if each.unit.target.kind is Backend.CPU:
            groups.setdefault(each.unit.target, []).append(each)
    return groups


def _plan_pack(target: Target, kernel: str, units: Sequence[PlannedUnit]) -> ImagesStep:
    return ImagesStep(
        name=f"pack {target} {kernel}",
        key=f"{SCHEMA} {[str(each.unit) for each in units]}",
        inputs=tuple(image_path(each) for each in units),
        outputs=(f"{PACKS}/{target.folder}/{kernel}.pack",),
        target=target,
        units=tuple(units),
        place=f"targets/{target.folder}/{kernel}.pack",
    )


def _plan_cpu_library(name: str, target: Target, units: Sequence[PlannedUnit]) -> ImagesStep:
    file = f"lib{name}.{target.folder}.so"
    return ImagesStep(
        name=f"library {target}",
        key=f"{LAUNCH_ABI}",
        inputs=tuple(image_path(each) for each in units),
        outputs=(f"{LIBRARIES}/{file}",),
        target=target,
        units=tuple(units),
        place=f"lib/{file}",
    )
