"""Where a release's files lie: in a folder of its own, or in an installed Python package.

In: a folder. Out: `Layout`, which knows the place of each file that the manifest lists. A wheel holds the package's own
modules where Python finds them and what they need at run time below `_release`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from precast.release.manifest import MANIFEST, SIGNATURE

INSIDE = "_release"  # of an installed package
_RUN_TIME_FOLDERS = ("targets/", "lib/lib")
_RUN_TIME_FILES = ("index.bin", MANIFEST, SIGNATURE)


@dataclass(frozen=True)
class Layout:
    """`root` is the folder that holds nothing but the release, or the installed package."""

    root: Path
    installed: bool = False

    @property
    def manifest(self) -> Path:
        return self.root / INSIDE / MANIFEST if self.installed else self.root / MANIFEST

    @property
    def signature(self) -> Path:
        return self.manifest.with_name(SIGNATURE)

    def place(self, path: str) -> Path | None:
        """Where the file `path` of the release lies; None where this layout has none such."""
        inside = place_in_package(path) if self.installed else path
        return None if inside is None else self.root / inside

    def may_be_bytecode(self, path: Path) -> bool:
        """Whether Python leaves such a file beside the package when it may."""
        parts = path.relative_to(self.root).parts
        return path.suffix == ".pyc" and "__pycache__" in parts and (self.installed or parts[0] == "python")


def find_layout(folder: Path) -> Layout:
    """The layout of what lies in `folder`: a release, an installed package, or the release inside one."""
    if folder.name == INSIDE and (folder.parent / "__init__.py").is_file():
        return Layout(folder.parent, installed=True)
    return Layout(folder, installed=not (folder / MANIFEST).exists() and (folder / INSIDE).is_dir())


def place_in_package(path: str) -> str | None:
    """A release's file by its place in the installed package; None for what a wheel does not hold."""
    if path.startswith("python/"):
        return path.split("/", 2)[-1] if path.count("/") > 1 else None
    is_needed = path in _RUN_TIME_FILES or path.startswith(_RUN_TIME_FOLDERS)
    return f"{INSIDE}/{path}" if is_needed else None
