"""What is demanded of a release: its name, the oldest version that may be deployed, and who must have signed it.

In: a verified manifest. Out: nothing, or a `ReleaseError`. The C runtime's `precast_policy` demands the same at open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from precast.errors import ReleaseError, SpecError, printable
from precast.release.manifest import Manifest
from precast.release.sign import verify_signature
from precast.release.verify import verify_release


@dataclass(frozen=True)
class Policy:
    """What is asked for; None is not asked. `key` is a file: a public key in PEM form, or a key ring."""

    name: str | None = None
    minimum_version: str | None = None
    key: Path | None = None


def verify_against(release: Path, policy: Policy) -> Manifest:
    """The manifest of a good release that is what `policy` demands; one reading answers all of it."""
    manifest = verify_release(release, allow_bytecode=policy.key is None)
    if policy.key is not None:
        verify_signature(release, policy.key, manifest.data)
    if policy.name is not None and manifest.name != policy.name:
        raise ReleaseError(
            f"{printable(release)} is a release of `{manifest.name}`, and `{printable(policy.name)}` is required"
        )
    if policy.minimum_version is not None:
        _check_version(release, manifest.project_version, policy.minimum_version)
    return manifest


def _check_version(release: Path, version: str, minimum: str) -> None:
    try:
        wanted = Version(minimum)
    except InvalidVersion:
        raise SpecError(f"`{printable(minimum)}` is no version", hint="write it as 1.4.2") from None
    try:
        is_older = Version(version) < wanted
    except InvalidVersion:
        raise ReleaseError(f"{printable(release)} has version {version}, which has no order") from None
    if is_older:
        raise ReleaseError(f"{printable(release)} has version {version}, and at least {minimum} is required")
