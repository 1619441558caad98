"""How each step is made: units by the executor, packs, launcher sources and the release here.

In: a session and a step. Out: the step's files, by rename, and its record in the index. Called from task threads;
reads plan and index, never the list of sources that the build tool happens to hold. What compiles and links C is
`tool`'s; it asks `note_library` to record it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from precast.artifact import UnitResult
from precast.codec import from_json
from precast.errors import PrecastError
from precast.graph.collect import collect_leftovers
from precast.graph.session import Session
from precast.graph.steps import (
    GENERATED,
    LAUNCHERS,
    FailedStep,
    ImagesStep,
    ProbeStep,
    Step,
    UnitStep,
    facts_path,
    image_path,
)
from precast.launch.formats import write_pack
from precast.passes.registry import run_probe
from precast.plan import PlannedUnit
from precast.plan.key import write_key
from precast.release.contents import BuiltImages, ReleaseParts, compose_release
from precast.release.folder import CURRENT, POINTER, place_release
from precast.release.manifest import MANIFEST
from precast.store import digest_bytes, write_file
from precast.worker.walk import LUCK_WARNING


def make_probe(session: Session, step: ProbeStep) -> None:
    """Has a child process describe one plugin module."""
    run_probe(step.origin, session.folder, session.folder / step.outputs[0])
    session.record(step, {}, step.outputs)


def make_failed(step: FailedStep) -> None:
    """Fails, with what the plan found wrong."""
    raise step.error


def make_unit(session: Session, step: UnitStep) -> None:
    """Compiles one unit; `CompileError` when it cannot be, and then nothing of it is left."""
    folder = session.folder / step.planned.folder
    try:
        result = session.executor.submit(session.plan.job(step.planned.unit)).result()
    except PrecastError:
        shutil.rmtree(folder, ignore_errors=True)
        session.index.forget([step.name])
        raise
    write_key(folder, step.planned.ingredients)
    missed = sorted(set(result.files_used) - set(step.planned.inputs))
    if missed:
        session.warn(f"{step.name} also uses {', '.join(missed)}, which its imports do not show; noted for next time")
    for warning in result.warnings:
        if warning != LUCK_WARNING:  # said once, of the release
            session.warn(f"{step.name}: {warning}")
    changed = _changed_sources(session, step)
    if changed:
        session.warn(f"{', '.join(changed)} changed while {step.name} was built: build again")
    else:
        seconds = _seconds_to_note(session, step, result)
        session.record(step, session.index.digests(missed), _files_below(session.folder, folder), seconds)
    session.count(step, "reused" if result.stages and result.stages[-1].reused else "built")


def _seconds_to_note(session: Session, step: UnitStep, result: UnitResult) -> str:
    """How long compiling all of the unit takes, for the order of later builds; what was known when the store helped."""
    if not any(each.reused for each in result.stages):
        return str(result.seconds)
    before = session.index.step(step.name)
    return before.note if before else ""


def _changed_sources(session: Session, step: UnitStep) -> list[str]:
    """Sources that are not what the plan saw: the worker may have read either state, so the unit is not recorded."""
    sources = step.planned.ingredients.sources
    return [name for name, digest in sources if session.index.digest(name) not in (digest, None)]


def make_pack(session: Session, step: ImagesStep) -> None:
    """Puts the GPU images of one kernel and target into a pack."""
    images = [(str(each.unit), (session.folder / image_path(each)).read_bytes()) for each in step.units]
    write_file(session.folder / step.outputs[0], write_pack(images))
    session.record(step, {}, step.outputs)


def write_listing(session: Session, step: ImagesStep, path: str) -> None:
    """Names the step's images in a file, one a line, for a linker."""
    write_file(session.folder / path, "".join(f"{image}\n" for image in step.inputs).encode())


def make_launchers(session: Session, step: Step) -> None:
    """Writes header, launchers, runtime and package sources; files that are right already stay untouched."""
    from precast.launch.sources import find_extension, render_library  # Jinja2, which a fresh build never needs

    interface = session.steps.interface
    files = {file.path: file.text.encode() for file in render_library(interface, session.project.version)}
    files[f"python/{interface.name}/_launch.abi3.so"] = find_extension().read_bytes()
    root = session.folder / LAUNCHERS
    for path, data in files.items():
        if not _holds(root / path, data):
            write_file(root / path, data)
    _remove_others(root, files)
    listing = {path: digest_bytes(data) for path, data in sorted(files.items())}
    write_file(session.folder / step.outputs[0], json.dumps(listing, indent=1).encode())
    session.record(step, {}, [*step.outputs, *(f"{LAUNCHERS}/{path}" for path in files)])


def read_launcher_files(session: Session) -> dict[str, Path]:
    """The launcher step's files by their place in the release."""
    root = session.folder / LAUNCHERS
    listing = json.loads((session.folder / session.steps.launchers.outputs[0]).read_text())
    return {path: root / path for path in listing}


def make_release(session: Session, step: Step) -> None:
    """Assembles and places the release, then removes what belongs to nothing any more."""
    steps, project = session.steps, session.project
    inputs = session.index.digests(step.inputs)
    images = tuple(_built_images(session, each) for each in (*steps.packs, *steps.cpu_libraries))
    library = session.folder / steps.library.outputs[0]
    parts = ReleaseParts(
        name=project.name,
        project_version=project.version,
        interface=steps.interface,
        images=images,
        files={**read_launcher_files(session), f"lib/{library.name}": library},
        tools=session.plan.tools,
    )
    contents, manifest = compose_release(parts)
    home = session.folder / GENERATED / project.name
    place = place_release(home, contents, manifest)
    paths = [place / name for name in (*contents, MANIFEST)] + [home / POINTER, home / CURRENT]
    session.record(step, inputs, [path.relative_to(session.folder).as_posix() for path in paths])
    if not manifest.reproducible:
        session.warn(LUCK_WARNING)
    collect_leftovers(session)


def _built_images(session: Session, step: ImagesStep) -> BuiltImages:
    units = tuple((each.unit, read_result(session.folder, each)) for each in step.units)
    return BuiltImages(step.place, session.folder / step.outputs[0], units)


def read_result(folder: Path, planned: PlannedUnit) -> UnitResult:
    """The facts beside a built unit's image."""
    return from_json((folder / facts_path(planned)).read_bytes(), UnitResult)


def _files_below(root: Path, folder: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _remove_others(root: Path, keep: Mapping[str, bytes]) -> None:
    for path in root.rglob("*"):
        if path.is_file() and path.relative_to(root).as_posix() not in keep:
            path.unlink()
