"""The Triton engine: a GPU unit's stages, and the front end and ttir of CPU units.

In: jobs and the text of one stage. Out: the text or image of the next. Every stage parses its input and prints its
result, so that a text from the store is as good as one just made; a job's stages share an MLIR context. What
Triton's stages tell one another beside the text is carried as canonical JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from precast.artifact import Facts
from precast.engines import Announce, SourceText, StageFailure, StageOutput, input_stage
from precast.engines.triton import v3_9
from precast.engines.triton.agreement import check_agreement, definition_of
from precast.engines.triton.assembler import find_error, parse_log
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.facts import read_facts
from precast.engines.triton.frontend import emit_source, find_place
from precast.engines.triton.load import KernelLoader, Loaded
from precast.engines.triton.options import list_options, make_options
from precast.engines.triton.python_steps import PassFailure
from precast.engines.triton.session import PassSession, StageOutcome, UnitFacts, load_passes
from precast.errors import Place, PrecastError
from precast.job import Job
from precast.passes.elementwise import check_lowered
from precast.passes.plan import SelectedPass
from precast.spec.spelling import python_value
from precast.store import digest_bytes
from precast.target import Backend, Target

MODULE_STAGES = ("ttir", "glir", "ttgir")  # whose text is MLIR that libtriton parses
ASSEMBLER_STAGES = ("ptx", "cubin")  # ptx text names the version of the ptxas that will read it
# Metadata that a stage makes and a later one, or a launcher, reads.
CARRIED = (
    "tensordesc_meta", "num_warps", "shared", "tmem_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "profile_scratch_align", "name",
)  # fmt: skip


@dataclass(frozen=True)
class OpenJob:
    """What all stages of a job use, made once: options, an MLIR context, and the job's passes, ready to run with
    what they are told of the unit and Triton's stages around them."""

    job: Job
    backend: Any
    options: Any
    passes: tuple[SelectedPass, ...]
    facts: UnitFacts
    session: PassSession

    @cached_property
    def context(self) -> Any:
        """Made by the thread that first runs a stage: where memory lies may decide what a stage makes.

        Native plugins, which bring dialects, are loaded by then: no context may be older than they.
        """
        return v3_9.make_context(self.backend)


class TritonEngine:
    """Triton 3.9 as an engine. Keeps what is dear to make again: backends, tools' digests, the last loaded kernel."""

    def __init__(self) -> None:
        v3_9.check_version()
        v3_9.start_compiler()
        self._loader = KernelLoader()
        self._backends: dict[Target, Any] = {}
        self._identity = v3_9.tool_identity()
        self._assemblers: dict[str, str] = {}
        self._listings: dict[tuple[object, ...], str] = {}
        self._open: OpenJob | None = None

    def read_source(self, job: Job) -> SourceText:
        """Loads the kernel's module and runs the front end."""
        opened = self.open(job)
        loaded = self._load(job)
        check_agreement(job.unit, loaded.function, loaded.tuner, definition_of(loaded.function, Path(job.project)))
        with self._loader.compiling(loaded, job.unit.target):
            made = emit_source(loaded.function, job, opened.options, opened.backend, opened.context)
        return SourceText(StageOutput(made.text.encode()), loaded.files, made.warnings, loaded.recording.reads())

    def stage_key(self, job: Job, stage: str, source: StageOutput) -> str:
        """Digests all that decides a stage; no path, no time."""
        options, backend = self.open(job).options, self.open(job).backend
        material = {
            "stage": stage,
            "target": str(v3_9.compiler_target(job.unit.target)),
            "input": digest_bytes(source.data),
            "carry": source.carry,
            "options": options.hash(),
            "passes": self._pass_material(job, stage, options),
            "backend": backend.hash(),
            "triton": self._identity,
            "assembler": self._assembler_digest(job) if stage in ASSEMBLER_STAGES else "",
            "environment": [list(each) for each in job.settings.environment],
            "line_info": job.settings.line_info,
        }
        return digest_bytes(json.dumps(material, sort_keys=True).encode())

    def run_stage(self, job: Job, stage: str, source: StageOutput, announce: Announce) -> StageOutput:
        """Runs one stage; a refusal names the user's line when the located text leads to one."""
        with capture_errors() as errors:
            try:
                return self._run(job, stage, source, announce, locations=job.settings.line_info)
            except PassFailure as failure:
                if failure.where is None or failure.where.file == f"input.{input_stage(job.unit, stage)}":
                    failure.where = self._find_refused_line(job, stage)
                raise
            except (PrecastError, StageFailure, MemoryError, OSError):
                raise
            except Exception as error:
                said = find_error(str(error))
                message = said.message if said else first_error(errors.read()) or _describe(error)
                raise StageFailure(message, self._find_place(job, stage)) from error

    def needs_fixed_addresses(self, job: Job, stage: str, source: StageOutput) -> bool:
        """The warp specialisation of sm_90 (and sm_8x, which shares the pass) orders things by their addresses."""
        target = job.unit.target
        affected = target.kind is Backend.CUDA and target.arch[0] in "89" and stage == "ttgir"
        return affected and b"tt.warp_specialize" in source.data

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        return self.add_origin(job, read_facts(job.unit, self.open(job).options, stages))

    def add_origin(self, job: Job, facts: Facts) -> Facts:
        """Facts with what finds the unit again for a call of the function itself: its source, and every option."""
        digest, options = self._load(job).source_digest, list_options(job.unit, self.open(job).options)
        return replace(facts, source_digest=digest, options=options)

    def open(self, job: Job) -> OpenJob:
        """What the job's stages share; that of the job before is dropped."""
        if self._open is None or self._open.job is not job:
            backend, options = self._backend(job), make_options(job.unit, self._backend(job))
            project, unit = Path(job.project), job.unit
            passes = load_passes(job.passes, project)
            constants = {
                each.name: python_value(each.value)
                for each in unit.arguments
                if each.type == "constexpr" or each.constant
            }
            arguments = tuple(each.name for each in unit.arguments if each.name not in constants)
            facts = UnitFacts(str(unit), unit.kernel, unit.target, project, constants, arguments)
            language = v3_9.language(gluon=unit.source.gluon)
            session = PassSession(backend, options, language, passes, facts)
            self._open = OpenJob(job, backend, options, passes, facts, session)
        return self._open

    def _pass_material(self, job: Job, stage: str, options: Any) -> str:
        """What a key holds of passes: the effective pipeline and outside code. Listed once for units without any."""
        if job.passes:
            return self.open(job).session.key_material(stage)
        kind = (v3_9.compiler_target(job.unit.target), options.hash(), job.unit.source.gluon, stage)
        if kind not in self._listings:
            self._listings[kind] = self.open(job).session.key_material(stage)
        return self._listings[kind]

    def _load(self, job: Job) -> Loaded:
        python_path = [Path(each) for each in job.python_path]
        return self._loader.load(job.unit.source, Path(job.project), python_path, job.unit.target)

    def _backend(self, job: Job) -> Any:
        target = v3_9.compiler_target(job.unit.target)
        if target not in self._backends:
            self._backends[target] = v3_9.make_backend(target)
        return self._backends[target]

    def _assembler_digest(self, job: Job) -> str:
        path = v3_9.assembler_path(job.unit.target)
        if path and path not in self._assemblers:
            with open(path, "rb") as file:
                self._assemblers[path] = hashlib.sha256(file.read()).hexdigest()
        return self._assemblers.get(path, "")

    def _run(self, job: Job, stage: str, source: StageOutput, announce: Announce, *, locations: bool) -> StageOutput:
        opened = self.open(job)
        backend, options, session = opened.backend, opened.options, opened.session if job.passes else None
        gluon = job.unit.source.gluon
        metadata = {**vars(options), **json.loads(source.carry)}
        previous = input_stage(job.unit, stage)
        value = v3_9.parse_module(source.text, previous, opened.context) if previous in MODULE_STAGES else source.text
        log = io.StringIO()
        with contextlib.redirect_stdout(log):
            if session is None:
                outcome = StageOutcome(v3_9.stage_functions(backend, options, gluon=gluon)[stage](value, metadata))
            else:
                outcome = session.run(stage, value, metadata, announce)
        carry = {name: metadata[name] for name in CARRIED if name in metadata}
        if stage == "cubin":
            carry |= parse_log(log.getvalue())
        data = _as_bytes(outcome.made, locations)
        if stage == "ttir":
            check_lowered(data.decode())
        return StageOutput(data, _canonical(carry), outcome.passes, outcome.findings, outcome.buffers)

    def _find_place(self, job: Job, failed: str) -> Place | None:
        """The user's line that `failed` refuses: the stages once more, on text that says where it comes from."""
        stages = job.unit.stages
        try:
            output = self.run_located(job, stages[: stages.index(failed)])
        except Exception:  # a place is a courtesy: the refusal itself is told without it
            return None
        with capture_errors() as errors, v3_9.line_info():
            try:
                self._run(job, failed, output, _ignore, locations=True)
            except Exception as error:
                return find_place(errors.read(), str(error), output, Path(job.project))
        return None

    def _find_refused_line(self, job: Job, failed: str) -> Place | None:
        """The user's line that an outside pass refuses: `failed` once more, on text that says where it comes from."""
        stages = job.unit.stages
        try:
            output = self.run_located(job, stages[: stages.index(failed)])
            with v3_9.line_info():
                self._run(job, failed, output, _ignore, locations=True)
        except PassFailure as failure:
            project = Path(job.project)
            if failure.where and Path(failure.where.file).is_relative_to(project):
                return replace(failure.where, file=str(Path(failure.where.file).relative_to(project)))
        except Exception:  # a place is a courtesy: the refusal itself is told without it
            return None
        return None

    def run_located(self, job: Job, stages: Sequence[str]) -> StageOutput:
        """What the front end and `stages` make, in text that says where on this machine everything comes from."""
        loaded, opened = self._load(job), self.open(job)
        with self._loader.compiling(loaded, job.unit.target):
            made = emit_source(loaded.function, job, opened.options, opened.backend, opened.context, located=True)
        output = StageOutput(made.text.encode())
        with v3_9.line_info():
            for stage in stages:
                output = self._run(job, stage, output, _ignore, locations=True)
        return output


def _ignore(pass_name: str, text: str = "") -> None:
    """Nobody waits to hear of passes that run again for a diagnostic."""


def _as_bytes(made: Any, locations: bool) -> bytes:
    if isinstance(made, bytes):
        return made
    return (made if isinstance(made, str) else v3_9.print_module(made, locations=locations)).encode()


def _canonical(carry: dict[str, Any]) -> str:
    return json.dumps(carry, sort_keys=True, separators=(",", ":"))


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".strip(": ")
