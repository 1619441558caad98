"""A file that was written to be run beside a GPU and a framework, executed where there is neither.

In: a hook file's top level. Out: inert stand-ins for packages that are not installed, and an answer to whoever asks
which device there is, for as long as the block lasts.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from triton.runtime.driver import driver

from precast.engines.triton.imports import LastFinder
from precast.engines.triton.stubs import Seal, Standin


@contextlib.contextmanager
def missing_packages() -> Iterator[None]:
    """Stand-ins for packages that are not installed. What is left of them afterwards fails when it is used."""
    seal = Seal()
    finder = LastFinder((), seal, __file__)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        seal.closed = True


class _NoDevice:
    """Stands where Triton expects a driver: it knows the target, and has no device."""

    def __init__(self, target: Any) -> None:
        self._target, self._seal = target, Seal()

    def get_current_target(self) -> Any:
        return self._target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Standin(f"triton.runtime.driver.active.{name}", self._seal)


@contextlib.contextmanager
def without_device(target: Any) -> Iterator[None]:
    """Answers for Triton's driver; `target` is Triton's own name for what is compiled for."""
    before, driver._active = driver._active, _NoDevice(target)
    try:
        yield
    finally:
        driver._active = before
