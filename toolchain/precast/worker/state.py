"""What of a process code from outside can change for the code that comes after it.

In: this process. Out: a frozen value, and the names of what differs between two. A worker looks before and after each
job: one that is not as it was is not used again. Nothing is put back, for a module that was loaded already would not
do again what it did; the next unit finds a fresh process, as every first one does.
"""

from __future__ import annotations

import _thread
import builtins
import ctypes
import fcntl
import gc
import itertools
import locale
import os
import random
import resource
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from precast.worker.descendants import children_of

_LIMITS = tuple(value for name, value in sorted(vars(resource).items()) if name.startswith("RLIMIT_"))
# Packages whose functions decide what code is made: the compilers, ours, and Python's own. Of its import system, an
# open session of `engines.triton.imports` replaces a part.
_WATCHED = {"triton", "mlir", "llvmlite", "precast", "builtins", *sys.stdlib_module_names} - {"importlib"}
_LEAST = 5e-324  # the smallest float that is not zero
_KNOBS = "triton.knobs"
_Place = dict[str, object] | types.MappingProxyType[str, object]
_Row = tuple[list[int], list[str], list[object]]  # of each place how many names and the last one, of all the values


@dataclass(frozen=True)
class ProcessState:
    """Values that compare equal when nothing has changed. Objects count by identity, and are held for it."""

    environment: object
    folder: object
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
    functions: _Functions

    def changes_to(self, after: ProcessState) -> tuple[str, ...]:
        """What is not in `after` as it is here. A function that is there anew is no change; one that is replaced is."""
        names = [each.name for each in fields(self) if each.name != "functions"]
        changed = [name for name in names if getattr(self, name) != getattr(after, name)]
        replaced = self.functions.lost_in(after.functions)
        return (*changed, *(f"functions of {name}" for name in replaced))


@dataclass(frozen=True, eq=False)
class _Names:
    """What stands in a module or a class, as it was; and by full name the classes among it that are its own."""

    names: list[str]
    values: list[object]
    classes: tuple[tuple[str, type], ...] = ()

    def stand_in(self, now: Mapping[str, object]) -> bool:
        """Whether all of it is there now. Lists take what is the same object for equal, and ask only what took
        another's place."""
        return list(now) == self.names and list(now.values()) == self.values

    def lost_in(self, after: _Names | None) -> bool:
        """Whether something that can be called is gone, or is another."""
        if after is self:
            return False
        values = dict(zip(after.names, after.values, strict=True)) if after else {}
        before = zip(self.names, self.values, strict=True)
        return any(values.get(name) is not value and callable(value) for name, value in before)


@dataclass(frozen=True, eq=False)
class _Functions:
    """What the watched packages define, by full name of module and class; and all of it in one row, for one look."""

    by_name: Mapping[str, _Names]
    modules: list[types.ModuleType]  # all that are loaded
    places: list[_Place]
    row: _Row

    def stand(self) -> bool:
        """Whether nothing has changed: the quick question, asked of thousands of places for each job."""
        return list(sys.modules.values()) == self.modules and _in_a_row(self.places) == self.row

    def lost_in(self, after: _Functions) -> list[str]:
        """Where something that can be called is gone, or is another."""
        if after is self:
            return []
        return [name for name, names in self.by_name.items() if names.lost_in(after.by_name.get(name))]


def _in_a_row(places: Sequence[_Place]) -> _Row:
    """A name that comes, or comes anew, comes last: of all names the last ones are enough."""
    values = itertools.chain.from_iterable(each.values() for each in places)
    return [*map(len, places)], [next(reversed(each), "") for each in places], [*values]


class _Same:
    """Equal only to what stands for the same object, whatever that thinks of equality."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def read_state(own_folders: Sequence[str] = (), earlier: ProcessState | None = None) -> ProcessState:
    """The state of this process now. Paths in `own_folders` are the business of who imports from them; what is as it
    was `earlier` is taken from there, which is quicker to read and to compare."""
    libc = ctypes.CDLL(None)
    return ProcessState(
        environment=(dict(os.environ), _native_environment(libc)),
        folder=os.getcwd(),
        descriptors=dict(_open_descriptors()),
        interpreter=_interpreter(libc),
        signals=_signals(),
        warnings=([each for each in warnings.filters if each[0] == "error"], _Same(warnings.showwarning)),
        locale=locale.setlocale(locale.LC_ALL, None),
        import_system=_import_system(tuple(own_folders)),
        limits=([resource.getrlimit(each) for each in _LIMITS], _read_umask(), _read_schedule()),
        threads=(set(sys._current_frames()), _thread._count()),
        processes=children_of(os.getpid()),
        knobs=[*_knobs(sys.modules.get(_KNOBS))],
        functions=_read_functions(earlier.functions if earlier else None),
    )


def _native_environment(libc: ctypes.CDLL) -> list[bytes]:
    """The environment as native code and child processes see it, which `os.environ` need not."""
    entries, found = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ"), list[bytes]()
    while entries and (entry := entries[len(found)]) is not None:
        found.append(entry)
    return found


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
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)


def _interpreter(libc: ctypes.CDLL) -> object:
    """What Python and the floating-point unit are set to, which names all code finds, and where chance stands."""
    hooks = [sys.stdin, sys.stdout, sys.stderr, sys.excepthook, sys.displayhook, sys.unraisablehook]
    hooks += [threading.excepthook, sys.gettrace(), sys.getprofile()]
    digits = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0
    numbers = (sys.getrecursionlimit(), sys.getswitchinterval(), digits, gc.isenabled(), gc.get_threshold())
    rounding = libc.fegetround() if hasattr(libc, "fegetround") else 0
    subnormals = (_LEAST * 1.0, sys.float_info.min / 2)  # libraries may have them flushed to zero
    return ([*map(_Same, hooks)], numbers, rounding, subnormals, [*vars(builtins)], random.getstate())


def _signals() -> object:
    """Python's handlers (compilers have native ones, for their last words), what is blocked, timers."""
    handlers = [_Same(signal.getsignal(each)) for each in range(1, signal.NSIG)]
    timers = [signal.getitimer(each) for each in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    return handlers, signal.pthread_sigmask(signal.SIG_BLOCK, ()), timers


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


def _read_functions(earlier: _Functions | None) -> _Functions:
    if earlier and earlier.stand():
        return earlier
    modules = list(sys.modules.values())
    found = {name: (place, names) for name, place, names in _functions(earlier.by_name if earlier else {})}
    places = [place for place, _ in found.values()]
    return _Functions({name: names for name, (_, names) in found.items()}, modules, places, _in_a_row(places))


def _functions(earlier: Mapping[str, _Names]) -> Iterator[tuple[str, _Place, _Names]]:
    """What the watched packages define, by module, and what their classes do."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _WATCHED and isinstance(module, types.ModuleType):
            names = _names(vars(module), earlier.get(name), name)
            yield name, vars(module), names
            for key, each in names.classes:
                yield key, vars(each), _names(vars(each), earlier.get(key), "")


def _names(now: Mapping[str, object], earlier: _Names | None, module: str) -> _Names:
    if earlier and earlier.stand_in(now):
        return earlier
    names, values = list(now), list(now.values())
    types = [(name, each) for name, each in zip(names, values, strict=True) if isinstance(each, type)]
    own = tuple((f"{module}.{name}", each) for name, each in types if each.__module__ == module)
    return _Names(names, values, own)
