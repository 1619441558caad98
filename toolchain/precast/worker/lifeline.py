"""A process that does not outlive the one that started it. In: the parent's process id. Out: nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent's thread ends; at once if that has already happened."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def be_first_to_go() -> None:
    """When the machine runs out of memory, this process is ended before the build that started it.

    A crash leaves its last words and a reproducer, and no core file.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
