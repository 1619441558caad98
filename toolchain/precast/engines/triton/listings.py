"""Pipelines of a target, listed without compiling anything: what `precast passes` prints and golden files hold.

In: a target, or a planned unit with its passes. Out: the pipeline of each stage that runs passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precast.engines.triton import v3_9
from precast.engines.triton.cpu_stages import CPU_STAGES, cpu_pipeline
from precast.engines.triton.options import make_options
from precast.engines.triton.session import PassSession, load_passes
from precast.passes.pipeline import Pipeline
from precast.passes.plan import SelectedPass
from precast.passes.selection import PassUse
from precast.spec.model import Unit
from precast.target import Backend, Target


def list_target(target: Target, *, gluon: bool = False) -> tuple[Pipeline, ...]:
    """The compiler's own pipelines of a target, with its default options."""
    backend = v3_9.make_backend(v3_9.compiler_target(target))
    return _list(backend, v3_9.parse_options(backend, {}), target, gluon, (), Path())


def list_unit(unit: Unit, uses: tuple[PassUse, ...], project: Path) -> tuple[Pipeline, ...]:
    """The effective pipelines of a unit. `PassError` for an anchor that is absent or ambiguous."""
    passes = load_passes(uses, project)
    backend = v3_9.make_backend(v3_9.compiler_target(unit.target))
    options = make_options(unit.target, unit.options, backend)
    return _list(backend, options, unit.target, unit.source.gluon, passes, project)


def _list(
    backend: Any, options: Any, target: Target, gluon: bool, passes: Sequence[SelectedPass], project: Path
) -> tuple[Pipeline, ...]:
    session = PassSession(backend, options, v3_9.language(gluon=gluon))
    found = []
    for stage in target.stages(gluon=gluon):
        on_cpu = target.kind is Backend.CPU and stage in CPU_STAGES
        pipeline = cpu_pipeline if on_cpu else session.pipeline
        found.append(pipeline(stage, passes, target, project))
    return tuple(pipeline for pipeline in found if pipeline.runs)
