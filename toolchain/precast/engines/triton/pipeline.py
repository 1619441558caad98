"""Triton's pipelines as data: listed without a kernel, edited, and replayed with passes from outside.

In: a backend, compile options, the passes selected for a unit. Out: for each stage the effective pipeline (the text
that keys it) and, when it runs, the new module with what the outside passes did.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from triton._C import libtriton

from precast.engines.triton.recording import NamedOptions, record_backend
from precast.errors import BugError
from precast.passes.pipeline import Argument, Pipeline, Run, Step

PIPELINE_STAGES = ("ttir", "glir", "ttgir", "llir")


class _EndOfPasses(Exception):
    """The stage function has left MLIR: nothing that it does from here is a pass."""


class _Lister:
    """A conductor that runs nothing and remembers every run."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def run(self, module: Any, name: str, steps: tuple[Step, ...]) -> None:
        self.runs.append(Run(name, steps))

    def leave_mlir(self) -> None:
        raise _EndOfPasses


class _NoModule:
    """Answers what stage functions ask of a module before and between their runs."""

    def __init__(self) -> None:
        self.context = libtriton.ir.context()

    def set_attr(self, name: str, value: Any) -> None:
        """Nothing to set it on."""

    def get_int_attr(self, name: str) -> None:
        return None

    def get_tensordesc_metadata(self) -> list[Any]:
        return []


def list_pipeline(backend: Any, options: Any, language: Any, stage: str) -> Pipeline:
    """The passes that Triton would run in `stage`, with options by name; needs no kernel. A stage of text has none."""
    if stage not in PIPELINE_STAGES:
        return Pipeline(stage, ())
    lister = _Lister()
    stages: dict[str, Any] = {}
    # The options enter the stage functions through `add_stages`, so named values reach every pass argument.
    record_backend(backend, lister).add_stages(stages, NamedOptions(options), language)
    with contextlib.suppress(_EndOfPasses):
        stages[stage](_NoModule(), {})
    return Pipeline(stage, tuple(lister.runs))


def resolve_arguments(step: Step, options: Any) -> tuple[Argument, ...]:
    """The step's arguments with options put in by name; `BugError` for an option that does not exist."""
    return tuple(_resolve(argument, options) for argument in step.args)


def _resolve(argument: Argument, options: Any) -> Argument:
    if not isinstance(argument, str) or not argument.startswith("$"):
        return argument
    try:
        value = getattr(options, argument[1:])
    except AttributeError:
        raise BugError(f"a pipeline names the option `{argument[1:]}`, which these options do not have") from None
    assert isinstance(value, str | int)
    return value


def find_builtin(op: str) -> Any:
    """Triton's function that adds the pass `op` to a manager; `LookupError` when there is none."""
    root, path = libtriton.passes, op.split(".")
    if path[0] in ("nvidia", "amd"):
        root, path = getattr(libtriton, path[0]).passes, path[1:]
    for name in path[:-1]:
        root = getattr(root, name, None)
    adder = getattr(root, f"add_{path[-1]}", None)
    if adder is None or path[0] == "plugin":
        raise LookupError(op)
    return adder


def builtin_names() -> tuple[str, ...]:
    """Every pass that Triton offers, as `BuiltinPass` and listings name it."""
    roots: Mapping[str, Any] = {
        "": libtriton.passes, "nvidia.": libtriton.nvidia.passes, "amd.": libtriton.amd.passes
    }  # fmt: skip
    names = []
    for prefix, root in roots.items():
        for group in sorted(vars(root)):
            members = vars(getattr(root, group)) if not group.startswith("_") and group != "plugin" else {}
            names += [f"{prefix}{group}.{name[4:]}" for name in sorted(members) if name.startswith("add_")]
    return tuple(names)
