"""The steps of a build: units, packs, CPU libraries, launcher sources, the library, the release; and what feeds which.

In: a plan. Out: frozen steps in the order of the flow. A step is named by what it makes and holds one frozen value,
all that its maker is given; its key is that value's digest with those of the files that it names, so one question to
the index says whether it is fresh. Pure: no file is read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from precast.digest import digest_text
from precast.errors import PlanError, PrecastError
from precast.graph.inputs import (
    ImagesInputs,
    KeptImages,
    LaunchersInputs,
    LibraryInputs,
    NothingMade,
    ProbeInputs,
    ReleaseInputs,
    SelectionInputs,
)
from precast.identity import Tools
from precast.keyed import Keyed
from precast.launch.flags import COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES, soname_flag
from precast.launch.formats.interface import describe_interface
from precast.launch.formats.values import KernelInterface, ReleaseInterface
from precast.launch.names import find_name_faults
from precast.layout import (
    BUILD,
    GENERATED,
    LAUNCHERS,
    LIBRARIES,
    PACKS,
    PARTS,
    PLUGINS,
    SCONSTRUCT,
    SELECTIONS,
    facts_path,
    image_path,
)
from precast.passes.registry import Origin
from precast.plan import FailedPart, KernelSelection, Plan, PlannedUnit, UnitInputs
from precast.project import Project
from precast.spec.model import Unit
from precast.spec.problems import Problems
from precast.target import Backend, Target

Digest = Callable[[str], str | None]


@dataclass(frozen=True)
class Step:
    """One node of the graph. Paths are relative to the project.

    Whoever makes the step gets `given` and the files `inputs`, and nothing else that could change the `outputs`.
    """

    name: str
    given: Keyed
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def full_key(self, digest: Digest) -> str:
        """The digest of what is given, of the inputs' content and of the outputs' names; "" while an input is not
        there."""
        found = [(path, digest(path)) for path in self.inputs]  # of a release, thousands
        if any(content is None for _, content in found):
            return ""
        total = self._own_part.copy()
        total.update("".join([f"{path}\0{content}\n" for path, content in found]).encode())
        return total.hexdigest()

    @cached_property
    def _own_part(self) -> hashlib._Hash:
        """What is the same whatever the inputs are."""
        return hashlib.sha256(f"{self.name}\0{self.given.key}\n{self.outputs}\n".encode())


@dataclass(frozen=True)
class ProbeStep(Step):
    """Describes one plugin module, in a child process."""

    given: ProbeInputs


@dataclass(frozen=True)
class UnitStep(Step):
    """Compiles one unit."""

    given: UnitInputs
    planned: PlannedUnit


@dataclass(frozen=True)
class FailedStep(Step):
    """Stands for what could not be planned, and fails; so nothing is made of the rest but its units."""

    error: PrecastError


@dataclass(frozen=True)
class ImagesStep(Step):
    """Puts the images of several units into one file."""

    given: ImagesInputs


@dataclass(frozen=True)
class LaunchersStep(Step):
    """Writes launcher sources."""

    given: LaunchersInputs


@dataclass(frozen=True)
class SelectionStep(Step):
    """Writes the rows of the selection table that evidence comes to for one kernel."""

    given: SelectionInputs


@dataclass(frozen=True)
class LibraryStep(Step):
    """Compiles and links the launchers' library."""

    given: LibraryInputs


@dataclass(frozen=True)
class ReleaseStep(Step):
    """Assembles a release."""

    given: ReleaseInputs


@dataclass(frozen=True)
class Steps:
    """All steps of one build."""

    probes: tuple[ProbeStep, ...]
    units: tuple[UnitStep, ...]
    packs: tuple[ImagesStep, ...]
    cpu_libraries: tuple[ImagesStep, ...]
    launchers: LaunchersStep
    library: LibraryStep
    release: ReleaseStep
    failed: tuple[FailedStep, ...] = ()
    selections: tuple[SelectionStep, ...] = ()

    @cached_property
    def all(self) -> tuple[Step, ...]:
        """Every step, each after those that feed it. Without failed parts, that is all that makes a release."""
        if self.failed:
            return (*self.probes, *self.units, *self.failed)
        last = (self.launchers, self.library, self.release)
        return (*self.probes, *self.units, *self.packs, *self.cpu_libraries, *self.selections, *last)


@dataclass(frozen=True)
class Toolchain:
    """What makes all but units: identities of our own code, and the flags that link what units are put into."""

    own: str
    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


def plan_steps(
    project: Project,
    units: Sequence[PlannedUnit],
    tools: Tools,
    probes: Sequence[tuple[Origin, tuple[str, ...]]] = (),
    toolchain: Toolchain = Toolchain(""),
    failed: Sequence[FailedPart] = (),
    part: str = "",
    selection: Sequence[KernelSelection] = (),
    problems: str = "",
) -> Steps:
    """The steps that turn `units` into a release of the project.

    `probes` are the plugin modules with the files that decide what each says; `failed` is what the plan had to leave
    out; `part` says what was asked for, where that was not everything; `selection` what evidence comes to, `problems`
    what candidates are measured by.
    """
    own, script = toolchain.own, find_script(project)
    interface = describe_interface(project.name, [each.unit for each in units])
    packs = tuple(_plan_pack(own, *group, members) for group, members in _group_for_packs(units).items())
    cpu_libraries = tuple(
        _plan_cpu_library(toolchain, interface.name, target, members, script)
        for target, members in _group_for_cpu(units).items()
    )
    given = LaunchersInputs(own, interface, project.version, problems)
    launchers = LaunchersStep("launchers", given, (), (f"{LAUNCHERS}/files.json",))
    library = plan_library(toolchain, interface, launchers.outputs + find_script(project))
    images = (*packs, *cpu_libraries)
    selections = tuple(plan_selection(own, each) for each in selection)
    rows = tuple(path for step in selections for path in step.outputs)
    inputs = (
        *[facts_path(each.unit) for each in units],
        *[path for step in images for path in step.outputs],
        *rows,
        *launchers.outputs,
        *library.outputs,
    )
    made = [each.given for each in images]
    release = plan_release(project, toolchain, launchers, made, library, tools, part, rows, inputs)
    return Steps(
        tuple(_plan_probe(own, origin, files) for origin, files in probes),
        tuple(_plan_unit(each) for each in units),
        packs,
        cpu_libraries,
        launchers,
        library,
        release,
        tuple(_plan_failed(number, part) for number, part in enumerate(failed)),
        selections,
    )


def find_script(project: Project) -> tuple[str, ...]:
    """The build script as an input, if there is one."""
    return (SCONSTRUCT,) if (project.folder / SCONSTRUCT).exists() else ()


def find_toolchain(plan: Plan) -> Toolchain:
    """What makes all but units of a plan."""
    return Toolchain(plan.makers, COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES)


def plan_release(
    project: Project,
    toolchain: Toolchain,
    launchers: LaunchersStep,
    images: Sequence[ImagesInputs | KeptImages],
    library: LibraryStep,
    tools: Tools,
    part: str,
    selection: tuple[str, ...],
    inputs: tuple[str, ...],
) -> ReleaseStep:
    """The step that assembles a release; `selection` are files with rows of its table."""
    given = ReleaseInputs(
        toolchain.own, project.name, launchers.given, tuple(images), library.given.place, tools, part,
        project.release_bytes, selection,
    )  # fmt: skip
    output = f"{PARTS}/{digest_text(part)[:12]}.json" if part else f"{GENERATED}/{project.name}/release.json"
    return ReleaseStep("release", given, inputs, (output,))


def check_launchers(plan: Plan) -> None:
    """`PlanError` at the kernel, or `PlanFailed`, when the variants of one cannot share a launcher."""
    problems = Problems()
    members: dict[str, list[Unit]] = {spec.name: [] for spec in plan.kernels}
    for each in plan.units:
        members[each.unit.kernel].append(each.unit)
    described = []
    for spec in plan.kernels:
        try:
            described.append(describe_interface(plan.project.name, members[spec.name]))
        except PlanError as error:
            problems.add([PlanError(error.message, spec.where, error.hint)])
    problems.add(_name_errors(plan, [kernel for each in described for kernel in each.kernels]))
    problems.raise_any()


def _name_errors(plan: Plan, kernels: Sequence[KernelInterface]) -> Iterator[PlanError]:
    """Names that generated code cannot have, at the argument or the kernel."""
    specs = {spec.name: spec for spec in plan.kernels}
    for fault in find_name_faults(ReleaseInterface(plan.project.name, tuple(kernels), ())):
        spec = specs[fault.kernel]
        places = {argument.name: argument.where for argument in spec.arguments}
        yield PlanError(fault.message, places.get(fault.argument) or spec.where, fault.hint)


def _plan_probe(own: str, origin: Origin, files: tuple[str, ...]) -> ProbeStep:
    return ProbeStep(f"probe {origin.name}", ProbeInputs(own, origin), files, (f"{PLUGINS}/{origin.probe_file}",))


def _plan_unit(planned: PlannedUnit) -> UnitStep:
    return UnitStep(str(planned.unit), planned.given, (), planned.outputs, planned)


def _plan_failed(number: int, part: FailedPart) -> FailedStep:
    return FailedStep(part.name, NothingMade(), (), (f"{BUILD}/failed-{number}",), part.error)


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


def _plan_pack(own: str, target: Target, kernel: str, units: Sequence[PlannedUnit]) -> ImagesStep:
    members = tuple(each.unit for each in units)
    return ImagesStep(
        f"pack {target} {kernel}",
        ImagesInputs(own, target, f"targets/{target.folder}/{kernel}.pack", members),
        tuple(map(image_path, members)),
        (f"{PACKS}/{target.folder}/{kernel}.pack",),
    )


def _plan_cpu_library(
    toolchain: Toolchain, name: str, target: Target, units: Sequence[PlannedUnit], script: tuple[str, ...]
) -> ImagesStep:
    file = f"lib{name}.{target.folder}.so"
    members = tuple(each.unit for each in units)
    return ImagesStep(
        f"library {target}",
        ImagesInputs(toolchain.own, target, f"lib/{file}", members, toolchain.link),
        (*map(image_path, members), *script),  # the build script chooses the linker
        (f"{LIBRARIES}/{file}",),
    )


def selection_name(kernel: str) -> str:
    """The step that writes a kernel's rows."""
    return f"selection {kernel}"


def plan_selection(own: str, selection: KernelSelection) -> SelectionStep:
    """The step that writes a kernel's rows: what `why` asks whether the choice is as it was."""
    given = SelectionInputs(own, selection.rules)
    output = f"{SELECTIONS}/{selection.kernel}.json"
    return SelectionStep(selection_name(selection.kernel), given, selection.files, (output,))


def plan_library(toolchain: Toolchain, interface: ReleaseInterface, inputs: tuple[str, ...]) -> LibraryStep:
    """The step that compiles and links the launchers' library."""
    file = f"lib{interface.name}.so"
    link = (*toolchain.link, soname_flag(file))
    given = LibraryInputs(f"lib/{file}", toolchain.compile, link, toolchain.libraries)
    return LibraryStep("library", given, inputs, (f"{LIBRARIES}/{file}",))
