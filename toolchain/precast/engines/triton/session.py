"""One unit's stages of Triton with the passes that were selected for it: the engine's way to run any of them.

In: a backend, its options, and the passes of a stage. Out: the new module (or text) with what the outside passes did.
A selected pass that does not run is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.engines import Announce, StageFailure, UnitFacts
from precast.engines.triton.capture import capture_errors, first_error, traced
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
from precast.passes.pipeline import Pipeline, Step, edit_pipeline
from precast.passes.plan import SelectedPass, describe_run, plan_edits
from precast.passes.resources import resolve_resource
from precast.passes.selection import PassUse
from precast.reads import Read
from precast.spec.spelling import python_value
from precast.target import Target

StageFunction = Callable[[Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class StageOutcome:
    """What a stage made: a libtriton module in ttir, glir and ttgir, text or bytes after that."""

    made: Any
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    reads: tuple[Read, ...] = ()  # by outside code that did not declare them: inputs of the next build


def load_libraries(uses: tuple[PassUse, ...], project: Path) -> None:
    """Loads the native libraries behind `uses`: call it before a context of MLIR is made."""
    libraries = dict.fromkeys(use.library for use in uses if use.library)
    if libraries:
        from precast.engines.triton.native import load_library

        for library in libraries:
            load_library(resolve_resource(library, project))


def load_passes(uses: tuple[PassUse, ...], project: Path) -> tuple[SelectedPass, ...]:
    """The definitions behind `uses`, with their native libraries."""
    if not uses:
        return ()
    load_libraries(uses, project)
    with kept_surroundings():
        return tuple(SelectedPass(use, *load_definition(use, project)) for use in uses)


def list_reads(passes: Iterable[SelectedPass]) -> tuple[Read, ...]:
    """What the code of `passes` has read so far and did not declare, sorted."""
    return tuple(sorted({read for each in passes for read in each.reads}))


class PassSession:
    """Runs the stages of one unit, in order, any of them left out. Used by one unit at a time."""

    def __init__(self, backend: Any, options: Any, language: Any) -> None:
        self._original, self._options, self._language = backend, options, language
        self._relay = _Relay()
        self._started: _Started | None = None

    def pipeline(self, stage: str, passes: Sequence[SelectedPass], target: Target, project: Path) -> Pipeline:
        """The effective pipeline of `stage`. `PassError` for an anchor that is absent or ambiguous."""
        return _effective(self._own(stage), passes, target, project)

    def run(
        self,
        stage: str,
        module: Any,
        metadata: dict[str, Any],
        passes: tuple[SelectedPass, ...],
        facts: UnitFacts,
        project: Path,
        announce: Announce,
    ) -> StageOutcome:
        """Runs `stage` on what the stage before it made, with `passes`; Triton writes into `metadata`.

        `announce` is called with an outside pass's name and the IR that it is about to be given, and with "" after it.
        `PassFailure` names the outside pass that failed; what Triton's own steps raise goes through unchanged.
        """
        started = self._start(tuple(each for each in passes if each.use.stateful), facts.target, project)
        own = self._own(stage)
        overrides = _standing(passes, stage, "override")
        replay = StageReplay(
            own,
            _effective(own, passes, facts.target, project),
            self._options,
            {each.use.name: each for each in passes},
            lambda name: make_context(facts, stage, name, self._options),
            announce,
            overrides[-1].name if overrides else "",
        )
        before = _text_of(module) if overrides else ""
        self._relay.current = replay
        try:
            made, hooked = started.call(stage, module, metadata, announce, replay.buffers)
            if overrides:
                check_kernel(stage, before, made, overrides[-1].name, replay.buffers)
        finally:
            self._relay.current = None
        runs = (*hooked, *_standing(passes, stage, "override", "drop"), *replay.ran)
        _check_all_ran(passes, stage, runs)
        return StageOutcome(
            made, runs, tuple(replay.findings), tuple(replay.buffers), list_reads((*passes, *started.selected))
        )

    def _start(self, hooks: tuple[SelectedPass, ...], target: Target, project: Path) -> _Started:
        """Triton's stages with `hooks` in them, which are started once for all stages of the unit."""
        if self._started is None or self._started.uses != tuple(each.use for each in hooks):
            recorded: dict[str, StageFunction] = {}
            rebuilt = record_backend(self._original, self._relay)
            rebuilt.add_stages(recorded, self._options, self._language)
            stages = {name: _takes_modules(function) for name, function in recorded.items()}
            running = start_hooks(hooks, rebuilt, stages, self._options, self._language, target, project)
            self._started = _Started(tuple(each.use for each in hooks), stages, running)
        return self._started

    def _own(self, stage: str) -> Pipeline:
        return list_pipeline(self._original, self._options, self._language, stage)


@dataclass(frozen=True)
class _Started:
    """Stage functions with the hooks that were started on them."""

    uses: tuple[PassUse, ...]
    stages: Mapping[str, StageFunction]
    hooks: tuple[RunningHook, ...]

    @property
    def selected(self) -> tuple[SelectedPass, ...]:
        """The hooks' passes as they were when they were started: it is their code that runs."""
        return tuple(each.selected for each in self.hooks)

    def call(
        self, stage: str, module: Any, metadata: dict[str, Any], announce: Announce, buffers: Sequence[DeviceBuffer]
    ) -> tuple[Any, list[PassRun]]:
        """Calls the stage function, in the surroundings of the hooks that stand before it if there are any."""
        order = list(self.stages)
        hooks = [each for each in self.hooks if order.index(each.selected.use.stage) <= order.index(stage)]
        changing = [hook for hook in hooks if stage in hook.changed]
        if not changing:
            with _inside(hooks):
                return self.stages[stage](module, metadata), []
        hook, before = changing[-1], _text_of(module)
        announce(hook.selected.use.name, before)
        with capture_errors() as errors:
            try:
                with traced(), _inside(hooks):
                    made = self.stages[stage](module, metadata)
            except (StageFailure, BugError, PassError):
                raise
            except BaseException as error:  # the author's code may raise anything
                raise hook.failure(error, first_error(errors.read())) from error
        check_kernel(stage, before, made, hook.selected.use.name, buffers)
        announce("")
        return made, [each.pass_run for each in changing if each.selected.use.stage == stage]


def check_kernel(stage: str, before: str, made: Any, name: str, buffers: Sequence[DeviceBuffer]) -> None:
    """A hook or another's pipeline leaves the kernel's parameters as they are, but for the `buffers` of passes."""
    after = made if isinstance(made, str | bytes) else _text_of(made)
    if stage in PIPELINE_STAGES and isinstance(after, str) and "\ndefine " not in after:
        problem = explain_change(public_in_text(before), public_in_text(after), len(buffers))
    else:
        problem = explain_emitted(before, after)
    if problem:
        raise PassFailure(problem, name, before, hint=CHANGE_HINT)


def make_context(facts: UnitFacts, stage: str, pass_name: str, options: Any = None) -> PassContext:
    """What a pass is told: the unit, and the options in force, where they are the front end's."""
    constants = {name: python_value(value) for name, value in facts.constants}
    known = {name: value for name, value in vars(options).items() if not name.startswith("_")} if options else {}
    return PassContext(facts.unit, facts.kernel, facts.target, stage, pass_name, known, constants, facts.arguments)


def _effective(own: Pipeline, passes: Sequence[SelectedPass], target: Target, project: Path) -> Pipeline:
    return edit_pipeline(own, plan_edits(passes, own.stage, project), str(target))


def _standing(passes: Sequence[SelectedPass], stage: str, *kinds: str) -> list[PassRun]:
    uses = [each.use for each in passes]
    return [describe_run(use) for use in uses if use.stage == stage and use.kind in kinds]


def _check_all_ran(passes: Sequence[SelectedPass], stage: str, runs: tuple[PassRun, ...]) -> None:
    ran = {run.name for run in runs}
    for use in (each.use for each in passes):
        if use.stage == stage and use.name not in ran:
            raise PassError(
                f"pass `{use.name}` was selected for stage `{stage}` and did not run",
                hint="a hook took the stage's place, or is not written for this target",
            )


class _Relay:
    """Leads what the rebuilt backend asks for to the replay of the stage that is running."""

    current: StageReplay | None = None

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
