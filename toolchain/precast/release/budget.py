"""The size that a project allows its release to have. In: its files. Out: nothing, or the error with the largest."""

from __future__ import annotations

from collections.abc import Sequence

from precast.errors import ReleaseError
from precast.release.manifest import ManifestFile

SHOWN = 5


class BudgetError(ReleaseError):
    """A release is larger than the project allows."""


def check_budget(files: Sequence[ManifestFile], most: int) -> None:
    """`BudgetError` when the files of a release have more than `most` bytes; 0: any number."""
    total = sum(file.size for file in files)
    if not most or total <= most:
        return
    largest = sorted(files, key=lambda file: (-file.size, file.path))[:SHOWN]
    listed = ", ".join(f"{file.path} ({file.size:,})" for file in largest)
    message = f"the release has {total:,} bytes, more than the {most:,} of its budget"
    raise BudgetError(message, hint=f"the largest are {listed}")
