"""Several errands at once, in threads that nobody must wait for: a place that hangs holds up no end of a build.

In: calls. Out: futures. (The threads of `concurrent.futures` are joined when the interpreter ends.)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class Lanes:
    """`count` threads, started when first needed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, call: Callable[[], Result]) -> Future[Result]:
        """Queues a call; once the lanes are closed its future is cancelled."""
        future: Future[Result] = Future()
        with self._changed:
            if self._closed:
                future.cancel()
                return future
            self._waiting.append((future, call))
            if self._idle < len(self._waiting) and self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._serve, name="precast-cache", daemon=True).start()
            self._changed.notify()
        return future

    def close(self) -> None:
        """Cancels what waits; what runs is left to itself."""
        with self._changed:
            self._closed = True
            while self._waiting:
                self._waiting.popleft()[0].cancel()
            self._changed.notify_all()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._waiting or self._closed)
                self._idle -= 1
                if not self._waiting:
                    return
                future, call = self._waiting.popleft()
            _run(future, call)


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
