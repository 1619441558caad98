"""The identity of every tool that makes an image, found without importing any.

In: installed distributions. Out: for each target, (name, identity) pairs that go into unit keys and the manifest:
a version and 12 hex digits over the files that matter, or "not installed". No path and no Python version is in them.

A file that pip installed and nobody touched since has the digest that pip recorded; any other is digested here.
"""

from __future__ import annotations

import base64
import csv
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import precast
from precast.digest import FileDigests, digest_pairs
from precast.spec.model import CompileSettings
from precast.target import Backend, Target

Tools = tuple[tuple[str, str], ...]
NOT_INSTALLED = "not installed"
SUFFIXES = frozenset({".py", ".so", ".bc", ".ll", ""})

# What of each distribution can change an image, by file name within it; the rest of Triton (profiler, tools, headers)
# cannot. ptxas: Triton takes the second one for compute capabilities from 90 on.
TRITON_PARTS = ("triton/_C/libtriton.so", "triton/language/", "triton/compiler/", "triton/runtime/", "triton/backends/")
BACKEND_PARTS = {Backend.CUDA: "triton/backends/nvidia/", Backend.HIP: "triton/backends/amd/"}
PTXAS, PTXAS_FROM_90 = "triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/bin/ptxas-blackwell"
MLIR_DISTRIBUTION = "xtc-mlir-python-bindings"
OWN_PARTS = ("engines/", "passes/", "job.py", "spec/model.py")


@dataclass(frozen=True)
class InstalledFile:
    """One file of a distribution; `recorded` is pip's sha256 hex, empty where pip recorded none."""

    name: str
    path: Path
    recorded: str
    size: int


class ToolReader:
    """Reads identities; each distribution once."""

    def __init__(self, digests: FileDigests) -> None:
        self._digests = digests
        self._files: dict[str, tuple[str, float, tuple[InstalledFile, ...]] | None] = {}
        self._identities: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[Target, bool], Tools] = {}

    def tools(self, target: Target, settings: CompileSettings, *, python_pass: bool = False) -> Tools:
        """The tools that a unit of `target` meets, sorted by name; the MLIR bindings too where a Python pass runs."""
        key = (target, python_pass)
        if key not in self._known:
            self._known[key] = tuple(sorted(self._tools(target, settings, python_pass)))
        return self._known[key]

    def _tools(self, target: Target, settings: CompileSettings, python_pass: bool) -> Iterator[tuple[str, str]]:
        yield "precast", self._own(target)
        # The CPU engine uses the CUDA back end's front end.
        backend = Backend.CUDA if target.kind is Backend.CPU else target.kind
        yield "triton", self._identity("triton", backend.value, _is_triton_part(backend))
        if target.kind is Backend.CUDA:
            wanted = PTXAS if int(target.arch) < 90 else PTXAS_FROM_90
            own = self._identity("triton", wanted, lambda name: name == wanted)
            yield "ptxas", self._digests.digest(Path(settings.ptxas))[:12] if settings.ptxas else own
        if target.kind is Backend.CPU or python_pass:
            yield "mlir", self._identity(MLIR_DISTRIBUTION, "", lambda name: name.startswith("mlir/"))
        if target.kind is Backend.CPU:
            yield "llvmlite", self._identity("llvmlite", "", lambda name: name.startswith("llvmlite/binding/"))

    def _own(self, target: Target) -> str:
        """This toolchain: its version and the code that runs units. The CPU engine counts for CPU targets alone."""
        root = Path(precast.__file__).parent
        parts = [path for part in OWN_PARTS for path in _python_files(root / part)]
        if target.kind is not Backend.CPU:
            parts = [path for path in parts if not path.is_relative_to(root / "engines" / "cpu")]
        names = sorted((path.relative_to(root).as_posix(), path) for path in parts)
        return f"{precast.__version__} {digest_pairs((name, self._digests.digest(path)) for name, path in names)[:12]}"

    def _identity(self, distribution: str, part: str, is_part: Callable[[str], bool]) -> str:
        """Version and digest of a `part` of a distribution, the files that `is_part` picks by name."""
        if (distribution, part) not in self._identities:
            self._identities[(distribution, part)] = self._identify(distribution, is_part)
        return self._identities[(distribution, part)]

    def _identify(self, distribution: str, is_part: Callable[[str], bool]) -> str:
        if distribution not in self._files:
            self._files[distribution] = _read_distribution(distribution)
        found = self._files[distribution]
        if found is None:
            return NOT_INSTALLED
        version, installed_at, files = found
        parts = [file for file in files if file.path.suffix in SUFFIXES and is_part(file.name)]
        pairs = ((file.name, self._digest(file, installed_at)) for file in sorted(parts, key=lambda each: each.name))
        return f"{version} {digest_pairs(pairs)[:12]}"

    def _digest(self, file: InstalledFile, installed_at: float) -> str:
        try:
            status = file.path.stat()
            untouched = status.st_size == file.size and status.st_mtime <= installed_at
            return file.recorded if file.recorded and untouched else self._digests.digest(file.path)
        except OSError:
            return "missing"


def _is_triton_part(backend: Backend) -> Callable[[str], bool]:
    others = [part for each, part in BACKEND_PARTS.items() if each is not backend]

    def is_part(name: str) -> bool:
        if name.startswith((*others, "triton/backends/nvidia/bin/")) or "/include/" in name:
            return False
        return name.startswith((*TRITON_PARTS, "triton/experimental/")) or name.count("/") == 1

    return is_part


def _python_files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    else:
        yield from (path for path in place.rglob("*.py"))


def _read_distribution(name: str) -> tuple[str, float, tuple[InstalledFile, ...]] | None:
    """Version, time of installation (seconds) and files of a distribution; None when it is not installed."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    record = found.read_text("RECORD") or ""
    root = Path(str(found.locate_file("")))
    information = next((row[0] for row in csv.reader(record.splitlines()) if row and row[0].endswith("/RECORD")), "")
    installed_at = (root / information).stat().st_mtime if information else 0.0
    rows = [row for row in csv.reader(record.splitlines()) if len(row) == 3 and not row[0].endswith(".pyc")]
    return found.version, installed_at, tuple(_installed_file(root, row) for row in rows)


def _installed_file(root: Path, row: list[str]) -> InstalledFile:
    name, digest, size = row
    kind, _, code = digest.partition("=")
    recorded = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).hex() if kind == "sha256" else ""
    return InstalledFile(name, root / name, recorded, int(size) if size.isdigit() else -1)


def merge_tools(every: Mapping[str, Tools]) -> Tools:
    """The tools of a whole plan, for the manifest: where targets differ in one, each name says for which."""
    merged: dict[tuple[str, str], list[str]] = {}
    for target, tools in every.items():
        for tool in tools:
            merged.setdefault(tool, []).append(target)
    counts = [name for name, _ in merged]
    return tuple(
        (name if counts.count(name) == 1 else f"{name} ({', '.join(sorted(targets))})", identity)
        for (name, identity), targets in sorted(merged.items())
    )
