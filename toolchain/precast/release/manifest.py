"""The manifest: what a release holds, as one frozen value and its JSON form.

In: plan, facts and digests. Out: `manifest.json`, canonical, described by `manifest.schema.json` beside this file.
It holds no time, no absolute path and no release version, so equal releases have equal manifests; the version is
made of its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from precast.artifact import Facts, Finding, PassRun
from precast.codec import from_data, to_data, to_json, write_json
from precast.errors import ReleaseError, printable
from precast.release.files import MOST_MANIFEST_BYTES, read_file
from precast.tuning.rules import SelectionRule

_write_text = json.encoder.encode_basestring
SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"


@dataclass(frozen=True)
class ManifestFile:
    """One file of the release: path with `/`, size in bytes, sha256 hex."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class ManifestUnit:
    """One unit: where its image is (`file`, `offset` and `size` in bytes; a CPU unit's is the whole library)."""

    unit: str
    kernel: str
    target: str
    source: str  # file or module, and function
    file: str
    offset: int
    size: int
    digest: str  # of the compiled image: for a CPU unit, of the object that was linked
    facts: Facts
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """Everything that a release says of itself. Units are sorted by text, files by path, tools by name."""

    name: str
    project_version: str
    launch_abi: int
    interface: str  # interface digest, which the library embeds
    units: tuple[ManifestUnit, ...]
    files: tuple[ManifestFile, ...]
    tools: tuple[tuple[str, str], ...] = ()
    selection: tuple[SelectionRule, ...] = ()
    glibc: str = ""  # lowest version that the libraries run with
    reproducible: bool = True
    schema: int = SCHEMA_VERSION

    @cached_property
    def written(self) -> WrittenManifest:
        """The manifest as its file has it."""
        return join_manifest(self, [(each.unit, write_unit(each)) for each in self.units])

    @property
    def data(self) -> bytes:
        """The bytes of `manifest.json`: canonical JSON with the digest of its content as a last check."""
        return self.written.data

    @property
    def digest(self) -> str:
        return self.written.digest

    @property
    def version(self) -> str:
        """The release's version: a local version in the sense of Python packaging."""
        return self.written.version


@dataclass(frozen=True)
class WrittenManifest:
    """A manifest as bytes, with what its makers ask of it."""

    project_version: str
    units: tuple[str, ...]
    files: tuple[ManifestFile, ...]
    reproducible: bool
    data: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def version(self) -> str:
        """The release's version: a local version in the sense of Python packaging."""
        return f"{self.project_version}+{self.digest[:12]}"


class UnitTexts(NamedTuple):
    """One unit as it stands in the file, and as it counts for the digest of the content, in UTF-8."""

    shown: bytes
    compact: bytes


def write_unit(unit: ManifestUnit) -> UnitTexts:
    data = to_data(unit)
    return UnitTexts(_show(data, "\n  ").encode(), _write_compact(data).encode())


def join_manifest(head: Manifest, units: Iterable[tuple[str, UnitTexts]]) -> WrittenManifest:
    """The manifest that says of itself what `head` does, and holds these units, in the order of their texts.

    It is put together of texts: a release of thousands of units has that of each from when it was made.
    """
    ordered = sorted(units, key=lambda each: each[0])
    body = json.loads(to_json(replace(head, units=())))
    compact = _put_units(_write_compact(body), '"units":[', b",".join(texts.compact for _, texts in ordered))
    body["content"] = hashlib.sha256(compact).hexdigest()
    shown = b",\n  ".join(texts.shown for _, texts in ordered)
    data = _put_units(_show(body), '"units": [', b"\n  " + shown + b"\n " if ordered else b"")
    names = tuple(name for name, _ in ordered)
    return WrittenManifest(head.project_version, names, head.files, head.reproducible, data + b"\n")


def _put_units(text: str, opening: str, units: bytes) -> bytes:
    """`text` with its empty list of units filled: the last thing in it."""
    before, found, after = text.rpartition(opening)
    return b"".join([before.encode(), found.encode(), units, after.encode()])


def _show(data: object, line: str = "\n") -> str:
    """Indented JSON, whose lines begin with `line`; the library's own writer takes four times as long."""
    deeper = f"{line} "
    if data and isinstance(data, dict):
        rows = [f"{_write_text(name)}: {_show(data[name], deeper)}" for name in sorted(data)]
        return f"{{{deeper}{f',{deeper}'.join(rows)}{line}}}"
    if data and isinstance(data, list | tuple):
        return f"[{deeper}{f',{deeper}'.join([_show(each, deeper) for each in data])}{line}]"
    return _write_text(data) if isinstance(data, str) else _write_compact(data)


def _write_compact(data: object) -> str:
    return write_json(data)


def _content_digest(body: dict[str, object]) -> str:
    return hashlib.sha256(_write_compact(body).encode()).hexdigest()


def read_manifest(release: Path) -> Manifest:
    """The manifest of a release directory; `ReleaseError` when it is absent, damaged or of another schema."""
    path = release / MANIFEST
    if not os.path.lexists(path):
        raise ReleaseError(f"{printable(release)} is no release: it has no {MANIFEST}")
    return parse_manifest(read_file(path, MOST_MANIFEST_BYTES), printable(path))


def parse_manifest(data: bytes, name: str) -> Manifest:
    """The manifest whose canonical form `data` is; `name` stands for it in errors."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or "schema" not in body:
        raise ReleaseError(f"{name} is damaged: it is not a manifest")
    if body["schema"] != SCHEMA_VERSION:
        schema = printable(body["schema"], 40)
        raise ReleaseError(f"{name} has schema {schema}, this Precast reads schema {SCHEMA_VERSION}")
    try:
        if body.pop("content", None) != _content_digest(body):
            raise ReleaseError(f"{name} is damaged: its content does not match its digest")
        manifest = from_data(body, Manifest)
        written = manifest.data
    except (ValueError, RecursionError):  # lone surrogates, numbers without end, depth
        raise ReleaseError(f"{name} is damaged: it is not of the form that its schema has") from None
    if written != data:
        raise ReleaseError(f"{name} is damaged: it is not in the form that Precast writes")
    return manifest


def manifest_schema() -> dict[str, object]:
    """The published JSON schema of `manifest.json`."""
    schema: dict[str, object] = json.loads((Path(__file__).parent / "manifest.schema.json").read_text(encoding="utf-8"))
    return schema
