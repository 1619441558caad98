"""A unit's walk through its stages, inside a worker.

In: a job and an engine. Out: the unit's folder, which appears whole, and its `UnitResult`. Before each stage the store
is asked under the stage key; what ran is kept there, with all that later stages need, so that a stage that was found
and a stage that ran lead on alike.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from precast.artifact import DeviceBuffer, Facts, Finding, PassRun, StageFile, UnitResult
from precast.codec import from_json, to_json
from precast.engines import Announce, Engine, StageFailure, StageOutput
from precast.job import Job
from precast.store import Store, link_file, telling_disk_faults, write_file
from precast.target import shared_memory_limit
from precast.worker.fixed import run_fixed
from precast.worker.messages import Step

LUCK_WARNING = "this machine refuses to switch off address randomisation: the image may differ in another build"


@dataclass(frozen=True)
class StageRecord:
    """What the store keeps under a stage key beside the text or image itself."""

    digest: str
    carry: str
    passes: tuple[PassRun, ...]
    findings: tuple[Finding, ...]
    buffers: tuple[DeviceBuffer, ...]
    reproducible: bool = True


@dataclass(frozen=True)
class _Done:
    stage: StageFile
    output: StageOutput
    reproducible: bool


def run_job(job: Job, engine: Engine, announce: Callable[[Step], None]) -> UnitResult:
    """Takes a unit through all its stages and publishes its folder."""
    started = time.monotonic()
    announce(Step())
    source = engine.read_source(job)
    store, done = Store(job.store), list[_Done]()
    output, digest = source.output, store.put(source.output.data)
    for stage in job.unit.stages:
        done.append(_make_stage(job, engine, store, Step(stage, "", digest, output.carry), output, announce))
        output, digest = done[-1].output, done[-1].stage.digest
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
        warnings=source.warnings + (() if reproducible else (LUCK_WARNING,)),
        seconds=round(time.monotonic() - started, 4),
    )
    publish(job, result, store)
    return result


def check_launchable(job: Job, facts: Facts) -> None:
    """An image that its target can never launch is a failure of the build, not of the server."""
    limit = shared_memory_limit(job.unit.target)
    if limit is not None and facts.shared_bytes > limit:
        raise StageFailure(
            f"the kernel needs {facts.shared_bytes} bytes of shared memory, {job.unit.target} has {limit} for a block",
            hint="smaller blocks or a smaller `num_stages` need less",
        )


def _make_stage(
    job: Job, engine: Engine, store: Store, step: Step, source: StageOutput, announce: Callable[[Step], None]
) -> _Done:
    stage = step.stage
    key = engine.stage_key(job, stage, source)
    found = recall(store, key)
    if found is not None:
        record, output = found
        return _Done(StageFile(stage, record.digest, key, True), output, record.reproducible)
    announce(step)
    reproducible = True
    if engine.needs_fixed_addresses(job, stage, source):
        output, reproducible = run_fixed(job, stage, source)
    else:
        output = engine.run_stage(job, stage, source, _pass_announcer(step, store, announce))
    digest = keep(store, key, output, reproducible)
    return _Done(StageFile(stage, digest, key, False), output, reproducible)


def _pass_announcer(step: Step, store: Store, announce: Callable[[Step], None]) -> Announce:
    def announce_pass(name: str, text: str = "") -> None:
        announce(replace(step, pass_name=name, pass_source=store.put(text.encode()) if text else ""))

    return announce_pass


def recall(store: Store, key: str) -> tuple[StageRecord, StageOutput] | None:
    """A stage's output from the store; None when it, or any part of it, is not there."""
    data = store.get_record(key)
    if data is None:
        return None
    record = from_json(data, StageRecord)
    content = store.get(record.digest)
    if content is None:
        return None
    return record, StageOutput(content, record.carry, record.passes, record.findings, record.buffers)


def keep(store: Store, key: str, output: StageOutput, reproducible: bool) -> str:
    """Puts a stage's output into the store, the record last; returns the output's digest."""
    digest = store.put(output.data)
    record = StageRecord(digest, output.carry, output.passes, output.findings, output.buffers, reproducible)
    store.put_record(key, to_json(record).encode())
    return digest


def publish(job: Job, result: UnitResult, store: Store) -> None:
    """Makes the unit's folder: image, stage files and `facts.json` appear together, or the old ones stay."""
    folder = Path(job.output)
    with telling_disk_faults(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = folder.parent / f".{folder.name}.{secrets.token_hex(6)}.new"
        draft.mkdir()
        try:
            for stage in result.stages if job.keep_stages else result.stages[-1:]:
                link_file(store.object_path(stage.digest), draft / f"{job.unit.kernel}.{stage.stage}")
            write_file(draft / "facts.json", to_json(result, indent=1).encode() + b"\n")
            _exchange(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _exchange(draft: Path, folder: Path) -> None:
    """Puts `draft` in the place of `folder`. A build killed in between leaves no folder, never half of one."""
    old = draft.with_suffix(".old")
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, old)
    os.rename(draft, folder)
    shutil.rmtree(old, ignore_errors=True)
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
