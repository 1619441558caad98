"""CPU units as an engine: Triton's front end and ttir, then the CPU engine's own stages.

In: jobs for CPU targets. Out: objects. The CPU engine is pure functions over text; this adds what an engine owes a
worker: keys, passes around its stages, the user's line in what it refuses.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from precast.artifact import Facts
from precast.engines import Announce, SourceText, StageFailure, StageOutput, cpu
from precast.engines.parameters import list_parameters, list_places
from precast.engines.triton.compile import TritonEngine
from precast.engines.triton.cpu_stages import cpu_key_material, run_cpu_stage
from precast.engines.triton.facts import list_descriptors
from precast.errors import PassError, Place
from precast.job import Job
from precast.store import digest_bytes

Made = TypeVar("Made", str, bytes)
LIBRARIES = ("llvmlite", "xtc-mlir-python-bindings")


class CpuUnitEngine:
    """Stages ttir, loops, llir, obj of a unit for a CPU target."""

    def __init__(self, triton: TritonEngine) -> None:
        self._triton = triton
        self._identity = identify_engine()

    def read_source(self, job: Job) -> SourceText:
        return self._triton.read_source(job)

    def stage_key(self, job: Job, stage: str, source: StageOutput) -> str:
        """Digests input, passes, the engine's code and steps, and the libraries under it."""
        if stage == "ttir":
            return self._triton.stage_key(job, stage, source)
        passes = self._triton.open(job)
        material = {
            "stage": stage,
            "level": job.unit.target.arch,
            "input": digest_bytes(source.data),
            "passes": cpu_key_material(stage, passes.passes, passes.facts),
            "steps": repr(cpu.describe_pipeline(stage, job.unit.target.arch)),
            "engine": self._identity,
            "symbol": cpu.symbol_of(job.unit.slug) if stage == "obj" else "",
            "strict": _is_strict(job),
        }
        return digest_bytes(json.dumps(material, sort_keys=True).encode())

    def run_stage(self, job: Job, stage: str, source: StageOutput, announce: Announce) -> StageOutput:
        """Runs one stage; a refusal of the engine's names the user's line."""
        if stage == "ttir":
            return self._triton.run_stage(job, stage, source, announce)
        level = job.unit.target.arch
        if stage == "obj":
            symbol = cpu.symbol_of(job.unit.slug)
            return StageOutput(
                self._explain(job, stage, lambda text: cpu.emit_object(text, level, symbol))(source.text)
            )
        passes = self._triton.open(job)
        lower = self._explain(job, stage, _lowering(stage, level, _is_strict(job)))
        outcome = run_cpu_stage(stage, source.text, lower, passes.passes, passes.facts, announce)
        return StageOutput(
            outcome.made.encode(), passes=outcome.passes, findings=outcome.findings, buffers=outcome.buffers
        )

    def needs_fixed_addresses(self, job: Job, stage: str, source: StageOutput) -> bool:
        return False

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """The CPU engine's facts, with the parameters that the entry reads from its slots, in order."""
        unit = job.unit
        buffers = tuple(buffer for output in stages.values() for buffer in output.buffers)
        descriptors = list_descriptors(unit, [])
        parameters = tuple(list_parameters(unit, descriptors, buffers, ()))
        places = list_places(parameters, descriptors)
        facts = cpu.read_facts(stages["loops"].text, parameters, stages["obj"].data, cpu.symbol_of(unit.slug), places)
        facts = replace(facts, buffers=buffers, tensor_descriptors=tuple(descriptors.values()))
        return self._triton.add_origin(job, facts)

    def _explain(self, job: Job, stage: str, lower: Callable[[str], Made]) -> Callable[[str], Made]:
        """`lower`, with what it refuses told at the user's line: found by lowering text that knows its places."""

        def lower_or_explain(text: str) -> Made:
            try:
                return lower(text)
            except PassError as error:
                where = error.where or self._find_place(job, stage)
                raise StageFailure(error.message, where, error.hint) from error

        return lower_or_explain

    def _find_place(self, job: Job, stage: str) -> Place | None:
        """The line that `loops` refuses; for later stages, which know of no line, the kernel's own."""
        try:
            located = self._triton.run_located(job, ("ttir",)).text
            where = cpu.find_kernel_place(located)
            if stage == "loops":
                try:
                    _lowering(stage, job.unit.target.arch, _is_strict(job))(located)
                except PassError as error:
                    where = error.where or where
        except Exception:  # a place is a courtesy: the refusal itself is told without it
            return None
        project = Path(job.project)
        if where is None or not Path(where.file).is_relative_to(project):
            return where
        return replace(where, file=Path(where.file).relative_to(project).as_posix())


def _lowering(stage: str, level: str, strict: bool) -> Callable[[str], str]:
    if stage == "loops":
        return lambda text: cpu.lower_ttir(text, level, strict)
    return lambda text: cpu.lower_loops(text, level)


def _is_strict(job: Job) -> bool:
    return bool(dict(job.unit.options).get("strict"))


def identify_engine() -> str:
    """What stands for the CPU engine in a stage key: the digest of its code, and its libraries' versions."""
    folder = Path(cpu.__file__).parent
    code = b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.rglob("*.py")))
    versions = [f"{name}-{importlib.metadata.version(name)}" for name in LIBRARIES]
    return " ".join([digest_bytes(code), *versions])
