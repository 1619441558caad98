"""Which tools make a unit, and which of them each stage runs.

In: targets, stages. Out: `Tools`. The table below is the whole of what is known by hand: which tool a stage runs, and
which files of an installed package can change code; the rest (profilers, headers, other back ends) cannot.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from precast.digest import FileDigests
from precast.identity.installed import InstalledPart, identify_part, list_files, reads_of_search
from precast.identity.own import digest_own, look_at_own
from precast.reads import Looks, Read, ReadKind, digest_packages
from precast.target import Backend, Target

Tools = tuple[tuple[str, str], ...]  # (name, identity), sorted by name

OWN, OWN_CPU, OWN_STANDIN = "precast", "precast.cpu", "precast.stand-in"
OWN_TOOLS = frozenset({OWN, OWN_CPU, OWN_STANDIN})
TRITON, PTXAS, MLIR, LLVMLITE = "triton", "ptxas", "mlir", "llvmlite"
ENGINE_SETTING = "PRECAST_ENGINE"  # in [tool.precast.triton]; for tests
STANDIN = "stand-in"
# The module of each engine, by the engine's name.
ENGINES = {
    "triton": "precast.engines.triton.compile",
    "cpu": "precast.engines.cpu_units",
    STANDIN: "precast.engines.standin",
}
# Where each of our own parts that make stages begins; the walk makes their keys and what the store keeps of them.
_WALK = ("precast.worker.walk", "precast.worker.fixed")
_OWN_STARTS = {
    OWN: (ENGINES["triton"], *_WALK),
    OWN_CPU: (ENGINES["cpu"], *_WALK),
    OWN_STANDIN: (ENGINES[STANDIN], *_WALK),
}
# Where our part that makes all but units begins.
MAKERS = ("precast.graph.making", "precast.passes.probe")
_CPU_STAGES = ("loops", "llir", "obj")
_PTXAS_FILE, _PTXAS_FILE_FROM_90 = "triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/bin/ptxas-blackwell"
_BACKEND_FOLDERS = {Backend.CUDA: "triton/backends/nvidia/", Backend.HIP: "triton/backends/amd/"}
_TRITON_FOLDERS = (
    "triton/_C/libtriton.so", "triton/language/", "triton/compiler/", "triton/runtime/", "triton/backends/",
    "triton/experimental/", "triton/tools/",
)  # fmt: skip


def stage_tools(target: Target, stage: str, *, python_pass: bool, standin: bool = False) -> tuple[str, ...]:
    """The names of the tools that a stage runs; `python_pass`: a pass in it goes through the MLIR bindings."""
    bindings = (MLIR,) if python_pass else ()
    if standin:
        return (OWN_STANDIN, *bindings)
    if target.kind is Backend.CPU and stage in _CPU_STAGES:
        return (OWN_CPU, MLIR, *((LLVMLITE,) if stage == "obj" else ()))
    # ptx text names the version of the ptxas that will read it.
    return (OWN, TRITON, *((PTXAS,) if stage in ("ptx", "cubin") else ()), *bindings)


def select_tools(tools: Tools, target: Target, stage: str, *, python_pass: bool) -> Tools:
    """Those of a unit's tools that a stage of it runs."""
    standin = any(name == OWN_STANDIN for name, _ in tools)
    names = stage_tools(target, stage, python_pass=python_pass, standin=standin)
    return tuple(each for each in tools if each[0] in names)


def tool_names(target: Target, *, python_pass: bool = False, standin: bool = False) -> frozenset[str]:
    """The names of the tools that some stage of a target's units runs."""
    stages = {*target.stages(), *target.stages(gluon=target.kind is not Backend.CPU)}
    every = (stage_tools(target, stage, python_pass=python_pass, standin=standin) for stage in stages)
    return frozenset(name for names in every for name in names)


@dataclass
class Identities:
    """Tells identities; each is found once."""

    digests: FileDigests
    _known: dict[str, str] = field(default_factory=dict)
    _listed: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _reads: list[Read] = field(default_factory=list)

    def look_around(self) -> None:
        """Looks at Precast's own code, and at which packages are installed."""
        self._reads += look_at_own(self.digests)
        self._reads += (Read(ReadKind.PACKAGES, each, digest_packages(Path(each))) for each in sys.path if each)

    @property
    def looks(self) -> Looks:
        """All that was looked at."""
        return Looks(self.digests.looked, tuple(self._reads))

    def tools(self, target: Target, *, ptxas: str = "", python_pass: bool = False, standin: bool = False) -> Tools:
        """The tools that some stage of a unit runs, sorted by name. `ptxas` is a project's own assembler."""
        names = sorted(tool_names(target, python_pass=python_pass, standin=standin))
        return tuple((name, self._identify(name, target, ptxas)) for name in names)

    def own(self, *starts: str) -> str:
        """The identity of the part of Precast that begins in the modules `starts`."""
        key = " ".join(starts)
        if key not in self._known:
            self._known[key] = digest_own(starts, self.digests)
        return self._known[key]

    def _identify(self, name: str, target: Target, ptxas: str) -> str:
        if name in _OWN_STARTS:
            return self.own(*_OWN_STARTS[name])
        if name == PTXAS and ptxas:
            return self.digests.digest(Path(ptxas))[:12]
        part = _find_part(name, target)
        if part.name not in self._known:
            files = [each for package in part.packages for each in self._files(package)]
            self._known[part.name] = identify_part(part, files, self.digests)
        return self._known[part.name]

    def _files(self, package: str) -> tuple[tuple[str, str], ...]:
        if package not in self._listed:
            folders: dict[str, str] = {}
            self._reads += reads_of_search(package)
            self._listed[package] = list_files(package, folders)
            self._reads += (Read(ReadKind.DIRECTORY, *each) for each in folders.items())
        return self._listed[package]


def _find_part(name: str, target: Target) -> InstalledPart:
    """The files behind a tool's name, for a target."""
    if name == TRITON:
        # The CPU engine uses the CUDA back end's front end.
        backend = Backend.HIP if target.kind is Backend.HIP else Backend.CUDA
        return InstalledPart(f"triton {backend.value}", "triton", ("triton",), partial(_is_triton_part, backend))
    if name == PTXAS:
        wanted = _PTXAS_FILE if int(target.arch) < 90 else _PTXAS_FILE_FROM_90
        return InstalledPart(wanted, "triton", ("triton",), lambda file: file == wanted)
    if name == MLIR:  # whose LLVM comes in a package of its own
        return InstalledPart(name, "xtc-mlir-python-bindings", ("mlir", "llvm"), _is_bindings_part)
    return InstalledPart(name, "llvmlite", ("llvmlite",), lambda file: file.startswith("llvmlite/binding/"))


def _is_bindings_part(file: str) -> bool:
    return file.startswith("mlir/") or file == "llvm/lib/libLLVM.so"


def _is_triton_part(backend: Backend, file: str) -> bool:
    others = tuple(folder for each, folder in _BACKEND_FOLDERS.items() if each is not backend)
    if file.startswith((*others, "triton/backends/nvidia/bin/")):
        return False
    return file.startswith(_TRITON_FOLDERS) or file.count("/") == 1


def merge_tools(every: Mapping[str, Tools]) -> Tools:
    """The tools of a whole plan, for the manifest: where targets differ in one, each name says for which."""
    merged: dict[tuple[str, str], list[str]] = {}
    for target, tools in every.items():
        for tool in tools:
            merged.setdefault(tool, []).append(target)
    return tuple(_named(merged))


def _named(merged: Mapping[tuple[str, str], list[str]]) -> Iterator[tuple[str, str]]:
    counts = [name for name, _ in merged]
    for (name, identity), targets in sorted(merged.items()):
        yield (name if counts.count(name) == 1 else f"{name} ({', '.join(sorted(targets))})", identity)
