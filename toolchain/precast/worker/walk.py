"""A unit's walk through its stages, inside a worker.

In: a job and an engine. Out: the unit's folder, which appears whole, and its `UnitResult`. Each stage is given one
frozen `StageInputs`, made here and nowhere else. The store is asked under its key first; what ran is kept there, with
all that later stages need, so that a stage that was found and a stage that ran lead on alike.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cattrs import BaseValidationError

from precast.artifact import DeviceBuffer, Facts, Finding, PassRun, StageFile, UnitResult
from precast.codec import from_json, to_json
from precast.engines import Announce, Engine, StageFailure, StageInputs, StageOutput, UnitFacts
from precast.engines.registry import engine_name
from precast.errors import ToolError
from precast.identity import select_tools
from precast.job import Job
from precast.layout import FACTS_FILE
from precast.passes.selection import PassUse
from precast.reads import Read, ReadKind, digest_now
from precast.spec.model import Unit
from precast.store import Store, digest_bytes, link_new, telling_disk_faults, write_new
from precast.target import shared_memory_limit
from precast.worker.fixed import run_fixed
from precast.worker.messages import Step
from precast.worker.meter import Meter

LUCK_WARNING = "this machine refuses to switch off address randomisation: the image may differ in another build"

# Raised whenever what the store keeps of a stage changes: a record of another format is not found.
RECORD_FORMAT = 2


@dataclass(frozen=True)
class StageRecord:
    """What the store keeps under a stage key beside the text or image itself."""

    digest: str
    carry: str
    passes: tuple[PassRun, ...]
    findings: tuple[Finding, ...]
    buffers: tuple[DeviceBuffer, ...]
    reads: tuple[Read, ...]
    reproducible: bool = True
    format: int = RECORD_FORMAT


@dataclass(frozen=True)
class _Done:
    inputs: StageInputs
    stage: StageFile
    output: StageOutput
    reproducible: bool


Fetch = Callable[[str], bool]  # brings what has a key into the store; whether it is there now


def run_job(job: Job, engine: Engine, announce: Callable[[Step], None], fetch: Fetch = lambda key: False) -> UnitResult:
    """Takes a unit through all its stages and publishes its folder. What the store lacks of them, `fetch` may bring."""
    started = time.monotonic()
    announce(Step())
    source = engine.read_source(job)
    refuse_moved(job, source.reads)
    walk = _Walk(job, engine, Store(job.store), announce, fetch)
    done = walk.run(source.output)
    reproducible = all(each.reproducible for each in done)
    facts = engine.read_facts(job, {each.stage.stage: each.output for each in done})
    check_launchable(job, facts)
    result = UnitResult(
        unit=str(job.unit),
        image_digest=done[-1].stage.digest,
        facts=replace(facts, reproducible=reproducible),
        stages=tuple(each.stage for each in done),
        passes=tuple(run for each in done for run in each.output.passes),
        findings=tuple(finding for each in done for finding in each.output.findings),
        files_used=source.files_used,
        reads=find_undeclared(job, (*source.reads, *(read for each in done for read in each.output.reads))),
        warnings=source.warnings + (() if reproducible else (LUCK_WARNING,)),
        seconds=round(time.monotonic() - started, 4),
    )
    publish(job, result, walk.store)
    return result


def refuse_moved(job: Job, reads: Sequence[Read]) -> None:
    """`ToolError` when a source that ran is not the one that the plan saw: what was made has no key that is right."""
    seen = dict(job.sources)
    moved = [
        read.name for read in reads if read.kind is ReadKind.SOURCE and seen.get(read.name, read.digest) != read.digest
    ]
    if moved:
        raise ToolError(f"{', '.join(moved)} changed while {job.unit} was built", hint="build again")


def find_undeclared(job: Job, reads: Sequence[Read]) -> tuple[Read, ...]:
    """What was read beyond the sources that the plan knows, sorted."""
    known = {name for name, _ in job.sources}
    return tuple(sorted({read for read in reads if read.kind is not ReadKind.SOURCE or read.name not in known}))


def plan_stage(job: Job, stage: str, carry: str, input_digest: str) -> StageInputs:
    """All that decides what `stage` of a job makes of its input: the one place where a stage's inputs are chosen."""
    unit = job.unit
    together = stage_groups(job)[-1]
    passes = tuple(use for use in job.passes if acts_in(use, stage, together))
    return StageInputs(
        stage=stage,
        target=unit.target,
        gluon=unit.source.gluon,
        options=unit.options,
        line_info=job.line_info,
        environment=job.settings.environment,
        passes=passes,
        facts=describe_unit(unit) if passes else None,
        tools=select_tools(job.tools, unit.target, stage, python_pass=any(use.on_bindings for use in passes)),
        carry=carry,
        input=input_digest,
        symbol=unit.symbol if stage == "obj" else "",
    )


def acts_in(use: PassUse, stage: str, together: Sequence[str]) -> bool:
    """Whether a pass can change what `stage` makes: a library brings dialects and ops to all, a hook that carries state
    may change any of the stages that run `together` for its sake."""
    return use.stage == stage or bool(use.library) or (use.stateful and stage in together)


def describe_unit(unit: Unit) -> UnitFacts:
    """What passes are told about a unit."""
    constants = tuple((each.name, each.value) for each in unit.arguments if each.type == "constexpr" or each.constant)
    fixed = {name for name, _ in constants}
    arguments = tuple(each.name for each in unit.arguments if each.name not in fixed)
    return UnitFacts(str(unit), unit.kernel, unit.target, constants, arguments)


def check_launchable(job: Job, facts: Facts) -> None:
    """An image that its target can never launch is a failure of the build, not of the server."""
    limit = shared_memory_limit(job.unit.target)
    if limit is not None and facts.shared_bytes > limit:
        raise StageFailure(
            f"the kernel needs {facts.shared_bytes} bytes of shared memory, {job.unit.target} has {limit} for a block",
            hint="smaller blocks or a smaller `num_stages` need less",
        )


@dataclass
class _Walk:
    """One job's way through its stages."""

    job: Job
    engine: Engine
    store: Store
    announce: Callable[[Step], None]
    fetch: Fetch

    def run(self, source: StageOutput) -> list[_Done]:
        """Every stage, in order, from the front end's text on."""
        done: list[_Done] = []
        for group in stage_groups(self.job):
            before = done[-1].output if done else source
            first = self._inputs(group[0], before)
            done += self._recall_all(group, first) or self._make_all(group, first, before, done)
        return done

    def _recall_all(self, group: Sequence[str], first: StageInputs) -> list[_Done]:
        """All stages of a group from the store, or none."""
        found: list[_Done] = []
        for stage in group:
            inputs = self._inputs(stage, found[-1].output) if found else first
            kept = recall(self.store, inputs.key) or self._recall_from_afar(inputs.key)
            if kept is None or not self._reads_alike(kept[1].reads):
                return []
            record, output = kept
            found.append(_Done(inputs, StageFile(stage, record.digest, inputs.key, True), output, record.reproducible))
        return found

    def _recall_from_afar(self, key: str) -> tuple[StageRecord, StageOutput] | None:
        return recall(self.store, key) if self.fetch(key) else None

    def _reads_alike(self, reads: Sequence[Read]) -> bool:
        """Whether outside code that did not declare what it read, and so is not in the key, would read the same now."""
        return all(digest_now(read, Path(self.job.project), os.environ) == read.digest for read in reads)

    def _make_all(
        self, group: Sequence[str], first: StageInputs, source: StageOutput, before: Sequence[_Done]
    ) -> list[_Done]:
        made: list[_Done] = []
        for stage in group:
            output = made[-1].output if made else source
            inputs = self._inputs(stage, output) if made else first
            made.append(self._make(inputs, output, [each.inputs for each in (*before, *made)]))
        return made

    def _inputs(self, stage: str, source: StageOutput) -> StageInputs:
        return plan_stage(self.job, stage, source.carry, digest_bytes(source.data))

    def _make(self, inputs: StageInputs, source: StageOutput, walked: list[StageInputs]) -> _Done:
        if inputs.passes:  # what is wrong with where they stand is no failure of the stage
            self.engine.prepare(inputs, Path(self.job.project))
        if not walked:  # what the other stages are given is there already
            self.store.put(source.data)
        step = Step(inputs.stage, "", inputs.input, source.carry)
        self.announce(step)
        meter = Meter()
        try:
            output, reproducible = self._run(inputs, source, step)
        except StageFailure as failure:
            if failure.where is None or failure.where.file.startswith("input."):
                failure.where = self.engine.find_place(self.job, [*walked, inputs], failure)
            raise
        seconds, peak = meter.seconds, meter.peak_bytes
        digest = keep(self.store, inputs.key, output, reproducible)
        return _Done(inputs, StageFile(inputs.stage, digest, inputs.key, False, seconds, peak), output, reproducible)

    def _run(self, inputs: StageInputs, source: StageOutput, step: Step) -> tuple[StageOutput, bool]:
        project = Path(self.job.project)
        by_luck = self.engine.needs_fixed_addresses(inputs, source.data)
        hooked = any(use.stateful for use in inputs.passes)  # what one knows is in this process
        if by_luck and not hooked:
            return run_fixed(inputs, source.data, project, engine_name(self.job))
        announce_pass = _pass_announcer(step, self.store, self.announce)
        return self.engine.run_stage(inputs, source.data, project, announce_pass), not by_luck


def stage_groups(job: Job) -> list[tuple[str, ...]]:
    """A unit's stages in order; those that must all run where one of them does stand together.

    A hook is Python code that may carry anything from one stage to the next, which no key holds.
    """
    stages = job.unit.stages
    hooked = [stages.index(use.stage) for use in job.passes if use.stateful and use.stage in stages]
    first = min(hooked, default=len(stages))
    return [(stage,) for stage in stages[:first]] + ([stages[first:]] if first < len(stages) else [])


def _pass_announcer(step: Step, store: Store, announce: Callable[[Step], None]) -> Announce:
    def announce_pass(name: str, text: str = "") -> None:
        announce(replace(step, pass_name=name, pass_source=store.put(text.encode()) if text else ""))

    return announce_pass


def recall(store: Store, key: str) -> tuple[StageRecord, StageOutput] | None:
    """A stage's output from the store; None when it, or any part of it, is not there."""
    data = store.get_record(key)
    if data is None:
        return None
    record = parse_record(data)
    content = store.get(record.digest) if record else None
    if record is None or content is None:
        return None
    return record, StageOutput(content, record.carry, record.passes, record.findings, record.buffers, record.reads)


def parse_record(data: bytes) -> StageRecord | None:
    """A record, if it is one of today's format: what another version of Precast kept is no fault, and is not used."""
    try:
        record = from_json(data, StageRecord)
    except (ValueError, BaseValidationError):
        return None
    return record if record.format == RECORD_FORMAT else None


def keep(store: Store, key: str, output: StageOutput, reproducible: bool) -> str:
    """Puts a stage's output into the store, the record last; returns the output's digest."""
    digest = store.put(output.data)
    record = StageRecord(
        digest, output.carry, output.passes, output.findings, output.buffers, output.reads, reproducible
    )
    store.put_record(key, to_json(record).encode())
    return digest


def publish(job: Job, result: UnitResult, store: Store) -> None:
    """Makes the unit's folder: image, stage files and `facts.json` appear together, or the old ones stay."""
    folder = Path(job.output)
    with telling_disk_faults(folder):
        draft = folder.parent / f".{folder.name[:100]}.{secrets.token_hex(6)}.tmp"
        draft.mkdir(parents=True)
        try:
            for stage in result.stages if job.keep_stages else result.stages[-1:]:
                link_new(store.object_path(stage.digest), f"{draft}/{job.unit.kernel}.{stage.stage}")
            # What was read may lie anywhere on this machine: the index keeps it.
            write_new(f"{draft}/{FACTS_FILE}", to_json(replace(result, reads=())).encode() + b"\n")
            _exchange(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _exchange(draft: Path, folder: Path) -> None:
    """Puts `draft` in the place of `folder`. A build killed in between leaves no folder, never half of one."""
    try:
        os.rename(draft, folder)  # nothing is there, or what SCons made, with nothing in it
    except OSError:
        old = draft.with_name(f"{draft.stem}.old.tmp")
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, old)
        os.rename(draft, folder)
        shutil.rmtree(old, ignore_errors=True)
