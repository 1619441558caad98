"""The Triton engine: a GPU unit's stages, and the front end and ttir of CPU units.

In: a job for the front end; for a stage its inputs and its text. Out: the text or image of the next. Every stage
parses its input and prints its result, so that a text from the store is as good as one just made; a unit's stages
share an MLIR context. What Triton's stages tell one another beside the text is carried as canonical JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from precast.artifact import Facts
from precast.engines import Announce, Engine, SourceText, StageFailure, StageInputs, StageOutput, input_stage
from precast.engines.triton import v3_9
from precast.engines.triton.agreement import check_agreement, definition_of
from precast.engines.triton.assembler import find_error, parse_log
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.facts import read_facts
from precast.engines.triton.frontend import emit_source, find_place
from precast.engines.triton.load import KernelLoader, Loaded
from precast.engines.triton.options import list_options, make_options
from precast.engines.triton.python_steps import PassFailure
from precast.engines.triton.session import PassSession, StageOutcome, load_libraries, load_passes
from precast.errors import Place, PrecastError, ToolError
from precast.job import Job
from precast.passes.elementwise import check_lowered
from precast.spec.model import Options
from precast.spec.naming import modules_in
from precast.target import Backend, Target

MODULE_STAGES = ("ttir", "glir", "ttgir")  # whose text is MLIR that libtriton parses
ASSEMBLER_STAGES = ("ptx", "cubin")  # ptx text names the version of the ptxas that will read it
# Metadata that a stage makes and a later one, or a launcher, reads.
CARRIED = (
    "tensordesc_meta", "num_warps", "shared", "tmem_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "profile_scratch_align", "name",
)  # fmt: skip


@dataclass(frozen=True)
class OpenUnit:
    """What all stages of a unit use, made once: options, an MLIR context, Triton's stages with the unit's hooks."""

    kind: tuple[Target, bool, Options]
    backend: Any
    options: Any

    @cached_property
    def context(self) -> Any:
        """Made by the thread that first runs a stage: where memory lies may decide what a stage makes.

        Native plugins, which bring dialects, are loaded by then: no context may be older than they.
        """
        return v3_9.make_context(self.backend)

    @cached_property
    def session(self) -> PassSession:
        """Kept for all stages: a hook may carry what it knows from one to the next."""
        return PassSession(self.backend, self.options, v3_9.language(gluon=self.kind[1]))


class TritonEngine:
    """Triton 3.9 as an engine. Keeps what is dear to make again: backends, the last loaded kernel, the last unit."""

    def __init__(self) -> None:
        v3_9.check_version()
        v3_9.start_compiler()
        self._loader = KernelLoader()
        self._backends: dict[Target, Any] = {}
        self._open: OpenUnit | None = None

    def read_source(self, job: Job) -> SourceText:
        """Loads the kernel's module and runs the front end."""
        load_libraries(job.passes, Path(job.project))
        self._open = None
        opened = self._open_unit(job.unit.target, job.unit.source.gluon, job.unit.options)
        loaded = self._load(job)
        check_agreement(job.unit, loaded.function, loaded.tuner, definition_of(loaded.function, Path(job.project)))
        with self._loader.compiling(loaded, job.unit.target):
            made = emit_source(loaded.function, job, opened.options, opened.backend, opened.context)
        return SourceText(
            StageOutput(made.text.encode()), loaded.files, loaded.warnings + made.warnings, loaded.recording.reads()
        )

    def run_stage(self, inputs: StageInputs, data: bytes, project: Path, announce: Announce) -> StageOutput:
        """Runs one stage; `StageFailure` with what Triton said, or `PassFailure` with the pass that failed."""
        with capture_errors() as errors:
            try:
                return self._run(inputs, data, project, announce, locations=inputs.line_info)
            except (PrecastError, StageFailure, MemoryError, OSError):
                raise
            except Exception as error:
                said = find_error(str(error))
                message = said.message if said else first_error(errors.read()) or _describe(error)
                raise StageFailure(message) from error

    def prepare(self, inputs: StageInputs, project: Path) -> None:
        """Imports, lists and loads all that the stage will ask for, but for its context."""
        passes = load_passes(inputs.passes, project)
        opened = self._open_unit(inputs.target, inputs.gluon, inputs.options)
        opened.session.pipeline(inputs.stage, passes, inputs.target, project)

    def needs_fixed_addresses(self, inputs: StageInputs, data: bytes) -> bool:
        """The warp specialisation of sm_90 (and sm_8x, which shares the pass) orders things by their addresses."""
        target = inputs.target
        affected = target.kind is Backend.CUDA and target.arch[0] in "89" and inputs.stage == "ttgir"
        return affected and b"tt.warp_specialize" in data

    def find_place(self, job: Job, walked: Sequence[StageInputs], failure: StageFailure) -> Place | None:
        """The stages once more, on text that says where it comes from. A place is a courtesy: None without one."""
        project = Path(job.project)
        try:
            located = self.run_located(job, walked[:-1])
        except Exception:
            return None
        with capture_errors() as errors, v3_9.line_info():
            try:
                self._run(walked[-1], located.data, project, _ignore, locations=True)
            except PassFailure as refused:
                return relative_place(refused.where, project)
            except Exception as error:
                found = find_place(errors.read(), str(error), located, project)
                return None if isinstance(failure, PassFailure) else found
        return None

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        return self.add_origin(job, read_facts(job.unit, self._options(job), stages))

    def add_origin(self, job: Job, facts: Facts) -> Facts:
        """Facts with what finds the unit again for a call of the function itself: its source, and every option."""
        digest, options = self._load(job).source_digest, list_options(job.unit, self._options(job))
        return replace(facts, source_digest=digest, options=options)

    def run_located(self, job: Job, walked: Sequence[StageInputs]) -> StageOutput:
        """What the front end and the stages `walked` make, in text that says where on this machine everything comes
        from."""
        opened = self._open_unit(job.unit.target, job.unit.source.gluon, job.unit.options)
        loaded = self._load(job)
        with self._loader.compiling(loaded, job.unit.target):
            made = emit_source(loaded.function, job, opened.options, opened.backend, opened.context, located=True)
        output = StageOutput(made.text.encode())
        with v3_9.line_info():
            for inputs in walked:
                inputs = replace(inputs, carry=output.carry)
                output = self._run(inputs, output.data, Path(job.project), _ignore, locations=True)
        return output

    def _open_unit(self, target: Target, gluon: bool, options: Options) -> OpenUnit:
        """What the stages of a unit share; that of the unit before is dropped."""
        kind = (target, gluon, options)
        if self._open is None or self._open.kind != kind:
            backend = self._backend(target)
            self._open = OpenUnit(kind, backend, make_options(target, options, backend))
        return self._open

    def _options(self, job: Job) -> Any:
        return self._open_unit(job.unit.target, job.unit.source.gluon, job.unit.options).options

    def _load(self, job: Job) -> Loaded:
        python_path = [Path(each) for each in job.python_path]
        loaded = self._loader.load(job.unit.source, Path(job.project), python_path, job.unit.target)
        self._loader.import_named(name for each in job.unit.arguments for name in modules_in(each.value))
        return loaded

    def _backend(self, wanted: Target) -> Any:
        target = v3_9.compiler_target(wanted)
        if target not in self._backends:
            self._backends[target] = v3_9.make_backend(target)
        return self._backends[target]

    def _run(
        self, inputs: StageInputs, data: bytes, project: Path, announce: Announce, *, locations: bool
    ) -> StageOutput:
        stage = inputs.stage
        passes = load_passes(inputs.passes, project)
        opened = self._open_unit(inputs.target, inputs.gluon, inputs.options)
        backend, options = opened.backend, opened.options
        if stage in ASSEMBLER_STAGES:
            check_assembler(inputs.target)
        metadata = {**vars(options), **json.loads(inputs.carry)}
        previous = input_stage(inputs.target.stages(gluon=inputs.gluon), stage)
        text = data.decode()
        value = v3_9.parse_module(text, previous, opened.context) if previous in MODULE_STAGES else text
        log = io.StringIO()
        with contextlib.redirect_stdout(log):
            if inputs.facts is None:
                made = v3_9.stage_functions(backend, options, gluon=inputs.gluon)[stage](value, metadata)
                outcome = StageOutcome(made)
            else:
                outcome = opened.session.run(stage, value, metadata, passes, inputs.facts, project, announce)
        carry = {name: metadata[name] for name in CARRIED if name in metadata}
        if stage == "cubin":
            carry |= parse_log(log.getvalue())
        made = _as_bytes(outcome.made, locations)
        if stage == "ttir":
            check_lowered(made.decode())
        return StageOutput(made, _canonical(carry), outcome.passes, outcome.findings, outcome.buffers, outcome.reads)


def check_assembler(target: Target) -> None:
    """`ToolError` when Triton takes another ptxas than the one that the project names."""
    wanted, taken = os.environ.get(v3_9.ASSEMBLER_VARIABLE), v3_9.assembler_path(target)
    if wanted and taken and os.path.realpath(wanted) != os.path.realpath(taken):
        raise ToolError(
            f'`ptxas = "{wanted}"` is no assembler that Triton can use',
            hint="`[tool.precast.tools]` names a ptxas that runs and tells its version; without it Triton's own runs",
        )


def relative_place(where: Place | None, project: Path) -> Place | None:
    """A place as messages show it: relative to the project where it lies in it."""
    if where is None or not Path(where.file).is_relative_to(project):
        return where
    return replace(where, file=Path(where.file).relative_to(project).as_posix())


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


def make_engine(open_engine: Callable[[str], Engine]) -> TritonEngine:
    """The engine; it needs no other."""
    return TritonEngine()
