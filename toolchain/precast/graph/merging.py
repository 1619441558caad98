"""`precast merge`: releases of one project that several machines built, as one release.

In: release directories. Out: the release that one machine would have made of all their units, placed as a build places
it. Images and CPU libraries are taken as they are; launchers and their library, which know all units, are made anew as
a build makes them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from precast.codec import from_json, to_json
from precast.errors import ReleaseError, ToolError
from precast.graph.inputs import LaunchersInputs, LibraryInputs
from precast.graph.making import machine_of, make_launchers, render_launchers
from precast.graph.steps import Toolchain, plan_library
from precast.launch.flags import COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES
from precast.launch.sources import library_sources
from precast.layout import LAUNCHERS, LIBRARIES
from precast.release.contents import ReleaseParts, describe_images, join_release
from precast.release.folder import holds_all, point_to, write_release
from precast.release.joining import Joined, Part, join_parts, read_part
from precast.scratch import Scratch
from precast.store import digest_bytes, write_file
from precast.worker.memory import default_worker_count

SCRIPT = Path(__file__).parent / "toolpath" / "library_sconstruct.py"
LIBRARY_FILE = "library.json"


@dataclass(frozen=True)
class LibraryRequest:
    """What the script of the library is told."""

    given: LibraryInputs
    sources: tuple[str, ...]
    machine: str


def merge_releases(folders: Sequence[Path], generated: Path) -> Path:
    """The merged release, below `generated`; `ReleaseError` when the releases are no parts of one.

    It becomes the current one where nothing else of that is lost, as a build's does.
    """
    parts = [read_part(folder) for folder in folders]
    joined = join_parts(parts)
    for part in parts:
        _check_maker(part, joined)
    with Scratch() as scratch:
        files = _make_files(joined, scratch)
        parts_of = ReleaseParts(
            joined.name, joined.version, joined.interface, joined.images, files, joined.tools, joined.selection
        )
        described = [(images.file, describe_images(images, joined.interface)) for images in joined.images]
        contents, manifest = join_release(parts_of, described)
        home = generated / joined.name
        place = write_release(home, contents, manifest)
    if holds_all(manifest, home):
        point_to(home, manifest)
    return place


def _make_files(joined: Joined, scratch: Path) -> Mapping[str, Path]:
    """Launchers and library of all units, by their places in the release."""
    _, *launchers = make_launchers(
        LaunchersInputs("", joined.interface, joined.version), scratch, f"{LAUNCHERS}/files.json"
    )
    library = plan_library(Toolchain("", COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES), joined.interface, ()).given
    _compile(LibraryRequest(library, library_sources(joined.interface), machine_of(joined.interface)), scratch)
    files = {Path(path).relative_to(LAUNCHERS).as_posix(): scratch / path for path in launchers}
    return {**files, library.place: scratch / LIBRARIES / Path(library.place).name}


def _compile(request: LibraryRequest, scratch: Path) -> None:
    """Has SCons compile as it does in a build, in a process of its own, where nobody's modules lie."""
    write_file(scratch / LIBRARY_FILE, to_json(request).encode())
    words = ["-Q", "-s", f"-j{default_worker_count()}", "-C", str(scratch), "-f", str(SCRIPT)]
    environment = {name: value for name, value in os.environ.items() if name != "SCONSFLAGS"}
    command = [sys.executable, "-m", "SCons", *words]
    done = subprocess.run(command, cwd=scratch, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise ToolError("the library of the merged release was not made", hint="what the compiler said stands above")


def _check_maker(part: Part, joined: Joined) -> None:
    """`ReleaseError` for launchers that this Precast would not have written: it could not write those of the whole."""
    for path, data in render_launchers(part.interface, joined.version).items():
        if part.files.get(path) != digest_bytes(data):
            raise ReleaseError(f"{part.name} was made by another Precast than this one: its {path} is another")


def read_request(folder: Path) -> LibraryRequest:
    """What `_compile` has written."""
    return from_json((folder / LIBRARY_FILE).read_bytes(), LibraryRequest)
