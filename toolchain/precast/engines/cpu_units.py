"""CPU units as an engine: Triton's front end and ttir, then the CPU engine's own stages.

In: jobs and stages for CPU targets. Out: objects. The CPU engine is pure functions over text; this adds what an engine
owes a worker: passes around its stages, the user's line in what it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from precast.artifact import Facts
from precast.engines import Announce, Engine, SourceText, StageFailure, StageInputs, StageOutput, cpu
from precast.engines.parameters import list_parameters, list_places
from precast.engines.triton.compile import TritonEngine, relative_place
from precast.engines.triton.cpu_stages import cpu_pipeline, run_cpu_stage
from precast.engines.triton.facts import list_descriptors
from precast.engines.triton.session import load_passes
from precast.errors import PassError, Place
from precast.job import Job


class CpuUnitEngine:
    """Stages ttir, loops, llir, obj of a unit for a CPU target."""

    def __init__(self, triton: TritonEngine) -> None:
        self._triton = triton

    def read_source(self, job: Job) -> SourceText:
        return self._triton.read_source(job)

    def run_stage(self, inputs: StageInputs, data: bytes, project: Path, announce: Announce) -> StageOutput:
        """Runs one stage."""
        if inputs.stage == "ttir":
            return self._triton.run_stage(inputs, data, project, announce)
        try:
            return self._run(inputs, data.decode(), project, announce)
        except PassError as error:
            raise StageFailure(error.message, error.where, error.hint, pass_name=error.pass_name) from error

    def _run(self, inputs: StageInputs, text: str, project: Path, announce: Announce) -> StageOutput:
        passes = load_passes(inputs.passes, project)
        if inputs.stage == "obj":
            return StageOutput(cpu.emit_object(text, inputs.target.arch, inputs.symbol))
        lower = _lowering(inputs)
        if inputs.facts is None:
            return StageOutput(lower(text).encode())
        outcome = run_cpu_stage(inputs.stage, text, lower, passes, inputs.facts, project, announce)
        made = outcome.made.encode()
        return StageOutput(made, "{}", outcome.passes, outcome.findings, outcome.buffers, outcome.reads)

    def prepare(self, inputs: StageInputs, project: Path) -> None:
        """Loads passes, and refuses those that cannot stand where they do."""
        if inputs.stage == "ttir":
            self._triton.prepare(inputs, project)
        else:
            cpu_pipeline(inputs.stage, load_passes(inputs.passes, project), inputs.target, project)

    def needs_fixed_addresses(self, inputs: StageInputs, data: bytes) -> bool:
        return False

    def find_place(self, job: Job, walked: Sequence[StageInputs], failure: StageFailure) -> Place | None:
        """The line that `loops` refuses; for later stages, which know of no line, the kernel's own."""
        if walked[-1].stage == "ttir":
            return self._triton.find_place(job, walked, failure)
        try:
            located = self._triton.run_located(job, walked[:1]).text
            where = cpu.find_kernel_place(located)
            if walked[-1].stage == "loops":
                try:
                    _lowering(walked[-1])(located)
                except PassError as error:
                    where = error.where or where
        except Exception:  # a place is a courtesy: the refusal itself is told without it
            return None
        return relative_place(where, Path(job.project))

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """The CPU engine's facts, with the parameters that the entry reads from its slots, in order."""
        unit = job.unit
        buffers = tuple(buffer for output in stages.values() for buffer in output.buffers)
        descriptors = list_descriptors(unit, [])
        parameters = tuple(list_parameters(unit, descriptors, buffers, ()))
        places = list_places(parameters, descriptors)
        facts = cpu.read_facts(stages["loops"].text, parameters, stages["obj"].data, unit.symbol, places)
        facts = replace(facts, buffers=buffers, tensor_descriptors=tuple(descriptors.values()))
        return self._triton.add_origin(job, facts)


def _lowering(inputs: StageInputs) -> Callable[[str], str]:
    level = inputs.target.arch
    if inputs.stage == "loops":
        strict = bool(dict(inputs.options).get("strict"))
        return lambda text: cpu.lower_ttir(text, level, strict)
    return lambda text: cpu.lower_loops(text, level)


def make_engine(open_engine: Callable[[str], Engine]) -> CpuUnitEngine:
    """The engine, on the front end that GPU units go through too."""
    triton = open_engine("triton")
    assert isinstance(triton, TritonEngine)
    return CpuUnitEngine(triton)
