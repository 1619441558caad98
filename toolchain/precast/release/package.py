"""A release for transport: a wheel, and a zstd-compressed tar of the whole directory.

In: a good release. Out: files whose bytes depend on the release alone: entries sorted, times and owners fixed. The
wheel holds the Python package with what it needs at run time below `_release`; the tar holds everything.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import platform
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import zstandard
from packaging.utils import canonicalize_version
from packaging.version import InvalidVersion, Version

from precast.errors import ReleaseError
from precast.release.files import MOST_KEY_BYTES, read_file
from precast.release.layout import find_layout, place_in_package
from precast.release.manifest import MANIFEST, SIGNATURE, Manifest
from precast.release.verify import verify_release
from precast.store import write_file
from precast.target import Target, find_machine

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can say
_LEVEL = 19
_EXTENSION = "_launch.abi3.so"


def package_release(release: Path, folder: Path) -> tuple[Path, ...]:
    """Writes wheel and tar of a release into `folder`; `ReleaseError` when the release is not good.

    A release that was made for another kind of machine has no Python extension, and so no wheel.
    """
    if find_layout(release).installed:
        raise ReleaseError(f"{release} is an installed package, not all of a release", hint="pack the release itself")
    manifest = verify_release(release)
    _check_version(manifest)
    files = _read_files(release, manifest)
    wheel = folder / f"{_stem(manifest)}-{_tags(manifest, files)}.whl"
    tar = folder / f"{manifest.name}-{manifest.version}.tar.zst"
    write_file(tar, make_tar(f"{manifest.name}-{manifest.version}", files))
    if _machine(manifest) != platform.machine():
        return (tar,)
    write_file(wheel, make_wheel(manifest, files))
    return wheel, tar


def _check_version(manifest: Manifest) -> None:
    """A wheel's version has Python packaging's form; the release's digest becomes its local part."""
    try:
        Version(manifest.version)
    except InvalidVersion:
        hint = "write the project's version as 1.4.2, without a local part"
        raise ReleaseError(f"`{manifest.project_version}` cannot be a wheel's version", hint=hint) from None


def _read_files(release: Path, manifest: Manifest) -> dict[str, bytes]:
    """What is packed: the bytes that are read here have the digests of the manifest that was verified."""
    files = {MANIFEST: manifest.data}
    if os.path.lexists(release / SIGNATURE):
        files[SIGNATURE] = read_file(release / SIGNATURE, MOST_KEY_BYTES)
    for file in manifest.files:
        data = read_file(release / file.path, file.size)
        if hashlib.sha256(data).hexdigest() != file.digest:
            raise ReleaseError(f"{release / file.path} changed while it was packed")
        files[file.path] = data
    return dict(sorted(files.items()))


def make_tar(root: str, files: dict[str, bytes]) -> bytes:
    """The files below `root`, as a tar compressed with zstd."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size = len(data)
            entry.mode = _mode(name)
            tar.addfile(entry, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(stream.getvalue())


def make_wheel(manifest: Manifest, files: dict[str, bytes]) -> bytes:
    """The bytes of a wheel that installs the release's Python package with the release inside."""
    package = _package(files)
    places = {name: place_in_package(name) for name in files}
    entries = {f"{package}/{place}": files[name] for name, place in places.items() if place}
    information = f"{_stem(manifest)}.dist-info"
    entries[f"{information}/METADATA"] = _metadata(manifest).encode()
    entries[f"{information}/WHEEL"] = _wheel_file(manifest, files).encode()
    record = f"{information}/RECORD"
    entries[record] = _record(entries, record).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in sorted(entries.items(), key=lambda entry: (entry[0].startswith(information), entry[0])):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = (0o100000 | _mode(name)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            archive.writestr(entry, data, compresslevel=9)
    return stream.getvalue()


def _package(files: Iterable[str]) -> str:
    packages = sorted({name.split("/")[1] for name in files if name.startswith("python/")})
    if len(packages) != 1:
        raise ReleaseError("the release has no Python package to make a wheel of")
    return packages[0]


def _stem(manifest: Manifest) -> str:
    """Name and version as a wheel's file name has them."""
    return (
        f"{manifest.name.replace('-', '_').lower()}-{canonicalize_version(manifest.version, strip_trailing_zero=False)}"
    )


def _tags(manifest: Manifest, files: Iterable[str]) -> str:
    """Python, ABI and platform: the glibc that the libraries need is the platform's."""
    python = "cp310-abi3" if any(name.endswith(_EXTENSION) for name in files) else "py3-none"
    return f"{python}-manylinux_{(manifest.glibc or '2.17').replace('.', '_')}_{_machine(manifest)}"


def _machine(manifest: Manifest) -> str:
    return find_machine(map(Target.parse, {each.target for each in manifest.units}))


def _metadata(manifest: Manifest) -> str:
    return (
        f"Metadata-Version: 2.1\nName: {manifest.name}\nVersion: {manifest.version}\n"
        f"Summary: {len(manifest.units)} precompiled kernels\nRequires-Python: >=3.10\n"
    )


def _wheel_file(manifest: Manifest, files: Iterable[str]) -> str:
    return f"Wheel-Version: 1.0\nGenerator: precast\nRoot-Is-Purelib: false\nTag: {_tags(manifest, files)}\n"


def _record(entries: dict[str, bytes], record: str) -> str:
    lines = [f"{name},sha256={_urlsafe_digest(data)},{len(data)}" for name, data in sorted(entries.items())]
    return "\n".join([*lines, f"{record},,", ""])


def _urlsafe_digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _mode(name: str) -> int:
    return 0o755 if name.endswith(".so") else 0o644
