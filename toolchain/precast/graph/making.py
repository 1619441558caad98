"""How packs, launcher sources, probes and releases are made. Units are made by workers, C libraries by a C compiler.

In: what a step is given, the project's folder, the step's files. Out: the step's outputs, by rename, and what was made
beyond them. Sees no plan, no session and no index: what decides must be in what is given.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from precast import collector
from precast.artifact import UnitResult
from precast.bounded import MOST_FILE_BYTES, holds, read_bounded
from precast.codec import from_json, to_json
from precast.digest import digest_text
from precast.graph.inputs import ImagesInputs, KeptImages, LaunchersInputs, ProbeInputs, ReleaseInputs, SelectionInputs
from precast.launch.formats import ReleaseInterface, write_pack
from precast.layout import ENTRIES, LAUNCHERS, LIBRARIES, PACKS, facts_path, image_path
from precast.passes.registry import run_probe
from precast.release.budget import check_budget
from precast.release.contents import BuiltImages, ImagesPart, ReleaseParts, describe_images, join_release
from precast.release.folder import CURRENT, POINTER, holds_all, point_to, write_pointer, write_release
from precast.release.kept import drop_others, part_name, read_part, write_part
from precast.release.manifest import MANIFEST, WrittenManifest
from precast.spec.model import Unit
from precast.store import digest_bytes, write_file
from precast.target import Target, find_machine
from precast.tuning.rules import SelectionPart, SelectionRule

Digest = Callable[[str], str | None]


def make_probe(given: ProbeInputs, folder: Path, output: str) -> tuple[str, ...]:
    """Has a child process describe one plugin module."""
    run_probe(given.origin, folder, folder / output)
    return (output,)


def make_pack(given: ImagesInputs, folder: Path, output: str) -> tuple[str, ...]:
    """Puts the GPU images of one kernel and target into a pack."""
    images = [(str(unit), read_bounded(folder / image_path(unit), MOST_FILE_BYTES)) for unit in given.units]
    write_file(folder / output, write_pack(images))
    return (output,)


def write_listing(given: ImagesInputs, folder: Path, path: str) -> None:
    """Names the images in a file, one a line, for a linker."""
    write_file(folder / path, "".join(f"{image_path(unit)}\n" for unit in given.units).encode())


def render_launchers(interface: ReleaseInterface, version: str, problems: str = "") -> dict[str, bytes]:
    """All that a release has beside images and library, by its place in it."""
    # Jinja2, which a fresh build never needs
    from precast.launch.sources import find_extension, render_library, render_tuning

    tuning = render_tuning(interface.name, problems) if problems else ()
    files = {file.path: file.text.encode() for file in (*render_library(interface, version), *tuning)}
    if machine_of(interface) == platform.machine():  # the extension is built with this package, for this machine
        files[f"python/{interface.name}/_launch.abi3.so"] = find_extension().read_bytes()
    return files


def machine_of(interface: ReleaseInterface) -> str:
    """The kind of machine that a release's libraries are of."""
    return find_machine(map(Target.parse, {text.rpartition("@")[2] for text in interface.units}))


def make_launchers(given: LaunchersInputs, folder: Path, output: str) -> tuple[str, ...]:
    """Writes header, launchers, runtime and package sources; files that are right already stay untouched."""
    files = render_launchers(given.interface, given.version, given.problems)
    root = folder / LAUNCHERS
    for path, data in files.items():
        if not holds(root / path, data):
            write_file(root / path, data)
    _remove_others(root, files)
    listing = {path: digest_bytes(data) for path, data in sorted(files.items())}
    write_file(folder / output, json.dumps(listing, indent=1).encode())
    return (output, *(f"{LAUNCHERS}/{path}" for path in files))


def make_selection(given: SelectionInputs, folder: Path, output: str) -> tuple[str, ...]:
    """Writes the rows of one kernel."""
    write_file(folder / output, to_json(SelectionPart(given.rules), indent=1).encode())
    return (output,)


def _remove_others(root: Path, keep: Mapping[str, bytes]) -> None:
    for path in root.rglob("*"):
        if path.is_file() and path.relative_to(root).as_posix() not in keep:
            path.unlink()


@collector.resting()
def make_release(
    given: ReleaseInputs, folder: Path, output: str, digest: Digest, kept: Mapping[str, ImagesPart]
) -> tuple[tuple[str, ...], dict[str, str], WrittenManifest]:
    """Assembles and places the release; the paths of all that it consists of, the digests of its files by their paths,
    and its manifest.

    What holds a part of the project becomes the current release only where nothing else of it is lost by that. Of
    images whose file and facts have the digests that they had, what an earlier release said is taken over: `kept` by
    place for `KeptImages`.
    """
    launchers = json.loads(read_bounded(folder / LAUNCHERS / "files.json"))
    files = {path: folder / LAUNCHERS / path for path in launchers}
    files[given.library] = folder / LIBRARIES / Path(given.library).name
    parts = ReleaseParts(
        name=given.name,
        project_version=given.launchers.version,
        interface=given.launchers.interface,
        images=(),
        files=files,
        tools=given.tools,
        selection=tuple(rule for path in given.selection for rule in _read_selection(folder / path)),
    )
    images = [
        (folder / each.file, kept[each.place])
        if isinstance(each, KeptImages)
        else (folder / images_path(each), _describe_images(each, parts.interface, folder, digest))
        for each in given.images
    ]
    if not given.part:
        drop_others(folder / ENTRIES, (part_name(each.place) for each in given.images))
    contents, manifest = join_release(parts, images)
    check_budget(manifest.files, given.most_bytes)
    home = folder / given.home
    inside = write_release(home, contents, manifest).relative_to(folder).as_posix()
    made = {f"{inside}/{file.path}": file.digest for file in manifest.files} | {f"{inside}/{MANIFEST}": manifest.digest}
    pointers = (path.relative_to(folder).as_posix() for path in _point(given, home, folder / output, manifest))
    return (*made, *pointers), made, manifest


def _point(given: ReleaseInputs, home: Path, output: Path, manifest: WrittenManifest) -> list[Path]:
    """Leads to the release: by `output`, and as the current one where it may be that."""
    moves = given.is_candidates or not given.part or holds_all(manifest, home)
    if moves:
        point_to(home, manifest)
    if given.part:
        write_pointer(output, manifest)
    return [*([output] if given.part else []), *([home / POINTER, home / CURRENT] if moves else [])]


def _read_selection(path: Path) -> tuple[SelectionRule, ...]:
    return from_json(read_bounded(path), SelectionPart).rules


def images_path(given: ImagesInputs) -> str:
    """Where a file with images is made."""
    return f"{LIBRARIES if given.link else f'{PACKS}/{given.target.folder}'}/{Path(given.place).name}"


def _describe_images(given: ImagesInputs, interface: ReleaseInterface, folder: Path, digest: Digest) -> ImagesPart:
    """What the release says of one file with images: as kept, or made of the file and its units' facts."""
    find_key = partial(part_key, given, interface, digest)
    path, key = folder / ENTRIES / part_name(given.place), find_key()
    kept = read_part(path, key)
    if kept is not None:
        return kept
    units = tuple((unit, read_result(folder, unit)) for unit in given.units)
    part = describe_images(BuiltImages(given.place, folder / images_path(given), units), interface)
    if key == find_key():
        write_part(path, key, part)
    return part


def kernels_of(given: ImagesInputs) -> tuple[str, ...]:
    """The kernels whose images a file holds."""
    return tuple(dict.fromkeys(unit.kernel for unit in given.units))


def part_key(given: ImagesInputs, interface: ReleaseInterface, digest: Digest) -> str:
    """The key of what is said of a file with images: by its content, its units' facts, and its kernels' keys."""
    keys = [interface.keys[each] for each in kernels_of(given)]
    files = [images_path(given), *map(facts_path, given.units)]
    return digest_text(" ".join([given.key, *keys, *(digest(path) or "" for path in files)]))


def read_kept_parts(images: Iterable[ImagesInputs | KeptImages], folder: Path) -> dict[str, ImagesPart] | None:
    """What a release says of files with images that are as they were, by place; None where some of it is lost."""
    found = {}
    for each in images:
        if isinstance(each, KeptImages):
            part = read_part(folder / ENTRIES / part_name(each.place), each.part)
            if part is None:
                return None
            found[each.place] = part
    return found


def read_result(folder: Path, unit: Unit) -> UnitResult:
    """The facts beside a built unit's image."""
    return from_json(read_bounded(folder / facts_path(unit)), UnitResult)
