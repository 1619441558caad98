"""Placing a release: a complete directory under its version, then the two pointers to it.

In: every file by its place in the release, and the manifest. Out: `generated/<name>/<version>/`, `release.json` and
the link `current`, each made by rename; nothing that was there before is written to. Files and folders are on the
disk before anything points to them, so that a power cut leaves the old release or the new one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from precast.bounded import holds, read_bounded
from precast.codec import from_json
from precast.errors import ReleaseError
from precast.release.manifest import MANIFEST, Manifest, WrittenManifest, read_manifest
from precast.release.verify import find_faults
from precast.store import is_draft, link_new, remove, sync, sync_tree, telling_disk_faults, write_file, write_new

POINTER = "release.json"
CURRENT = "current"
DRAFT = ".draft-"

_FOLDER = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]*")  # of a release: nothing else is led to

Content = bytes | Path  # bytes to write, or a finished file to link


@dataclass(frozen=True)
class Pointer:
    """What `release.json` says: the newest release's version, which is its folder, and its manifest's digest."""

    version: str
    path: str
    manifest: str


def place_release(home: Path, contents: Mapping[str, Content], manifest: Manifest) -> Path:
    """Makes the release under `home` and makes it the current one."""
    place = write_release(home, contents, manifest.written)
    point_to(home, manifest.written)
    return place


def write_release(home: Path, contents: Mapping[str, Content], manifest: WrittenManifest) -> Path:
    """Makes the release under `home`; the folder of an equal, undamaged one is left as it is."""
    drop_drafts(home)
    place = home / manifest.version
    if not place.exists() or find_faults(place):
        _replace(place, _write_draft(home, contents, manifest))
    for folder in (home, home.parent, home.parent.parent):  # `generated` may be new
        sync(folder)
    return place


def write_pointer(path: Path, manifest: WrittenManifest) -> None:
    """Writes a file that leads to a release."""
    pointer = {"version": manifest.version, "path": manifest.version, "manifest": manifest.digest}
    write_file(path, (json.dumps(pointer, sort_keys=True, indent=1) + "\n").encode(), durable=True)


def holds_all(manifest: WrittenManifest, home: Path) -> bool:
    """Whether the release holds every unit of the current one; also when there is none that can be read."""
    try:
        current = read_manifest(home / read_pointer(home).path)
    except ReleaseError:
        return True
    return {each.unit for each in current.units} <= set(manifest.units)


def point_to(home: Path, manifest: WrittenManifest) -> None:
    """Makes a release the current one: writes `release.json` and moves `current`, in this order."""
    write_pointer(home / POINTER, manifest)
    link = home / CURRENT
    if not (link.is_symlink() and os.readlink(link) == manifest.version):
        draft = home / f"{DRAFT}{secrets.token_hex(6)}"
        with telling_disk_faults(link):
            os.symlink(manifest.version, draft)
            os.replace(draft, link)
        sync(home)


def read_pointer(home: Path, name: str = POINTER) -> Pointer:
    """What `release.json`, or another file that leads to a release under `home`, says; `ReleaseError` when there is
    none, or it is damaged."""
    path = home / name
    try:
        pointer = from_json(read_bounded(path), Pointer)
    except FileNotFoundError:
        raise ReleaseError(f"{path.parent} holds no release", hint="run `precast build`") from None
    except (ValueError, OSError):
        pointer = Pointer("", "", "")
    if not _FOLDER.fullmatch(pointer.path):
        raise ReleaseError(f"{path} is damaged", hint="run `precast build`")
    return pointer


def drop_drafts(home: Path) -> None:
    """Removes what killed builds and disks at fault have left of releases and of what leads to them."""
    for path in [*home.glob(f"{DRAFT}*"), *(each for each in home.glob(".*") if is_draft(each.name))]:
        with telling_disk_faults(path):
            remove(path)


def _write_draft(home: Path, contents: Mapping[str, Content], manifest: WrittenManifest) -> Path:
    draft = home / f"{DRAFT}{secrets.token_hex(6)}"
    newest = _newest(home)
    try:
        for folder in {os.path.dirname(name) for name in contents}:
            with telling_disk_faults(draft / folder):
                (draft / folder).mkdir(parents=True, exist_ok=True)
        for name, content in sorted([*contents.items(), (MANIFEST, manifest.data)]):
            _place(f"{draft}/{name}", content, newest / name)
        _settle_modes(draft)
        sync_tree(draft, lambda path: not _is_same(path, newest / path.relative_to(draft)))
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return draft


def _settle_modes(draft: Path) -> None:
    """Folders and libraries are 0755, other files 0644, whatever the umask; a file that is elsewhere too is copied."""
    for path in (draft, *draft.rglob("*")):
        mode = 0o755 if path.is_dir() or path.suffix == ".so" else 0o644
        with telling_disk_faults(path):
            state = path.stat()
            if stat.S_IMODE(state.st_mode) == mode:
                continue
            if not path.is_dir() and state.st_nlink > 1:
                data = path.read_bytes()
                path.unlink()
                path.write_bytes(data)
            path.chmod(mode)


def _place(path: str, content: Content, newest: Path) -> None:
    """Links a finished file, or that of the newest release which is equal; else writes one. In a draft, at which nobody
    looks before it is whole."""
    with telling_disk_faults(Path(path)):
        if isinstance(content, Path):
            link_new(content, path)
        elif holds(newest, content, follow=False):
            link_new(newest, path)
        else:
            write_new(path, content)


def _newest(home: Path) -> Path:
    """The newest release, some of whose files may be those of the next; a folder that is not there where none is."""
    try:
        return home / read_pointer(home).path
    except ReleaseError:
        return home / f"{DRAFT}none"


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths are one file, which a release has already: then it is on the disk."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _replace(place: Path, draft: Path) -> None:
    """Puts the finished draft in its place; a damaged release that was there goes."""
    with telling_disk_faults(place):
        if place.exists():
            os.rename(place, place.parent / f"{DRAFT}{secrets.token_hex(6)}")
        os.rename(draft, place)
    drop_drafts(place.parent)
