"""Engines: the only importers of Triton, MLIR and LLVM. What a worker asks of one is in `Engine`.

In: a `Job`, and for each stage the text of the stage before it. Out: text or image, the facts that later stages and
launchers need, and what outside passes did. An engine keeps nothing between stages but what is in `StageOutput`, so
that a stage taken from the store and a stage that ran are the same to whoever comes after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from precast.artifact import DeviceBuffer, Facts, Finding, PassRun
from precast.errors import Place
from precast.job import Job
from precast.reads import Read
from precast.spec.model import Unit


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

    @property
    def text(self) -> str:
        return self.data.decode()


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


def input_stage(unit: Unit, stage: str) -> str:
    """The stage whose text `stage` reads; the first one reads the front end's text, which is of its own kind."""
    return unit.stages[max(unit.stages.index(stage) - 1, 0)]


class Engine(Protocol):
    """One way to compile units. Used by one job at a time; `StageFailure` and `PrecastError` are the user's."""

    def read_source(self, job: Job) -> SourceText:
        """Loads the kernel's module and runs the front end."""

    def stage_key(self, job: Job, stage: str, source: StageOutput) -> str:
        """The stage key: sha256 hex of all that decides what `stage` makes of `source`."""

    def run_stage(self, job: Job, stage: str, source: StageOutput, announce: Announce) -> StageOutput:
        """Makes `stage` of the output of the stage before it."""

    def needs_fixed_addresses(self, job: Job, stage: str, source: StageOutput) -> bool:
        """Whether `stage`'s bytes depend on where memory lies, so that it must run in a process of its own."""

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """What launchers and readers must know about the image, from the outputs of all stages by name."""
