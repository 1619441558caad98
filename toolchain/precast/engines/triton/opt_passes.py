"""Passes as `precast opt` names them: `NAME{option=value …}` from a project, a native library, or Triton itself.

In: words of a command line, the project's probes, native libraries. Out: steps with the definitions behind them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from precast.engines.triton.pipeline import builtin_names
from precast.engines.triton.session import load_passes
from precast.errors import PassError, nearest_hint
from precast.passes.definitions import BuiltinPass, NativePass
from precast.passes.pipeline import Pipeline, Step
from precast.passes.plan import SelectedPass, plan_step
from precast.passes.probes import Probe
from precast.passes.registry import make_use
from precast.passes.selection import Anchor, PassUse
from precast.spec.selection import PassSelection

_WORD = re.compile(r"\s*([\w.:-]+)\s*(?:\{(.*)\})?\s*", re.DOTALL)
_OPTION = re.compile(r"""\s*(?:([\w-]+)\s*=\s*)?("[^"]*"|'[^']*'|[^\s,]+)\s*,?""")

OUTSIDE_KINDS = ("python", "plugin", "op")

Given = tuple[tuple[str, str | int | float | bool], ...]  # options by name; "" for one that stands for its place


@dataclass(frozen=True)
class ChosenPass:
    """One pass of a command line, ready: `step` runs it, `selected` is the definition behind it."""

    step: Step
    selected: SelectedPass


@dataclass(frozen=True)
class Shelf:
    """Where passes of a command line are looked for, in this order: libraries, Triton's own, the project's."""

    libraries: tuple[tuple[Path, tuple[str, ...]], ...]
    probes: tuple[Probe, ...]
    project: Path

    def find(self, word: str) -> ChosenPass:
        """The pass that `word` names, with its options; `PassError` suggests the nearest name."""
        name, options = parse_word(word)
        for library, passes in self.libraries:
            if name in passes:
                return _choose_native(library, name, options)
        full = find_full_name(name)
        if full:
            return _choose_builtin(full, options)
        return self.find_plugin(name, options)

    def find_plugin(self, name: str, options: Given) -> ChosenPass:
        """The project's pass `name`; `PassError` suggests the nearest name."""
        known = {plugin.name: (probe, plugin) for probe in self.probes for plugin in probe.plugins}
        if name not in known:
            names = [*known, *(each for _, passes in self.libraries for each in passes), *builtin_names()]
            raise PassError(f"there is no pass `{name}`", hint=nearest_hint(name, names, "passes"))
        if any(not option for option, _ in options):
            raise PassError(f"the options of pass `{name}` are named: `{name}{{option=value}}`")
        selection = PassSelection(name, options=tuple(sorted(options)))
        use = make_use(selection, *known[name])
        if use.kind in ("drop", "replace", "override", "hook"):
            raise PassError(f"`{name}` edits a pipeline ({use.kind}); `precast opt` runs passes")
        selected = load_passes((use,), self.project)[0]
        return ChosenPass(plan_step(selected.definition, use), selected)


def parse_word(word: str) -> tuple[str, Given]:
    """`NAME{a=1 b=true}` or `NAME{3 false}`: the name, and options by name ("" for one that stands for its place)."""
    match = _WORD.fullmatch(word)
    if not match:
        raise PassError(f"`{word}` is not a pass", hint="write NAME or NAME{option=value …}")
    options = tuple((name or "", parse_value(value)) for name, value in _OPTION.findall(match[2] or ""))
    return match[1], options


def parse_value(text: str) -> str | int | float | bool:
    """A value of a command line: true, false, a number, or text with or without quotes."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return text.strip("\"'")


def find_full_name(name: str) -> str:
    """The full name of one of Triton's own passes, given that or its last part; "" when there is none.

    A last part that several have means the one in `common`.
    """
    names = builtin_names()
    for full in (name, f"common.{name}"):
        if full in names:
            return full
    found = [each for each in names if each.rpartition(".")[2] == name]
    if len(found) > 1:
        raise PassError(f"`{name}` is the name of {len(found)} passes", hint=f"say which: {', '.join(found)}")
    return found[0] if found else ""


def _choose_builtin(op: str, options: Given) -> ChosenPass:
    args = tuple(str(value) if isinstance(value, float) else value for _, value in options)
    definition = BuiltinPass(op, args=args)
    use = PassUse(op, "builtin", "", Anchor("end"))
    return ChosenPass(plan_step(definition, use), SelectedPass(use, definition))


def _choose_native(library: Path, name: str, options: Given) -> ChosenPass:
    definition = NativePass(
        str(library), name, args=tuple(f"{key}={value}" if key else str(value) for key, value in options)
    )
    use = PassUse(name, "native", "", Anchor("end"), library=str(library))
    return ChosenPass(plan_step(definition, use), SelectedPass(use, definition))


def choose_steps(pipeline: Pipeline | tuple[Step, ...], shelf: Shelf) -> tuple[ChosenPass, ...]:
    """Steps of a saved pipeline or a reproducer: Triton's own, each under its own name, and plugins' passes."""
    steps = pipeline.steps if isinstance(pipeline, Pipeline) else pipeline
    return tuple(_choose_step(step, shelf) for step in steps)


def _choose_step(step: Step, shelf: Shelf) -> ChosenPass:
    kind, _, name = step.op.partition(".")
    if kind == "plugin":
        return shelf.find(f"{name}{{{' '.join(map(str, step.args))}}}")
    if kind in OUTSIDE_KINDS:
        return shelf.find_plugin(name, parse_word(f"{name}{{{' '.join(map(str, step.args))}}}")[1])
    if step.op not in (*builtin_names(), "instrument"):
        raise PassError(f"Triton offers no pass `{step.op}`", hint=nearest_hint(step.op, builtin_names(), "passes"))
    use = PassUse(step.op, "builtin", "", Anchor("end"))
    definition = BuiltinPass(step.op, args=step.args)
    return ChosenPass(Step(step.op, step.args, "builtin", step.op), SelectedPass(use, definition))


def names_plugins(pipeline: Pipeline) -> bool:
    """Whether a saved pipeline has passes that come from elsewhere than Triton."""
    return any(step.op.partition(".")[0] in OUTSIDE_KINDS for step in pipeline.steps)
