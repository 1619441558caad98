"""Saved pipelines: a stage's steps in a TOML file, dumped by `precast passes --toml`, edited, and run instead.

In: a pipeline, or a file. Out: text, or the pipeline. `parse_pipeline(render_saved(p), p.stage) == p` for a pipeline
of the engine's own steps. A step of a Python or native pass is named as listings name it: `python.mine`; it runs where
it stands if the pass is selected.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from precast.bounded import read_bounded
from precast.errors import PassError, Place
from precast.passes.pipeline import Pipeline, Run, Step

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def render_saved(pipelines: tuple[Pipeline, ...]) -> str:
    """TOML with a `[[run]]` for each run; a step is an array of its name and arguments."""
    lines = []
    for pipeline in pipelines:
        for run in pipeline.runs:
            lines += ["[[run]]", f'stage = "{pipeline.stage}"', f'name = "{run.name}"', "steps = ["]
            lines += [f"    {_step_text(step)}," for step in run.steps if not step.by or step.kind != "builtin"]
            lines += ["]", ""]
    return "\n".join(lines)


def _step_text(step: Step) -> str:
    return f"[{', '.join(json.dumps(each) for each in (step.op, *step.args))}]"


def read_pipeline(path: Path, stage: str) -> Pipeline:
    """The runs of `stage` in a saved file. `PassError` with the file when it cannot be read."""
    try:
        return parse_pipeline(read_bounded(path).decode(), stage, str(path))
    except OSError as error:
        raise PassError(f"cannot read the saved pipeline `{path.name}`: {error.strerror}") from None


def find_step(path: Path, step: Step) -> Place:
    """Where a saved file names a step."""
    lines = read_bounded(path).decode().splitlines()
    number = next((number for number, line in enumerate(lines, 1) if f'"{step.op}"' in line), 0)
    column = lines[number - 1].index(f'"{step.op}"') + 1 if number else 1
    return Place(str(path), max(number, 1), column, len(step.op) + 2 if number else 1)


def parse_pipeline(text: str, stage: str, file: str = "pipeline.toml") -> Pipeline:
    """The runs of `stage` that `text` holds."""
    where = Place(file, 1)
    try:
        runs = tomllib.loads(text).get("run", [])
    except tomllib.TOMLDecodeError as error:
        raise PassError(f"not TOML: {error}", where=where) from None
    found = tuple(_parse_run(run, where) for run in runs if run.get("stage") == stage)
    if not found:
        raise PassError(
            f"the saved pipeline has no run of stage `{stage}`",
            where=where,
            hint="dump it with `precast passes --toml`",
        )
    return Pipeline(stage, found)


def _parse_run(run: dict[str, Any], where: Place) -> Run:
    unknown = set(run) - {"stage", "name", "steps"}
    steps = run.get("steps")
    if unknown or not isinstance(run.get("name"), str) or not isinstance(steps, list):
        raise PassError("a [[run]] has `stage`, `name` and `steps`, and nothing else", where=where)
    return Run(run["name"], tuple(_parse_step(step, where) for step in steps))


def _parse_step(step: Any, where: Place) -> Step:
    if isinstance(step, str):
        step = [step]
    if not isinstance(step, list) or not step or not all(isinstance(each, str | int | bool) for each in step):
        raise PassError(f"`{step}` is not a step", where=where, hint='a step is ["name", argument, …]')
    return Step(str(step[0]), tuple(step[1:]))
