"""Pipelines as data: the ordered passes of a stage, and edits of them.

In: what an engine recorded (`Pipeline` of its own steps) and the passes selected for a unit. Out: the effective
pipeline, whose text is part of the stage key and which the engine replays step by step. No engine inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from precast.errors import PassError
from precast.passes.selection import Anchor

Argument = str | int | bool


@dataclass(frozen=True)
class Step:
    """One pass with its arguments, in the engine's order.

    `op` is `ttir.loop_unroll`, `nvidia.ttnvgpuir.lower_mma`, …; a text argument `$num_stages` stands for the
    compile option of that name. `by` names the plugin that put the step here ("" for the engine's own) and
    `kind` says how it runs: builtin, native or python.
    """

    op: str
    args: tuple[Argument, ...] = ()
    kind: str = "builtin"
    by: str = ""

    def __str__(self) -> str:
        arguments = ", ".join(_argument_text(argument) for argument in self.args)
        return f"{self.op}({arguments})" if self.args else self.op


@dataclass(frozen=True)
class Run:
    """One run of a pass manager inside a stage, by the engine's own name for it."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Pipeline:
    """All passes of a stage. Stages that run no passes have no runs."""

    stage: str
    runs: tuple[Run, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for run in self.runs for step in run.steps)

    @property
    def outside(self) -> tuple[Step, ...]:
        """The steps that plugins put here, in order."""
        return tuple(step for step in self.steps if step.by)


@dataclass(frozen=True)
class Edit:
    """One change of a pipeline, made by the plugin `by`.

    `kind` is `insert` (put `steps` at `anchor`), `replace` (the step that `anchor` names gives way to `steps`),
    `drop` (it goes) or `override` (all steps of every run in `pipeline` take the place of the stage's own).
    """

    kind: str
    by: str
    anchor: Anchor
    steps: tuple[Step, ...] = ()
    pipeline: Pipeline | None = None


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, bool):
        return "true" if argument else "false"
    if isinstance(argument, str) and not argument.startswith("$"):
        return f'"{argument}"'
    return str(argument)


def render_pipeline(pipeline: Pipeline) -> str:
    """The listing that a person reads and that the stage key digests: a line per step."""
    lines = []
    for run in pipeline.runs:
        lines.append(f"{pipeline.stage} {run.name}:")
        lines += [f"  {step}" + (f"  # {step.kind} pass of {step.by}" if step.by else "") for step in run.steps]
    return "\n".join(lines) + "\n"


def edit_pipeline(pipeline: Pipeline, edits: Iterable[Edit], where: str = "") -> Pipeline:
    """`pipeline` with `edits` made in order; `where` (a target's text) goes into messages.

    Passes put at the same anchor run in the order of the edits. Raises `PassError` for an anchor that is absent or
    ambiguous; its hint lists the passes that are there.
    """
    draft = _Draft(pipeline, where)
    for edit in edits:
        try:
            draft.make(edit)
        except PassError as error:
            error.pass_name = edit.by
            raise
    return draft.result()


@dataclass
class _Slot:
    """A step of the engine's own while edits are made, with what was put around it. `step` is None once dropped."""

    step: Step | None
    original: Step
    before: list[Step]
    after: list[Step]


class _Draft:
    """A pipeline being edited: anchors always name the engine's own steps, never what plugins put there."""

    def __init__(self, pipeline: Pipeline, where: str) -> None:
        self.stage, self.where = pipeline.stage, where
        self.first: list[Step] = []
        self.last: list[Step] = []
        self.made: list[str] = []
        self.load(pipeline)

    def load(self, pipeline: Pipeline) -> None:
        self.names = [run.name for run in pipeline.runs]
        self.runs = [[_Slot(step, step, [], []) for step in run.steps] for run in pipeline.runs]

    def make(self, edit: Edit) -> None:
        self.made.append(edit.by)
        if edit.kind == "override":
            self.override(edit)
        elif edit.kind == "insert":
            self.insert(edit)
        else:
            slot = self.find(edit.anchor, edit.by)
            slot.step = None
            slot.before += edit.steps

    def insert(self, edit: Edit) -> None:
        if not self.runs:
            raise PassError(f"pass `{edit.by}` cannot stand in stage `{self.stage}`{self.of}: it runs no passes")
        if edit.anchor.kind == "start":
            self.first += edit.steps
        elif edit.anchor.kind == "end":
            self.last += edit.steps
        else:
            slot = self.find(edit.anchor, edit.by)
            (slot.before if edit.anchor.kind == "before" else slot.after).extend(edit.steps)

    def override(self, edit: Edit) -> None:
        assert edit.pipeline is not None
        if self.made[:-1]:
            lost = ", ".join(f"`{name}`" for name in self.made[:-1])
            raise PassError(
                f"the saved pipeline of `{edit.by}` would throw away the passes selected before it: {lost}",
                hint=f"select `{edit.by}` before the other passes of its stage",
            )
        new, known = [run.name for run in edit.pipeline.runs], self.names
        if new != known:
            raise PassError(
                f"the saved pipeline of `{edit.by}` has runs {', '.join(new)}",
                hint=f"stage `{self.stage}`{self.of} has runs {', '.join(known)}, in that order",
            )
        self.load(edit.pipeline)

    @property
    def of(self) -> str:
        return f" of {self.where}" if self.where else ""

    def find(self, anchor: Anchor, by: str) -> _Slot:
        """The slot that `anchor` names, by full name or by its last part."""
        slots = [slot for run in self.runs for slot in run if slot.step is not None]
        found = [slot for slot in slots if slot.original.op == anchor.op or _short(slot.original.op) == anchor.op]
        if anchor.n and anchor.n <= len(found):
            return found[anchor.n - 1]
        if not anchor.n and len(found) == 1:
            return found[0]
        listed = ", ".join(dict.fromkeys(slot.original.op for slot in slots))
        place = f"stage `{self.stage}`{self.of}"
        if not found:
            raise PassError(
                f"anchor `{anchor}` of pass `{by}`: {place} has no pass `{anchor.op}`", hint=f"it has: {listed}"
            )
        times = "once" if len(found) == 1 else f"{len(found)} times"
        which = "leave out the number" if len(found) == 1 else f"say which with a number from 1 to {len(found)}"
        hint = f"{which}; it has: {listed}"
        raise PassError(f"anchor `{anchor}` of pass `{by}`: pass `{anchor.op}` stands {times} in {place}", hint=hint)

    def result(self) -> Pipeline:
        runs = [Run(name, tuple(_flatten(slots))) for name, slots in zip(self.names, self.runs, strict=True)]
        if runs:
            runs[0] = replace(runs[0], steps=(*self.first, *runs[0].steps))
            runs[-1] = replace(runs[-1], steps=(*runs[-1].steps, *self.last))
        return Pipeline(self.stage, tuple(runs))


def _short(op: str) -> str:
    return op.rpartition(".")[2]


def _flatten(slots: list[_Slot]) -> Iterator[Step]:
    for slot in slots:
        yield from slot.before
        if slot.step is not None:
            yield slot.step
        yield from slot.after
