"""The cache as a build uses it: entries by key, checked; a place that fails is left alone, with one warning.

In: settings, and whom to warn. Out: `SharedCache`. Nothing here raises for what a place does: an entry that is not
whole is none, and after a failure nobody asks again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from precast.cache.entries import MOST_MESSAGE_BYTES, Entry, pack_entry, parse_message
from precast.cache.lanes import Lanes
from precast.cache.place import BLOBS, MESSAGES, CacheFault, Place
from precast.cache.settings import WEB, CacheSettings, shown
from precast.store import digest_bytes

READS, WRITES = 24, 6  # at once
STALL_SECONDS = 40.0  # without any answer: more than a place takes to say that it does not answer
LOOK_SECONDS = 0.2  # after which somebody who waits looks whether it is still worth it
SLOW_SECONDS = 20.0  # after which more than one errand a second must have been done

Name = TypeVar("Name")
Result = TypeVar("Result")


def open_place(url: str, folder: Path, environment: Mapping[str, str] = os.environ) -> Place:
    """The place at an address; a folder's may be relative to the project's `folder`. `CacheFault` when it cannot be."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in WEB:
        from precast.cache.web import WebPlace  # libraries that a build without a cache does not load

        return WebPlace(url, environment, READS + WRITES)
    if separator and scheme != "file":
        from precast.cache.bucket import BucketPlace

        return BucketPlace(url)
    from precast.cache.folder import FolderPlace

    return FolderPlace(folder / Path(rest if separator else url).expanduser())


class SharedCache:
    """Entries in a place that other machines use too; safe for several threads."""

    def __init__(self, settings: CacheSettings, folder: Path, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._folder = folder
        self._warn = warn
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._reads, self._writes = settings.read, settings.write
        self._reading, self._writing = Lanes(READS), Lanes(WRITES)
        self._given: set[Future[None]] = set()
        self._closed = False

    @property
    def reads(self) -> bool:
        """Whether it is worth asking."""
        return self._reads

    @property
    def writes(self) -> bool:
        """Whether it is worth giving."""
        return self._writes

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return shown(self._settings.url)

    @cached_property
    def _place(self) -> Place:
        return open_place(self._settings.url, self._folder)

    def get(self, key: str) -> Entry | None:
        """The entry of a key, whole; None when there is none that can be used."""
        try:
            data = self._fetch(MESSAGES, key, MOST_MESSAGE_BYTES)
            message = parse_message(key, data) if data is not None else None
            if message is None or not message.files:
                return message.entry if message else None
            blobs = [self._blob(file.digest, file.size) for file in message.files]
        except CacheFault as fault:
            self._fail(fault, reading=True)
            return None
        except ValueError:
            self.tell_damaged(f"{MESSAGES}/{key}")
            return None
        found = tuple(blob for blob in blobs if blob is not None)
        return Entry(message.entry.value, found) if len(found) == len(blobs) else None

    def _fetch(self, kind: str, name: str, most: int) -> bytes | None:
        if not self._reads:
            return None
        with self._lock:
            place = self._place
        return place.get(kind, name, most)

    def _blob(self, digest: str, size: int) -> bytes | None:
        data = self._fetch(BLOBS, digest, size)
        if data is not None and digest_bytes(data) != digest:
            self.tell_damaged(f"{BLOBS}/{digest}")
            return None
        return data

    def put(self, key: str, entry: Entry, *, whole: bool) -> None:
        """Keeps an entry; its message last, so that nobody finds one whose blobs are still on their way."""
        message, blobs = pack_entry(key, entry, whole=whole)
        try:
            for kind, name, data in (*((BLOBS, *blob) for blob in blobs.items()), (MESSAGES, key, message)):
                if self._writes:
                    with self._lock:
                        place = self._place
                    place.put(kind, name, data)
        except CacheFault as fault:
            self._fail(fault, reading=False)

    def tell_damaged(self, name: str) -> None:
        """Says, once, that something which is there is not what it should be. It is written anew where that may be."""
        self._tell("damaged", f"the cache at {self.address} holds what is damaged or forged ({name}): not used")

    def _fail(self, fault: CacheFault, *, reading: bool) -> None:
        hint = ""
        if fault.refused and self._settings.url.startswith(WEB):
            hint = "; credentials come from netrc or PRECAST_CACHE_TOKEN"
        with self._lock:
            was, self._writes = self._writes, False
            if reading:
                was, self._reads = self._reads, False
        what = "is not used" if reading else "takes nothing"
        if was:
            self._tell("failed", f"the cache at {self.address} {what} from here on: {fault.cause}{hint}")

    def _tell(self, what: str, message: str) -> None:
        with self._lock:
            news = what not in self._told
            self._told.add(what)
        if news:
            self._warn(message)

    def ask(self, call: Callable[[], Result]) -> Result | None:
        """What a call that reads gives; None when it does not end."""
        return next((result for _, result in self.ask_all({"": call})), None)

    def ask_all(self, calls: Mapping[Name, Callable[[], Result]]) -> Iterator[tuple[Name, Result]]:
        """What calls that read give, many at once, as they end; what is too slow to be of use ends it early."""
        names = {self._reading.submit(call): name for name, call in calls.items()}
        for future in self._ended(set(names), reading=True):
            if not future.cancelled():
                yield names[future], future.result()

    def give(self, make: Callable[[], tuple[str, Entry, bool] | None]) -> None:
        """Has an entry kept soon: `make` gives its key, what it is, and whether it shall travel as one message; None
        where there is nothing to keep after all."""

        def send() -> None:
            made = make() if self._writes else None
            if made is not None:
                key, entry, whole = made
                self.put(key, entry, whole=whole)

        self._given.add(self._writing.submit(send))

    def finish(self) -> None:
        """Waits for what is to be kept, as long as that goes on."""
        given, self._given = self._given, set()
        for future in self._ended(given, reading=False):
            if not future.cancelled():
                future.result()

    def _ended(self, futures: set[Future[Result]], *, reading: bool) -> Iterator[Future[Result]]:
        ended: SimpleQueue[Future[Result]] = SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        started = latest = time.monotonic()
        count = 0
        while count < len(futures) and not self._closed:
            with contextlib.suppress(Empty):
                future = ended.get(timeout=LOOK_SECONDS)
                count, latest = count + 1, time.monotonic()
                yield future
            now = time.monotonic()
            if count < len(futures) and (now - latest > STALL_SECONDS or now - started > max(SLOW_SECONDS, count)):
                self._fail(CacheFault("it is too slow"), reading=reading)
                for future in futures:
                    future.cancel()
                return

    def close(self) -> None:
        """Drops what waits; whoever waits for an answer has none."""
        self._closed = True
        self._reading.close()
        self._writing.close()
