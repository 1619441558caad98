"""The CPU engine's stages with Python passes around them: before and after `loops`, and before `llir`.

In: the text of the stage before, the engine's own lowering as a function of text, the unit's passes. Out: the text
that the lowering and the passes leave, and what they did. IR before `loops` is ttir, checked by libtriton; IR after it
is of the upstream dialects, checked by the bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from triton._C import libtriton

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.engines import Announce, UnitFacts
from precast.engines.cpu import describe_pipeline
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.python_steps import PassFailure, PythonStep
from precast.engines.triton.session import StageOutcome, make_context
from precast.errors import PassError
from precast.passes.pipeline import Pipeline, Run, Step, edit_pipeline
from precast.passes.plan import SelectedPass, describe_run, plan_edits
from precast.target import Target

CPU_STAGES = ("loops", "llir", "obj")


@dataclass(frozen=True)
class Surrounding:
    """A CPU stage's steps: passes, then the engine's own lowering as a whole, then passes."""

    before: tuple[Step, ...]
    own: tuple[Step, ...]
    after: tuple[Step, ...]


def cpu_pipeline(stage: str, passes: Sequence[SelectedPass], target: Target, project: Path) -> Pipeline:
    """The effective pipeline of a CPU stage.

    `PassError` for an anchor that is absent or inside the engine's lowering, and for anything but a Python pass.
    """
    described = describe_pipeline(stage, target.arch)
    steps = tuple(
        Step(f"cpu.{name}", tuple(f"{option}={value}" for option, value in options)) for name, options in described
    )
    own = Pipeline(stage, (Run(stage, steps),))
    edited = edit_pipeline(own, plan_edits(passes, stage, project), str(target))
    if surround(edited, target).own != steps:
        raise PassError(f"stage `{stage}` of {target} cannot be edited: its own steps run as a whole")
    return edited


def surround(pipeline: Pipeline, target: Target) -> Surrounding:
    """The steps before, of and after the engine's lowering; `PassError` for a pass that cannot be where it is."""
    own = [index for index, step in enumerate(pipeline.steps) if not step.by]
    first, last = (own[0], own[-1] + 1) if own else (0, 0)
    found = Surrounding(pipeline.steps[:first], pipeline.steps[first:last], pipeline.steps[last:])
    allowed = {"loops": (*found.before, *found.after), "llir": found.before}.get(pipeline.stage, ())
    where = {"loops": "before and after the whole stage", "llir": "before the whole stage"}.get(
        pipeline.stage, "nowhere"
    )
    for step in pipeline.outside:
        if step not in allowed or step.kind != "python":
            raise PassError(
                f"pass `{step.by}` cannot stand where it does in stage `{pipeline.stage}` of {target}",
                hint=f"Python passes stand {where}",
            )
    return found


def run_cpu_stage(
    stage: str,
    text: str,
    lower: Callable[[str], str],
    passes: Sequence[SelectedPass],
    facts: UnitFacts,
    project: Path,
    announce: Announce,
) -> StageOutcome:
    """Runs `lower` on `text` with the passes of `stage` around it. `PassFailure` names the pass that failed."""
    steps = surround(cpu_pipeline(stage, passes, facts.target, project), facts.target)
    runner = TextRunner(stage, {each.use.name: each for each in passes}, facts, announce)
    text = runner.run(steps.before, text, is_triton=stage == "loops")
    text = runner.run(steps.after, lower(text), is_triton=False)
    return StageOutcome(text, tuple(runner.ran), tuple(runner.findings), tuple(runner.buffers))


@dataclass
class TextRunner:
    """Runs Python passes on a module's text and keeps what they did."""

    stage: str
    passes: dict[str, SelectedPass]
    facts: UnitFacts
    announce: Announce
    ran: list[PassRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    buffers: list[DeviceBuffer] = field(default_factory=list)

    def run(self, steps: Sequence[Step], text: str, *, is_triton: bool) -> str:
        if not steps:
            return text
        from precast.engines.triton import bridge

        checked: Any = None
        if is_triton:
            triton_context = libtriton.ir.context()
            libtriton.ir.load_dialects(triton_context)
            text = bridge.print_generic(bridge.parse_triton(text, triton_context))
        module = bridge.parse_upstream(text, "ttir" if is_triton else "loops")
        for step in steps:
            before = text
            self.announce(step.by, before)
            text = self._run_one(step, module, before)
            if is_triton:
                check = partial(bridge.parse_triton, text, triton_context)
                checked = _checked(check, step.by, before)
            self.announce("")
        return str(checked) if is_triton else text

    def _run_one(self, step: Step, module: Any, before: str) -> str:
        from mlir.ir import MLIRError

        from precast.engines.triton import bridge

        selected = self.passes[step.by]
        context = make_context(self.facts, self.stage, step.by)
        finding = PythonStep(selected, context, before).run(module)
        try:
            module.operation.verify()
        except MLIRError as error:
            raise PassFailure(f"the IR it left is not valid: {error}", step.by, before) from None
        self.findings += [finding] if finding else []
        self.buffers += context.buffers
        self.ran.append(describe_run(selected.use))
        return bridge.print_upstream(module)


def _checked(parse: Callable[[], Any], name: str, before: str) -> Any:
    with capture_errors() as errors:
        try:
            return parse()
        except RuntimeError as error:
            reason = first_error(errors.read()) or str(error)
    raise PassFailure(f"the IR it left is not valid: {reason}", name, before)
