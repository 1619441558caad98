"""Removing what is not wanted any more: old releases, or everything that can be built again.

In: folders. Out: what was removed. The release that `current` leads to goes last, and only when none shall stay.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from precast.errors import ReleaseError
from precast.release.folder import CURRENT, DRAFT, POINTER, drop_drafts
from precast.release.manifest import MANIFEST
from precast.store import remove, telling_disk_faults


def list_releases(home: Path) -> list[Path]:
    """The releases under `home`, newest first: `current`, then by the time they appeared."""
    found = [path.parent for path in home.glob(f"*/{MANIFEST}") if not path.parent.is_symlink()]
    current = home / CURRENT
    newest = os.readlink(current) if current.is_symlink() else ""
    return sorted(found, key=lambda path: (path.name == newest, path.stat().st_mtime_ns, path.name), reverse=True)


def remove_releases(home: Path, keep: int) -> list[Path]:
    """Removes all but the `keep` newest releases under `home`, and drafts of killed builds."""
    if keep < 0:
        raise ReleaseError(f"cannot keep {keep} releases", hint="keep 0 or more")
    drop_drafts(home)
    old = list_releases(home)[keep:]
    if keep == 0:
        for path in (home / CURRENT, home / POINTER):
            with telling_disk_faults(path):
                path.unlink(missing_ok=True)
    for path in old:
        remove_folder(path)
    return old


def remove_folder(path: Path) -> None:
    """Removes a release's folder and all in it; it is out of the way at once, even when removing is cut short."""
    doomed = path.with_name(f"{DRAFT}{secrets.token_hex(6)}")
    with telling_disk_faults(path):
        os.rename(path, doomed)
        remove(doomed)


def empty_folder(folder: Path, keep: str) -> None:
    """Removes all that is in a folder, which may be a link to one, but the file `keep`; it may be cut short."""
    with telling_disk_faults(folder):
        for path in sorted(folder.iterdir()):
            if path.name != keep:
                remove(path)
