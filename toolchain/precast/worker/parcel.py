"""A compiled unit as it travels: to machines that share a cache, and from a cluster's worker to the build.

In: a result, and the store that has what its stages made. Out: an `Entry`, one text and the outputs of all stages; and
back, checked, into another store and the unit's folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from precast.artifact import UnitResult
from precast.cache.entries import Entry
from precast.cache.place import NAME
from precast.codec import CodecError, from_json, to_json
from precast.job import Job
from precast.reads import digest_now, lasting
from precast.spec.model import Unit
from precast.store import Store, digest_bytes
from precast.worker.walk import StageRecord, parse_record, publish

FORMAT = 1


@dataclass(frozen=True)
class PackedUnit:
    """The text of an entry; the outputs of all stages are its blobs, in order."""

    result: UnitResult  # with what was read that no key holds
    records: tuple[str, ...]  # what the store keeps of each stage, as JSON
    format: int = FORMAT


def gather_unit(result: UnitResult, store: Store) -> tuple[PackedUnit, tuple[bytes, ...]] | None:
    """A unit and the outputs of its stages; None when the store does not have all of it any more."""
    blobs = [store.get(stage.digest) for stage in result.stages]
    records = [store.get_record(stage.key) for stage in result.stages]
    kept = tuple(blob for blob in blobs if blob is not None)
    texts = tuple(record.decode() for record in records if record is not None)
    if len(kept) != len(blobs) or len(texts) != len(blobs):
        return None
    return PackedUnit(replace(result, reads=lasting(result.reads)), texts), kept


def pack_unit(result: UnitResult, store: Store) -> Entry | None:
    """The entry of a unit; None when the store does not have all of it any more."""
    gathered = gather_unit(result, store)
    return Entry(to_json(gathered[0]).encode(), gathered[1]) if gathered else None


def parse_unit(entry: Entry, unit: Unit) -> PackedUnit | None:
    """What an entry says; None when it is of another version of Precast, `ValueError` when it is not one of this unit
    with all of its stages and the bytes that it says."""
    try:
        packed = from_json(entry.value, PackedUnit)
    except CodecError:
        return None
    if packed.format != FORMAT:
        return None
    if not is_whole(packed, entry.blobs, unit):
        raise ValueError(f"it is not all of {unit}")
    return packed


def is_whole(packed: PackedUnit, blobs: Sequence[bytes], unit: Unit) -> bool:
    """Whether this is the unit, with all of its stages and the bytes that it says."""
    result, stages = packed.result, packed.result.stages
    if result.unit != str(unit) or tuple(each.stage for each in stages) != unit.stages:
        return False
    if not all(NAME.fullmatch(stage.key) for stage in stages):  # places in the store are named so
        return False
    records: list[StageRecord | None] = [parse_record(text.encode(errors="replace")) for text in packed.records]
    digests = [digest_bytes(blob) for blob in blobs]
    return (
        digests == [stage.digest for stage in stages] == [record.digest for record in records if record]
        and result.image_digest == digests[-1]
    )


def reads_alike(result: UnitResult, project: Path) -> bool:
    """Whether all that was read where a unit was compiled, and no key holds, would be read alike in this project."""
    try:
        return all(digest_now(read, project, os.environ) == read.digest for read in result.reads)
    except (ValueError, OSError, RuntimeError):  # a name that no file can have
        return False


def place_unit(job: Job, packed: PackedUnit, blobs: Sequence[bytes], *, reused: bool) -> UnitResult:
    """Puts a unit into the job's store and folder; with `reused`, its result says that nothing was compiled."""
    store, result = Store(job.store), packed.result
    for stage, blob in zip(result.stages, blobs, strict=True):
        store.put(blob, stage.digest)
    store.put_records({each.key: text.encode() for each, text in zip(result.stages, packed.records, strict=True)})
    if reused:
        result = replace(result, stages=tuple(replace(stage, reused=True) for stage in result.stages))
    publish(job, result, store)
    return result
