"""Units and stages through the shared cache: taken before anything is compiled, given when something was.

In: stale units of a session, results of compiled ones. Out: published unit folders and their results; entries in the
cache. A unit is taken by its unit key, in one question and without a worker: what is under it tells what else was read
when it was compiled, and it is used only where all of that comes out alike here. A stage is taken by its stage key, on
a worker's behalf, for no process that runs a user's code has to do with the cache. An image that came out by luck is
never given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from precast.artifact import StageFile, UnitResult
from precast.cache.entries import Entry
from precast.cache.settings import CacheSettings
from precast.cache.shared import SharedCache
from precast.graph.steps import UnitStep
from precast.layout import STORE
from precast.plan import make_job
from precast.project import Project
from precast.store import Store, digest_bytes
from precast.worker.parcel import pack_unit, parse_unit, place_unit, reads_alike
from precast.worker.walk import parse_record


def open_sharing(settings: CacheSettings, project: Project, warn: Callable[[str], None]) -> Sharing:
    """The cache for builds of the project, whose folder is absolute."""
    return Sharing(SharedCache(settings, project.folder, warn), Store(project.folder / STORE), project)


class Sharing:
    """One build's dealings with the cache; safe for several threads."""

    def __init__(self, cache: SharedCache, store: Store, project: Project) -> None:
        self.cache = cache
        self._store = store
        self._project = project
        self._asked: set[str] = set()

    def take(self, steps: Sequence[UnitStep]) -> Iterator[tuple[UnitStep, UnitResult]]:
        """Those of the units that the cache has, published, as they come; many are asked for at once."""
        if self.cache.reads:
            self._asked.update(step.name for step in steps)
            by_name = {step.name: step for step in steps}
            for name, result in self.cache.ask_all({step.name: partial(self._take, step) for step in steps}):
                if result is not None:
                    yield by_name[name], result

    def find(self, step: UnitStep) -> UnitResult | None:
        """A unit that nobody has asked for yet, published; None when the cache does not have it."""
        if not self.cache.reads or step.name in self._asked:
            return None
        self._asked.add(step.name)
        return self.cache.ask(partial(self._take, step))

    def known(self, steps: Sequence[UnitStep]) -> Iterator[tuple[str, bool]]:
        """By name, whether the cache has each of the units."""
        for name, entry in self.cache.ask_all({step.name: partial(self.cache.get, step.given.key) for step in steps}):
            yield name, entry is not None

    def fetch_stage(self, key: str) -> bool:
        """Brings a stage into the store, for a worker that has asked for it; whether it is there now."""
        return self.cache.reads and bool(self.cache.ask(partial(self._fetch_stage, key)))

    def give(self, step: UnitStep, result: UnitResult) -> None:
        """Has the cache keep a unit that was compiled here, with the stages that ran."""
        if not self.cache.writes or not result.facts.reproducible:
            return
        for stage in result.stages:
            if not stage.reused:
                self.cache.give(partial(self._stage_entry, stage))
        self.cache.give(partial(self._unit_entry, step.given.key, result))

    def _take(self, step: UnitStep) -> UnitResult | None:
        key = step.given.key
        entry = self.cache.get(key)
        if entry is None:
            return None
        try:
            packed = parse_unit(entry, step.planned.unit)
        except ValueError:
            self.cache.tell_damaged(f"ac/{key}")
            return None
        if packed is None or not reads_alike(packed.result, self._project.folder):
            return None
        return place_unit(make_job(step.given, self._project), packed, entry.blobs, reused=True)

    def _fetch_stage(self, key: str) -> bool:
        entry = self.cache.get(key)
        record = parse_record(entry.value) if entry else None
        if entry is None or record is None:
            return False
        if [record.digest] != [digest_bytes(blob) for blob in entry.blobs]:
            self.cache.tell_damaged(f"ac/{key}")
            return False
        self._store.put(entry.blobs[0])
        self._store.put_record(key, entry.value)
        return True

    def _stage_entry(self, stage: StageFile) -> tuple[str, Entry, bool] | None:
        record, blob = self._store.get_record(stage.key), self._store.get(stage.digest)
        return None if record is None or blob is None else (stage.key, Entry(record, (blob,)), False)

    def _unit_entry(self, key: str, result: UnitResult) -> tuple[str, Entry, bool] | None:
        entry = pack_unit(result, self._store)
        return None if entry is None else (key, entry, True)
