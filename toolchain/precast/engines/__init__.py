"""Engines: the only importers of Triton, MLIR and LLVM. What a worker asks of one is in `Engine`.

In: a `Job` for the front end; for each stage one frozen `StageInputs` and the text of the stage before it. Out: text
or image, the facts that later stages and launchers need, and what outside passes did. A stage sees nothing but its
inputs, whose digest is its key, so that a stage taken from the store and a stage that ran are the same to whoever
comes after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from precast.artifact import DeviceBuffer, Facts, Finding, PassRun
from precast.errors import Place
from precast.identity import Tools
from precast.job import Job
from precast.keyed import Keyed
from precast.passes.selection import PassUse
from precast.reads import Read
from precast.spec.model import Constant, Options
from precast.target import Target


class Announce(Protocol):
    """Called before an outside pass runs, with its name and the text that it is about to be given; "" after it."""

    def __call__(self, pass_name: str, text: str = "", /) -> None: ...


@dataclass(frozen=True)
class StageOutput:
    """What a stage made. `carry` is canonical JSON: the compiler's metadata after this stage, an object by name."""

    data: bytes  # text in UTF-8, or an image
    carry: str = "{}"
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    reads: tuple[Read, ...] = ()  # what outside code read that it did not declare

    @property
    def text(self) -> str:
        return self.data.decode()


@dataclass(frozen=True)
class UnitFacts:
    """What passes are told about the unit that they run on."""

    unit: str
    kernel: str
    target: Target
    constants: tuple[tuple[str, Constant], ...] = ()
    arguments: tuple[str, ...] = ()  # run-time ones, in order


@dataclass(frozen=True)
class StageInputs(Keyed):
    """All that decides what a stage makes; its key is the stage key. No path, no time, nothing of the machine."""

    stage: str
    target: Target
    gluon: bool
    options: Options  # those that the unit states
    line_info: bool
    environment: tuple[tuple[str, str], ...]  # what the project sets for Triton
    passes: tuple[PassUse, ...]  # outside code that acts in this stage, in order
    facts: UnitFacts | None  # what that code is told; None where there is none
    tools: Tools  # those that the stage runs
    carry: str  # canonical JSON: the compiler's metadata after the stage before
    input: str  # digest of the text of the stage before
    symbol: str = ""  # the name that an object exports, in the stage that writes it


@dataclass(frozen=True)
class SourceText:
    """What the front end made of a kernel's source: the input of the first stage."""

    output: StageOutput
    files_used: tuple[str, ...] = ()  # project-relative, sorted
    warnings: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()  # all that its module read when it was imported, sorted


class StageFailure(Exception):
    """A stage refused its input, told in the user's terms; the worker adds unit, stage and reproducer."""

    def __init__(
        self, message: str, where: Place | None = None, hint: str | None = None, *, pass_name: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.pass_name = pass_name


def input_stage(stages: Sequence[str], stage: str) -> str:
    """The one of `stages` whose text `stage` reads; the first reads the front end's text, which is of its own kind."""
    return stages[max(stages.index(stage) - 1, 0)]


class Engine(Protocol):
    """One way to compile units. Used by one job at a time; `StageFailure` and `PrecastError` are the user's."""

    def read_source(self, job: Job) -> SourceText:
        """Loads the kernel's module and runs the front end. A unit begins here."""

    def run_stage(self, inputs: StageInputs, data: bytes, project: Path, announce: Announce) -> StageOutput:
        """Makes a stage of `data`, which the stage before it made. `project` is the folder where files of passes lie,
        whose digests are in `inputs`."""

    def prepare(self, inputs: StageInputs, project: Path) -> None:
        """Makes ready what a stage needs, so that nothing but the stage itself is left to the thread that runs it."""

    def needs_fixed_addresses(self, inputs: StageInputs, data: bytes) -> bool:
        """Whether a stage's bytes depend on where memory lies, so that it must run in a process of its own."""

    def find_place(self, job: Job, walked: Sequence[StageInputs], failure: StageFailure) -> Place | None:
        """The user's line that the last of the stages `walked` refuses; None where that cannot be found."""

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """What launchers and readers must know about the image, from the outputs of all stages by name."""
