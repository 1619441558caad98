"""Passes on an IR file, outside any unit: what `precast opt` runs.

In: text of ttir, ttgir or the CPU engine's loops, and passes ready to run. Out: the text after each pass, or after
further stages of Triton. Passes run by the same code as in a build.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from triton._C import libtriton

from precast.artifact import Finding
from precast.engines import UnitFacts
from precast.engines.triton import v3_9
from precast.engines.triton.cpu_stages import TextRunner
from precast.engines.triton.recording import ModuleHandle
from precast.engines.triton.replay import StageReplay
from precast.engines.triton.session import PassSession, make_context
from precast.errors import PassError
from precast.passes.context import PassContext
from precast.passes.pipeline import Pipeline, Run, Step
from precast.passes.plan import SelectedPass
from precast.target import Backend, Target


@dataclass(frozen=True)
class Subject:
    """An IR file to work on. `name` is the file's own name, which locations and diagnostics carry.

    IR of a built unit comes with the options that it was compiled with, and with what passes are told of it.
    """

    text: str
    name: str
    stage: str
    target: Target
    options: tuple[tuple[str, Any], ...] = ()
    told: UnitFacts | None = None

    @property
    def facts(self) -> UnitFacts:
        """What passes are told of it."""
        return self.told or UnitFacts(self.name, "", self.target)


class Workbench(Protocol):
    """A parsed file that passes run on, one at a time."""

    findings: list[Finding]

    def run(self, step: Step, passes: dict[str, SelectedPass]) -> None:
        """Runs one pass; `PassFailure` when it fails."""

    def print(self) -> str:
        """The text now."""

    def compile(self, stop_after: str) -> str:
        """The text of a later stage, made by the engine's own pipeline from here."""


def open_workbench(subject: Subject) -> Workbench:
    """Parses the file. Native diagnostics go to standard error; `PassError` when it is not valid."""
    return LoopsWorkbench(subject) if subject.stage == "loops" else TritonWorkbench(subject)


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """libtriton reads files by path, and the path stands in locations: here a file's own name is its path."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="precast-opt-") as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


@dataclass
class TritonWorkbench:
    """ttir or ttgir, in libtriton."""

    subject: Subject
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._backend = v3_9.make_backend(v3_9.compiler_target(self.subject.target))
        context = v3_9.make_context(self._backend)
        with _private_folder() as folder:
            (folder / self.subject.name).write_text(self.subject.text, encoding="utf-8")
            try:
                self.module = libtriton.ir.parse_mlir_module(self.subject.name, context)
            except RuntimeError:
                raise PassError(f"`{self.subject.name}` is not valid {self.subject.stage}") from None
        self.module.context = context
        known = v3_9.option_names(self._backend)
        stated = {name: value for name, value in self.subject.options if name in known}
        self.options = v3_9.parse_options(self._backend, {**self._options_of_module(), **stated})

    def _options_of_module(self) -> dict[str, int]:
        """ttgir says for how many warps it was made; Triton reads it from there too."""
        named = {"num_warps": "ttg.num-warps", "num_ctas": "ttg.num-ctas"}
        found = {option: self.module.get_int_attr(attribute) for option, attribute in named.items()}
        return {option: value for option, value in found.items() if value is not None}

    def run(self, step: Step, passes: dict[str, SelectedPass]) -> None:
        nothing = Pipeline(self.subject.stage, (Run("opt", ()),))
        chosen = Pipeline(self.subject.stage, (Run("opt", (step,)),))
        handle = ModuleHandle(self.module)
        replay = StageReplay(nothing, chosen, self.options, passes, self._context, lambda *_: None)
        try:
            replay.run(handle, "opt", ())
        finally:
            self.module = handle.module
        self.findings += replay.findings

    def _context(self, name: str) -> PassContext:
        return make_context(self.subject.facts, self.subject.stage, name, self.options)

    def print(self) -> str:
        return str(self.module.str_nodebug())

    def compile(self, stop_after: str) -> str:
        target = self.subject.target
        stages = target.stages()
        if stop_after not in stages[:-1] or stages.index(stop_after) <= stages.index(self.subject.stage):
            later = stages[stages.index(self.subject.stage) + 1 : -1]
            raise PassError(
                f"cannot stop after stage `{stop_after}`", hint=f"from {self.subject.stage}: {', '.join(later)}"
            )
        session = PassSession(self._backend, self.options, v3_9.language(gluon=False))
        metadata = dict(vars(self.options))
        value: Any = self.module
        for stage in stages[stages.index(self.subject.stage) + 1 : stages.index(stop_after) + 1]:
            value = session.run(stage, value, metadata, (), self.subject.facts, Path(), lambda *_: None).made
        return value if isinstance(value, str) else str(value.str_nodebug())


@dataclass
class LoopsWorkbench:
    """The CPU engine's IR, in the upstream bindings."""

    subject: Subject
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        from mlir.ir import MLIRError

        from precast.engines.triton.bridge import parse_upstream

        try:
            parse_upstream(self.subject.text, "loops")
        except MLIRError as error:
            raise PassError(f"`{self.subject.name}` is not valid MLIR: {error}") from None
        self._text = self.subject.text

    def run(self, step: Step, passes: dict[str, SelectedPass]) -> None:
        if step.kind != "python":
            raise PassError(f"`{step.by}` is a {step.kind} pass: the CPU engine's IR takes Python passes only")
        runner = TextRunner("loops", passes, self.subject.facts, lambda *_: None)
        self._text = runner.run((step,), self._text, is_triton=False)
        self.findings += runner.findings

    def print(self) -> str:
        from precast.engines.triton.bridge import parse_upstream

        return str(parse_upstream(self._text, "loops"))

    def compile(self, stop_after: str) -> str:
        raise PassError(f"cannot stop after stage `{stop_after}`: what follows the CPU engine's IR is LLVM's")


def stage_of_file(name: str, target: Target) -> str:
    """Which IR a file holds, by its suffix: `.mlir` is Triton's for GPUs and the CPU engine's for CPUs."""
    suffix = Path(name).suffix.lstrip(".")
    if suffix in ("ttir", "ttgir", "loops"):
        return suffix
    if suffix == "mlir":
        return "loops" if target.kind is Backend.CPU else "ttgir"
    raise PassError(f"`{name}`: cannot tell what IR this is", hint="name it .ttir, .ttgir, .loops or .mlir")


def split_input(text: str) -> Sequence[str]:
    """The parts between `// -----` lines, each at the line where it stands: blank lines take the place of the rest."""
    parts: list[str] = []
    current: list[str] = []
    for number, line in enumerate(text.splitlines()):
        if line.startswith("// -----"):
            parts.append("\n".join(current) + "\n")
            current = [""] * (number + 1)
        else:
            current.append(line)
    return [*parts, "\n".join(current) + "\n"]
