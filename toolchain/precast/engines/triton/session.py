"""One unit's stages of Triton with the passes that were selected for it: the engine's way to run any of them.

In: a backend, its options, and the unit's `PassUse` values. Out: for each stage the text that keys it and, when it
runs, the new module (or text) with what the outside passes did. A selected pass that does not run is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.engines import Announce, StageFailure
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.hooks import RunningHook, start_hooks
from precast.engines.triton.kernel_types import CHANGE_HINT, explain_change, explain_emitted, public_in_text
from precast.engines.triton.pipeline import PIPELINE_STAGES, list_pipeline
from precast.engines.triton.python_steps import PassFailure
from precast.engines.triton.recording import ModuleHandle, record_backend, unwrap
from precast.engines.triton.replay import StageReplay
from precast.engines.triton.surroundings import kept_surroundings
from precast.errors import BugError, PassError
from precast.passes.context import PassContext
from precast.passes.loading import load_definition
from precast.passes.pipeline import Pipeline, Step, edit_pipeline, render_pipeline
from precast.passes.plan import SelectedPass, describe_run, plan_edits
from precast.passes.resources import resolve_resource
from precast.passes.selection import PassUse
from precast.reads import Read
from precast.target import Target

StageFunction = Callable[[Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class UnitFacts:
    """What passes are told about the unit that they run on. `project` is the folder that their files are in."""

    unit: str
    kernel: str
    target: Target
    project: Path
    constants: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()  # run-time ones, in order


@dataclass(frozen=True)
class StageOutcome:
    """What a stage made: a libtriton module in ttir, glir and ttgir, text or bytes after that."""

    made: Any
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    reads: tuple[Read, ...] = ()  # by outside code that did not declare them: inputs of the next build


def load_passes(uses: tuple[PassUse, ...], project: Path) -> tuple[SelectedPass, ...]:
    """The definitions behind `uses`, with native libraries loaded: call it before a context of MLIR is made."""
    libraries = dict.fromkeys(use.library for use in uses if use.library)
    if libraries:
        from precast.engines.triton.native import load_library

        for library in libraries:
            load_library(resolve_resource(library, project))
    with kept_surroundings():
        return tuple(SelectedPass(use, *load_definition(use, project)) for use in uses)


def list_reads(passes: Iterable[SelectedPass]) -> tuple[Read, ...]:
    """What the code of `passes` has read so far and did not declare, sorted."""
    return tuple(sorted({read for each in passes for read in each.reads}))


class PassSession:
    """Runs the stages of one unit, in order, any of them left out. Used by one job at a time."""

    def __init__(
        self, backend: Any, options: Any, language: Any, passes: tuple[SelectedPass, ...], facts: UnitFacts
    ) -> None:
        self._original, self._options, self._language = backend, options, language
        self._passes, self._facts = passes, facts
        self._relay = _Relay()
        recorded: dict[str, StageFunction] = {}
        rebuilt = record_backend(backend, self._relay)
        rebuilt.add_stages(recorded, options, language)
        self._stages = {name: _takes_modules(function) for name, function in recorded.items()}
        hooks = [each for each in passes if each.use.kind == "hook"]
        self._hooks: tuple[RunningHook, ...] = start_hooks(
            hooks, rebuilt, self._stages, options, language, facts.target, facts.project
        )

    def pipeline(self, stage: str) -> Pipeline:
        """The effective pipeline of `stage`. `PassError` for an anchor that is absent or ambiguous."""
        return self._effective(self._own(stage))

    def key_material(self, stage: str) -> str:
        """The part of the stage key that is about passes: the effective pipeline, and the digests of outside code."""
        lines = [render_pipeline(self.pipeline(stage))]
        for use in (each.use for each in self._passes):
            if self._concerns(use, stage):
                lines.append(f"{use.name} {use.kind} {use.anchor} {dict(use.options)} {use.digest}")
        return "\n".join(lines)

    def run(self, stage: str, module: Any, metadata: dict[str, Any], announce: Announce) -> StageOutcome:
        """Runs `stage` on what the stage before it made; Triton writes into `metadata`.

        `announce` is called with an outside pass's name and the IR that it is about to be given, and with "" after it.
        `PassFailure` names the outside pass that failed; what Triton's own steps raise goes through unchanged.
        """
        own = self._own(stage)
        replay = StageReplay(
            own,
            self._effective(own),
            self._options,
            {each.use.name: each for each in self._passes},
            lambda name: self._context(stage, name),
            announce,
        )
        overrides = self._standing(stage, "override")
        before = _text_of(module) if overrides else ""
        self._relay.current = replay
        try:
            made, hooked = self._call(stage, module, metadata, announce)
            if overrides:
                self._check_kernel(stage, before, made, overrides[-1].name)
        finally:
            self._relay.current = None
        runs = (*hooked, *self._standing(stage, "override", "drop"), *replay.ran)
        self._check_all_ran(stage, runs)
        reads = list_reads(each for each in self._passes if self._concerns(each.use, stage))
        return StageOutcome(made, runs, tuple(replay.findings), tuple(replay.buffers), reads)

    def _concerns(self, use: PassUse, stage: str) -> bool:
        """Whether a pass may decide what `stage` makes: a hook changes its stage and any later one, and a library's
        dialects and ops are in every stage."""
        order = list(self._stages)
        hooked = use.stateful and order.index(use.stage) <= order.index(stage)
        return use.stage == stage or hooked or bool(use.library)

    def _own(self, stage: str) -> Pipeline:
        return list_pipeline(self._original, self._options, self._language, stage)

    def _effective(self, own: Pipeline) -> Pipeline:
        edits = plan_edits(self._passes, own.stage, self._facts.project)
        return edit_pipeline(own, edits, str(self._facts.target))

    def _standing(self, stage: str, *kinds: str) -> list[PassRun]:
        uses = [each.use for each in self._passes]
        return [describe_run(use) for use in uses if use.stage == stage and use.kind in kinds]

    def _call(self, stage: str, module: Any, metadata: dict[str, Any], announce: Announce) -> tuple[Any, list[PassRun]]:
        """Calls the stage function, in the surroundings of the hooks that stand before it if there are any."""
        order = list(self._stages)
        hooks = [each for each in self._hooks if order.index(each.selected.use.stage) <= order.index(stage)]
        changing = [hook for hook in hooks if stage in hook.changed]
        if not changing:
            with _inside(hooks):
                return self._stages[stage](module, metadata), []
        hook, before = changing[-1], _text_of(module)
        announce(hook.selected.use.name, before)
        with capture_errors() as errors:
            try:
                with _inside(hooks):
                    made = self._stages[stage](module, metadata)
            except (StageFailure, BugError, PassError):
                raise
            except BaseException as error:  # the author's code may raise anything
                raise hook.failure(error, first_error(errors.read())) from error
        self._check_kernel(stage, before, made, hook.selected.use.name)
        announce("")
        return made, [each.pass_run for each in changing if each.selected.use.stage == stage]

    def _check_kernel(self, stage: str, before: str, made: Any, name: str) -> None:
        """A hook leaves the kernel's parameters as they are."""
        after = made if isinstance(made, str | bytes) else _text_of(made)
        if stage in PIPELINE_STAGES and isinstance(after, str) and "\ndefine " not in after:
            buffers = len(self._relay.buffers)
            problem = explain_change(public_in_text(before), public_in_text(after), buffers)
        else:
            problem = explain_emitted(before, after)
        if problem:
            raise PassFailure(problem, name, before, hint=CHANGE_HINT)

    def _check_all_ran(self, stage: str, runs: tuple[PassRun, ...]) -> None:
        ran = {run.name for run in runs}
        for use in (each.use for each in self._passes):
            if use.stage == stage and use.name not in ran:
                raise PassError(
                    f"pass `{use.name}` was selected for stage `{stage}` and did not run",
                    hint="a hook took the stage's place, or is not written for this target",
                )

    def _context(self, stage: str, pass_name: str) -> PassContext:
        facts = self._facts
        options = {name: value for name, value in vars(self._options).items() if not name.startswith("_")}
        return PassContext(
            facts.unit, facts.kernel, facts.target, stage, pass_name, options, facts.constants, facts.arguments
        )


class _Relay:
    """Leads what the rebuilt backend asks for to the replay of the stage that is running."""

    current: StageReplay | None = None

    @property
    def buffers(self) -> Sequence[DeviceBuffer]:
        """What passes of the running stage have asked for so far."""
        return self.current.buffers if self.current else ()

    def run(self, module: Any, name: str, steps: tuple[Step, ...]) -> None:
        if self.current is None:
            raise BugError(f"Triton ran the pipeline `{name}` outside a stage")
        self.current.run(module, name, steps)

    def leave_mlir(self) -> None:
        """What follows is LLVM's; passes have nothing to do with it."""


@contextlib.contextmanager
def _inside(hooks: Sequence[RunningHook]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook.inside())
        yield


def _text_of(module: Any) -> str:
    return module if isinstance(module, str) else str(unwrap(module))


def _takes_modules(function: StageFunction) -> StageFunction:
    """A stage function that takes and gives plain values, so that a hook may call or replace any stage."""

    def run(source: Any, metadata: dict[str, Any]) -> Any:
        return unwrap(function(source if isinstance(source, str | bytes) else ModuleHandle(source), metadata))

    return run
