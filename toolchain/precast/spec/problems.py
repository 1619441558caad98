"""Collects errors, so that one run tells all that is wrong in a project and not the first thing alone."""

from __future__ import annotations

from collections.abc import Iterable

from precast.errors import PlanFailed, PrecastError, order_of


class Problems:
    """The errors found so far, in order of discovery."""

    def __init__(self) -> None:
        self.errors: list[PrecastError] = []

    def collect(self) -> Problems:
        """For a `with`: notes an error that its block raises and goes on after the block."""
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, PlanFailed):
            self.errors.extend(error.failures)
        elif isinstance(error, PrecastError):
            self.errors.append(error)
        return isinstance(error, PlanFailed | PrecastError)

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
