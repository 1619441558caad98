"""What of a process code from outside can change for the code that comes after it.

In: this process. Out: a frozen value, and the names of what differs between two. A worker looks before and after each
job: one that is not as it was is not used again. Nothing is put back, for a module that was loaded already would not
do again what it did; the next unit finds a fresh process, as every first one does.
"""

from __future__ import annotations

import _thread
import builtins
import codecs
import ctypes
import faulthandler
import fcntl
import functools
import gc
import locale
import os
import random
import resource
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields

from precast.worker.descendants import children_of
from precast.worker.replaced import Contents, read_contents

_LIMITS = tuple(value for name, value in sorted(vars(resource).items()) if name.startswith("RLIMIT_"))
_LEAST = 5e-324  # the smallest float that is not zero
_OWN = "precast-"  # in names of folders that are made and removed here
_KNOBS = "triton.knobs"
_LIBC = ctypes.CDLL(None)
_ERROR_HANDLERS = ("strict", "ignore", "replace", "backslashreplace", "surrogateescape", "surrogatepass")


@dataclass(frozen=True)
class ProcessState:
    """Values that compare equal when nothing has changed. Objects count by identity, and are held for it."""

    environment: object
    folder: object
    files: object
    descriptors: object
    interpreter: object
    signals: object
    warnings: object
    locale: object
    import_system: object
    limits: object
    threads: object
    processes: object
    knobs: object
    contents: Contents

    def changes_to(self, after: ProcessState) -> tuple[str, ...]:
        """What is not in `after` as it is here."""
        names = [each.name for each in fields(self) if each.name != "contents"]
        changed = [name for name in names if getattr(self, name) != getattr(after, name)]
        return (*changed, *(f"contents of {name}" for name in self.contents.differing_in(after.contents)))


class _Same:
    """Equal only to what stands for the same object, whatever that thinks of equality."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class Home:
    """Where a worker's process lives: its private folder, and its keeper, to which its orphans go."""

    folder: str = ""
    keeper: int = 0


NOWHERE = Home()


def read_state(
    own_folders: Sequence[str] = (), earlier: ProcessState | None = None, home: Home = NOWHERE
) -> ProcessState:
    """The state of this process now. Paths in `own_folders` are the business of who imports from them; what is as it
    was `earlier` is taken from there, which is quicker to read and to compare."""
    return ProcessState(
        environment=(dict(os.environ), _native_environment()),
        folder=os.getcwd(),
        files=sorted(_list_files(home.folder)),
        descriptors=dict(_open_descriptors()),
        interpreter=_interpreter(),
        signals=_signals(),
        warnings=([each for each in warnings.filters if each[0] == "error"], _Same(warnings.showwarning)),
        locale=locale.setlocale(locale.LC_ALL, None),
        import_system=_import_system(tuple(own_folders)),
        limits=([resource.getrlimit(each) for each in _LIMITS], _read_umask(), _read_schedule()),
        threads=(set(sys._current_frames()), _thread._count()),
        processes=(children_of(os.getpid()), children_of(home.keeper) if home.keeper else ()),
        knobs=[*_knobs(sys.modules.get(_KNOBS))],
        contents=read_contents(earlier.contents if earlier else None),
    )


def _native_environment() -> list[bytes]:
    """The environment as native code and child processes see it, which `os.environ` need not."""
    entries, found = ctypes.POINTER(ctypes.c_char_p).in_dll(_LIBC, "environ"), list[bytes]()
    while entries and (entry := entries[len(found)]) is not None:
        found.append(entry)
    return found


def _list_files(folder: str) -> Iterator[tuple[str, int, int]]:
    """All that others left in a folder, with sizes and times."""
    for place, folders, files in os.walk(folder) if folder else ():
        folders[:] = [name for name in folders if place != folder or not name.startswith(_OWN)]
        for path in (os.path.join(place, name) for name in (*folders, *files)):
            with suppress(OSError):  # gone
                status = os.lstat(path)
                yield path, status.st_size, status.st_mtime_ns


def _open_descriptors() -> Iterator[tuple[str, tuple[str, int]]]:
    """What each leads to, and whether reading from it waits."""
    for name in os.listdir("/proc/self/fd"):
        try:
            yield name, (os.readlink(f"/proc/self/fd/{name}"), fcntl.fcntl(int(name), fcntl.F_GETFL))
        except OSError:  # the one that listed them
            continue


def _read_umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


def _read_schedule() -> object:
    group = os.getpgid(0), os.getsid(0), os.getresuid(), os.getresgid(), os.getgroups()
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0), group


def _interpreter() -> object:
    """What Python and the floating-point unit are set to, which names all code finds, and where chance stands."""
    hooks = [sys.stdin, sys.stdout, sys.stderr, sys.excepthook, sys.displayhook, sys.unraisablehook]
    hooks += [threading.excepthook, sys.gettrace(), sys.getprofile(), *sys.get_asyncgen_hooks(), *gc.callbacks]
    hooks += [codecs.lookup_error(name) for name in _ERROR_HANDLERS]
    digits = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0
    numbers = (sys.getrecursionlimit(), sys.getswitchinterval(), digits, sys.getdlopenflags(), *_auditors())
    threads = threading.stack_size()
    threading.stack_size(threads)  # asking sets it to 0
    collecting = (gc.isenabled(), gc.get_threshold(), gc.get_debug(), faulthandler.is_enabled(), threads)
    rounding = _LIBC.fegetround() if hasattr(_LIBC, "fegetround") else 0
    subnormals = (_LEAST * 1.0, sys.float_info.min / 2)  # libraries may have them flushed to zero
    return ([*map(_Same, hooks)], numbers, collecting, rounding, subnormals, [*vars(builtins)], *_chance())


def _chance() -> Iterator[object]:
    """Where chance stands, and how decimals are computed where a thread says nothing of it."""
    yield random.getstate()
    if (numpy := sys.modules.get("numpy.random")) is not None:
        yield repr(numpy.get_state(legacy=False))
    if (decimal := sys.modules.get("decimal")) is not None:
        yield repr((decimal.DefaultContext, decimal.BasicContext, decimal.ExtendedContext))


@functools.cache
def _auditors() -> list[None]:
    """A list with something in it for each hook of others that came to Python's audit events after the first look."""
    found: list[None] = []

    def hear(event: str, _: object) -> None:
        if event == "sys.addaudithook" and not str(sys._getframe(1).f_globals.get("__name__")).startswith("precast."):
            found.append(None)

    sys.addaudithook(hear)
    return found


def _signals() -> object:
    """Python's handlers (compilers have native ones, for their last words), what is blocked, timers."""
    handlers = [_Same(signal.getsignal(each)) for each in range(1, signal.NSIG)]
    timers = [signal.getitimer(each) for each in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return handlers, blocked, timers, _read_native_timers(), _read_wakeup()


def _read_native_timers() -> bytes:
    """What the kernel tells of the timers that native code has made; nothing where it is not built for that."""
    with suppress(OSError), open("/proc/self/timers", "rb") as file:
        return file.read()
    return b""


def _read_wakeup() -> int:
    """The descriptor that signals write to; only the main thread may ask."""
    if threading.current_thread() is not threading.main_thread():
        return -1
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor)
    return descriptor


def _import_system(own_folders: tuple[str, ...]) -> object:
    paths = [path for path in sys.path if not path.startswith(own_folders)]
    finders = [each for each in sys.meta_path if not type(each).__module__.startswith("precast.")]
    return paths, [*map(_Same, finders)], [*map(_Same, sys.path_hooks)]


def _knobs(module: types.ModuleType | None) -> Iterator[object]:
    """Triton's settings that were set, and the hooks that were added."""
    for name, group in vars(module).items() if module else ():
        if type(group).__module__ == _KNOBS:
            chains = [(key, [*value.calls]) for key, value in vars(type(group)).items() if hasattr(value, "calls")]
            yield name, {key: _Same(value) for key, value in vars(group).items()}, chains
