"""Collects errors, so that one run tells all that is wrong in a project and not the first thing alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from precast.errors import PlanFailed, PrecastError, order_of


class Problems:
    """The errors found so far, in order of discovery."""

    def __init__(self) -> None:
        self.errors: list[PrecastError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Notes an error that its block raises and goes on after the block."""
        try:
            yield
        except PlanFailed as several:
            self.errors.extend(several.failures)
        except PrecastError as error:
            self.errors.append(error)

    def add(self, errors: Iterable[PrecastError]) -> None:
        self.errors.extend(errors)

    def joined(self) -> PrecastError:
        """The only error, or all of them together in the order of their places. There must be one."""
        several = PlanFailed(tuple(sorted(self.errors, key=order_of)))
        return self.errors[0] if len(self.errors) == 1 else several

    def raise_any(self) -> None:
        """Raises what was found, if anything was."""
        if self.errors:
            raise self.joined()
