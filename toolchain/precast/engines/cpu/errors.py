"""What the engine says when it cannot lower an op. In: an op. Out: the error that names op, kernel and source line."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from precast.engines.cpu.ir import Op
from precast.errors import PassError, Place


def refuse(operation: Op, reason: str, hint: str | None = None) -> PassError:
    """The error for an op that the CPU engine has no lowering for; the caller raises it."""
    return PassError(f"the CPU engine cannot lower `{operation.name}`: {reason}", operation.where, hint)


@contextmanager
def faults_told(find_place: Callable[[], Place | None] = lambda: None) -> Iterator[None]:
    """Makes an exception that nobody foresaw a failure of this kernel, with the traceback and the place it was at."""
    try:
        yield
    except (PassError, MemoryError, OSError):
        raise
    except Exception as error:
        text = "".join(traceback.format_exception(error, limit=-4)).strip()
        raise PassError(f"a fault of Precast's own, in the CPU engine\n{text}", find_place()) from error
