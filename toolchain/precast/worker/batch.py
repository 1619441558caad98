"""What a build and a cluster's workers tell each other: jobs that travel together, and what came of them.

In and out: frozen values through `codec`, beside the bytes that they name by digest. The transport is the cluster's
own; all that it carries is a text and bytes, and each of these is held against its digest where it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from precast.artifact import UnitResult
from precast.codec import CodecError, from_json, to_json
from precast.job import Job
from precast.layout import FACTS_FILE
from precast.passes.digest import read_contents
from precast.store import Store, digest_bytes
from precast.worker.parcel import PackedUnit, is_whole, place_unit, reads_alike
from precast.worker.portable import movable_job, project_files

FORMAT = 1
Message = tuple[str, Mapping[str, bytes]]  # JSON, and by digest what it speaks of


@dataclass(frozen=True)
class KnownStage:
    """A stage that the build's store has: a worker that comes upon its key need not run it."""

    key: str
    record: str
    digest: str


@dataclass(frozen=True)
class SentJob:
    """A movable job, the project's files that it is made of, and the stages that may turn out the same."""

    job: Job
    files: tuple[tuple[str, str], ...]  # name and digest
    known: tuple[KnownStage, ...] = ()


@dataclass(frozen=True)
class Batch:
    """Jobs that travel together."""

    jobs: tuple[SentJob, ...]
    format: int = FORMAT


@dataclass(frozen=True)
class Answer:
    """What came of one job: a unit, whose stages are among the message's blobs, or why there is none."""

    unit: PackedUnit | None = None
    failure: str = ""


@dataclass(frozen=True)
class Answers:
    """One answer for each job, in order; none where the worker refuses all of them, and says why."""

    answers: tuple[Answer, ...] = ()
    refusal: str = ""
    format: int = FORMAT


def pack_batch(jobs: Sequence[Job]) -> Message:
    """Jobs, with the files that they are made of and what the store knows of their stages."""
    blobs: dict[str, bytes] = {}
    sent = []
    for job in jobs:
        contents = read_contents(Path(job.project), sorted(set(project_files(job))))
        files = {name: data for name, data in contents.items() if data is not None}
        known = list(_find_known(job))
        blobs |= {digest_bytes(data): data for data in (*files.values(), *(blob for _, blob in known))}
        named = tuple((name, digest_bytes(data)) for name, data in files.items())
        sent.append(SentJob(movable_job(job), named, tuple(stage for stage, _ in known)))
    return to_json(Batch(tuple(sent))), blobs


def _find_known(job: Job) -> Iterator[tuple[KnownStage, bytes]]:
    """The stages of the unit as it was last built: after an edit that decides nothing they turn out the same."""
    store = Store(job.store)
    try:
        last = from_json((Path(job.output) / FACTS_FILE).read_bytes(), UnitResult)
    except (OSError, CodecError):
        return
    for stage in last.stages:
        record, blob = store.get_record(stage.key), store.get(stage.digest)
        if record is not None and blob is not None:
            yield KnownStage(stage.key, record.decode(), stage.digest), blob


def unpack_answer(job: Job, answer: Answer, blobs: Mapping[str, bytes]) -> tuple[UnitResult | None, str]:
    """The result of a unit that is now in the job's store and folder; else why it is not to be used."""
    packed = answer.unit
    if packed is None:
        return None, answer.failure
    found = [blobs.get(stage.digest, b"") for stage in packed.result.stages]
    if not is_whole(packed, found, job.unit):
        return None, "what came back is damaged"
    if not reads_alike(packed.result, Path(job.project)):
        return None, "what its module reads is not the same there"
    return place_unit(job, packed, found, reused=False), ""


def write_message(value: Answers, blobs: Iterable[bytes] = ()) -> Message:
    """Answers and what they speak of."""
    return to_json(value), {digest_bytes(blob): blob for blob in blobs}


def checked(blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of a message's bytes that are what they should be."""
    return {digest: blob for digest, blob in blobs.items() if digest_bytes(blob) == digest}
