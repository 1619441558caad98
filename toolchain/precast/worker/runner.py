"""A cluster's worker: runs the jobs of a message on this machine, or refuses them.

In: a `Batch` with the files that its jobs are made of. Out: `Answers` with compiled units. Units are compiled by worker
processes, as in a local build: what crashes there takes nothing here with it. A message has a folder of its own, which
is gone when it is answered. A machine whose tools are not those that a job was planned for refuses the whole message.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path

from precast.artifact import UnitResult
from precast.codec import CodecError, from_json
from precast.digest import FileDigests
from precast.errors import PrecastError
from precast.identity import Identities, identity_memory
from precast.identity.tools import OWN_STANDIN
from precast.job import Job
from precast.reads import digest_file
from precast.scratch import Scratch, remove_abandoned
from precast.spec.closure import INSTALLED
from precast.store import Store, write_file
from precast.worker.batch import FORMAT, Answer, Answers, Batch, Message, SentJob, checked, write_message
from precast.worker.parcel import gather_unit
from precast.worker.pool import WorkerPool
from precast.worker.portable import placed_job


def read_identities() -> Identities:
    """Who this machine's tools are now."""
    return Identities(FileDigests(identity_memory(Path(tempfile.gettempdir())), shared=True))


def find_difference(job: Job, identities: Identities) -> str:
    """How this machine's tools or packages are others than those that a job was planned for; "" for not at all."""
    python_pass = any(use.on_bindings for use in job.passes)
    standin = any(name == OWN_STANDIN for name, _ in job.tools)
    here = dict(identities.tools(job.unit.target, python_pass=python_pass, standin=standin))
    for name, wanted in job.tools:
        if here.get(name) != wanted:
            return f"{name} is {here.get(name, 'absent')} there and {wanted} here"
    for name, wanted in job.sources:
        if name.startswith(INSTALLED) and not _is_installed(name.removeprefix(INSTALLED), wanted):
            return f"{name.removeprefix(INSTALLED)} is another file there than here"
    return ""


def _is_installed(name: str, digest: str) -> bool:
    found = (Path(folder, name) for folder in sys.path if folder)
    return next((digest_file(file) == digest for file in found if file.is_file()), False)


class BatchRunner:
    """Runs batches, several at once if so asked, each on up to `count` worker processes. Safe for threads."""

    def __init__(self, count: int = 0) -> None:
        remove_abandoned()
        self._reproducers = Scratch()
        self._pool = WorkerPool(count, reproducers=Path(self._reproducers.name))
        self._lock = threading.Lock()
        self._running: dict[str, list[Future[UnitResult]]] = {}  # by the name of their message

    def drop(self, name: str) -> None:
        """Ends the jobs of a message that has been let in: nobody waits for them any more."""
        with self._lock:
            running = self._running.pop(name, [])
        self._pool.drop(running)

    def run(self, message: Message, name: str = "") -> Message:
        """Answers one message; it can be dropped by its name, which no other has."""
        name = name or secrets.token_hex(8)
        with self._lock:
            self._running[name] = []
        try:
            return self._answer_all(message, name)
        finally:
            with self._lock:
                self._running.pop(name, None)

    def _answer_all(self, message: Message, name: str) -> Message:
        text, blobs = message
        try:
            batch = from_json(text, Batch)
        except CodecError:
            batch = Batch((), format=0)
        if batch.format != FORMAT:
            return write_message(Answers(refusal="it has another version of Precast"))
        identities = read_identities()
        for sent in batch.jobs:
            if difference := find_difference(sent.job, identities):
                return write_message(Answers(refusal=difference))
        scratch = Scratch()
        try:
            return self._run(name, batch, checked(blobs), Path(scratch.name))
        finally:
            scratch.remove()

    def _run(self, name: str, batch: Batch, blobs: Mapping[str, bytes], folder: Path) -> Message:
        store = Store(folder / "store")
        jobs = [self._place(sent, blobs, folder / "project", store) for sent in batch.jobs]
        running = [self._pool.submit(job) for job in jobs]
        with self._lock:
            dropped = name not in self._running
            self._running[name] = running
        if dropped:
            self._pool.drop(running)
        found = [self._answer(future, store) for future in running]
        return write_message(Answers(tuple(each for each, _ in found)), (blob for _, made in found for blob in made))

    def _place(self, sent: SentJob, blobs: Mapping[str, bytes], project: Path, store: Store) -> Job:
        """The job with its files where it will look for them. One that did not arrive is missing, as it would be."""
        for name, digest in sent.files:
            if digest in blobs:
                write_file(project / name, blobs[digest])
        for stage in sent.known:
            if stage.digest in blobs:
                store.put(blobs[stage.digest])
                store.put_record(stage.key, stage.record.encode())
        job = placed_job(sent.job, project)
        return replace(job, store=str(store.root), output=str(project.parent / "units" / job.unit.slug))

    def _answer(self, future: Future[UnitResult], store: Store) -> tuple[Answer, tuple[bytes, ...]]:
        try:
            gathered = gather_unit(future.result(), store)
        except (PrecastError, CancelledError) as error:
            return Answer(failure=str(error)), ()
        if gathered is None:
            return Answer(failure="the store has lost a part of it"), ()
        return Answer(gathered[0]), gathered[1]

    def close(self) -> None:
        """Ends the worker processes."""
        self._pool.close(cancel=True)
        self._reproducers.remove()
