"""Processes that do not outlive the one that started them, nor leave anything behind.

In: the parent's process id. Out: nothing. A worker runs below a keeper: a small process that does nothing but wait.
When the worker ends, or the build does (however), the keeper ends all that the worker started, wherever that has gone:
orphans come to the keeper, also those with a session of their own. Then it ends as the worker did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

from precast.worker.descendants import end_children

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CALLS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Has the kernel send `by` to this process when its parent's thread ends; ends it if that has already happened."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(by))
    if os.getppid() != parent:
        os._exit(1)


def be_first_to_go() -> None:
    """When the machine runs out of memory, this process is ended before the build that started it.

    A crash leaves its last words and a reproducer, and no core file.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="utf-8")


def go_below_a_keeper(parent: int, descriptors: tuple[int, ...]) -> None:
    """Returns in a new process. This one stays behind as its keeper, without `descriptors`, and never returns."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, _CALLS)
    die_with_parent(parent, signal.SIGTERM)
    keeper, worker = os.getpid(), os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        die_with_parent(keeper)
        be_first_to_go()
        return
    for descriptor in descriptors:
        os.close(descriptor)
    status = _wait_for(worker)
    end_children()
    _end_as(status)


def _wait_for(worker: int) -> int:
    """The worker's exit status; a kill's when somebody asks the keeper to end."""
    while signal.sigwait(_CALLS) == signal.SIGCHLD:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == worker:
                    return ended[1]
    return int(signal.SIGKILL)


def _end_as(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
