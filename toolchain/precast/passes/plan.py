"""From the passes selected for a unit to edits of one stage's pipeline.

In: `PassUse` values with their loaded definitions. Out: `Edit`s in order, whose steps say by name and kind how they
run, and one text of options for listings and keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from precast.artifact import PassRun
from precast.errors import PassError
from precast.passes.definitions import BuiltinPass, Drop, NativePass, Override, Pass, Replace
from precast.passes.elementwise import ElementwiseOp
from precast.passes.namespace import Namespace
from precast.passes.pipeline import Edit, Pipeline, Step
from precast.passes.saved import find_step, read_pipeline
from precast.passes.selection import PassUse
from precast.reads import Read


@dataclass(frozen=True)
class SelectedPass:
    """A pass of a unit, loaded: ready to be placed and run. `namespace` is where its code lives; Triton's own
    passes have none."""

    use: PassUse
    definition: Any
    namespace: Namespace | None = None

    def inside(self) -> AbstractContextManager[None]:
        """The surroundings that its code runs in."""
        return self.namespace.inside() if self.namespace else nullcontext()

    @property
    def reads(self) -> tuple[Read, ...]:
        """What its code has read so far that its digest does not cover."""
        return self.namespace.undeclared(bool(self.use.outside)) if self.namespace else ()


def plan_edits(passes: Iterable[SelectedPass], stage: str, project: Path) -> list[Edit]:
    """The edits of `stage` that the passes ask for, in order. Hooks make none: they act on whole stages.

    A pass that a saved pipeline of the stage names stands where that says, and not at its own anchor.
    """
    here = [each for each in passes if each.use.stage == stage and each.use.kind != "hook"]
    saved = {
        each.use.name: _place_passes(read_pipeline(project / each.definition.file, stage), here, each, project)
        for each in here
        if isinstance(each.definition, Override)
    }
    placed = {step.by for pipeline in saved.values() for step in pipeline.outside}
    return [_edit(each, saved) for each in here if each.use.name not in placed]


def _edit(selected: SelectedPass, saved: Mapping[str, Pipeline]) -> Edit:
    use, definition = selected.use, selected.definition
    if isinstance(definition, Drop):
        return Edit("drop", use.name, use.anchor)
    if isinstance(definition, Override):
        return Edit("override", use.name, use.anchor, pipeline=saved[use.name])
    if isinstance(definition, Replace):
        return Edit("replace", use.name, use.anchor, (plan_step(definition.by, use),))
    return Edit("insert", use.name, use.anchor, (plan_step(definition, use),))


OUTSIDE = ("python.", "plugin.", "op.")


def _place_passes(pipeline: Pipeline, here: Iterable[SelectedPass], owner: SelectedPass, project: Path) -> Pipeline:
    """A saved pipeline with the selected passes in the places that it names; `PassError` for one that is not."""
    known = {}
    for each in here:
        if isinstance(each.definition, Pass | NativePass | ElementwiseOp):
            step = plan_step(each.definition, each.use)
            known[step.op] = step

    def place(step: Step) -> Step:
        if not step.op.startswith(OUTSIDE):
            return step
        found, where = known.get(step.op), find_step(project / owner.definition.file, step)
        if found is None:
            name = step.op.partition(".")[2]
            message = f"the saved pipeline of `{owner.use.name}` names `{step.op}`, which is not selected for the unit"
            raise PassError(message, where, f'select it too: [[tool.precast.pass]] use = "{name}"')
        if step.args and step.args != found.args:
            message = f"the saved pipeline has {step}, and the pass is selected as {found}"
            raise PassError(message, where, "options stand in pyproject.toml; in the file they may be left out")
        return found

    runs = tuple(replace(run, steps=tuple(map(place, run.steps))) for run in pipeline.runs)
    return Pipeline(pipeline.stage, runs)


def plan_step(definition: Any, use: PassUse) -> Step:
    """The step that runs `definition` on behalf of `use`."""
    if isinstance(definition, NativePass):
        return Step(f"plugin.{definition.name}", definition.args, "native", use.name)
    if isinstance(definition, BuiltinPass):
        return Step(definition.op, definition.args, "builtin", use.name)
    if isinstance(definition, ElementwiseOp):
        return Step(f"op.{definition.name}", (), "python", use.name)
    if isinstance(definition, Pass):
        options = tuple(f"{name}={value}" for name, value in use.options)
        return Step(f"python.{definition.name}", options, "python", use.name)
    raise PassError(f"`{use.name}` is not a pass", hint="replace a step by a Pass, a NativePass or a BuiltinPass")


def describe_run(use: PassUse) -> PassRun:
    """How the manifest lists that `use` ran."""
    return PassRun(use.name, use.kind, use.stage, str(use.anchor), use.options, use.digest, use.kind == "hook")
