"""Watches Triton launch: stands in for its ways to launch, lets each run as ever, and notes what ran.

In: Triton, imported by the program. Out: notes. A launch that a tuner measures is none of the program's: of all that
happens within one call of a tuner, the last launch is what it chose.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from precast.launch.package.calls import bind
from precast.launch.package.specs import Unstated
from precast.recording.describing import describe_function, describe_launch, find_integers, find_lost_hints
from precast.recording.notes import Launch, Notebook, Sample, Tuned, Unsaid

_FIRST_SAMPLES = 64  # launches of a function whose grids are noted; later ones ever more seldom
_NO_OPTIONS = frozenset({"grid", "warmup"})


@dataclass
class _Kernel:
    """A compiled kernel that was met; `launch` is None where no spec can say it."""

    kernel: Any  # held, so that its id stays its own
    function: Any
    launch: Launch | None
    noted: set[str] = field(default_factory=set)  # for which keys of a tuner; "" without one


class _Ran(NamedTuple):
    """One launch that ran; `grid` only where it is to be noted."""

    kernel: Any
    grid: _Grid | None
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


class _Call:
    """What a tuner's call launches of its function; one object for all calls of a tuner in a thread."""

    __slots__ = ("cached", "choices", "function", "ran", "sampled", "tuner")

    def __init__(self, tuner: Any, function: Any) -> None:
        self.tuner = tuner  # held, so that its id stays its own
        self.function = function
        self.sampled = False
        self.ran: list[tuple[Any, _Grid | None, tuple[Any, ...], Mapping[str, Any]]] = []  # as in `_Ran`
        choices = next((each for each in chain_of(tuner) if hasattr(each, "configs")), tuner)
        self.choices: Sized = getattr(choices, "cache", ())
        self.cached = -1  # so many choices there were after the call before


class _Choice(NamedTuple):
    """A call of a tuner that chose, and all that it launched."""

    tuner: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    ran: list[Any]


class _Thread(threading.local):
    """The calls of tuners that run in this thread, outermost first, and those of all tuners that it has called."""

    def __init__(self) -> None:
        self.running: list[_Call] = []
        self.calls: dict[int, _Call] = {}


class Reads(dict[str, Any]):
    """A launch's arguments as a grid's function gets them; notes which of them it reads."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


class _Grid:
    """A grid, or a function of one, that keeps what it came to."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self.read: tuple[str, ...] = ()
        self.sizes = () if callable(grid) else grid

    def __call__(self, values: Mapping[str, Any]) -> Any:
        reads = Reads(values)
        self.sizes = self._grid(reads)
        self.read = tuple(sorted(reads.read))
        return self.sizes


class Watch:
    """Notes all that this process launches through Triton, from `start` to `stop`.

    What stands in for Triton's own is short where a launch is like one before it: it runs at every launch.
    """

    def __init__(self, folder: Path) -> None:
        self._notes = Notebook(folder)
        self._kernels: dict[int, _Kernel] = {}
        self._counts: dict[int, int] = {}
        self._plain: dict[int, Any] = {}  # wrapped functions without a tuner of a library's own
        self._thread = _Thread()
        self._active = False
        self._tuning: list[None] = []  # one for each call of a tuner that runs, in any thread
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction, KernelInterface

        self._active = True
        self._put_on(JITFunction, "run", self._watch_function)
        self._put_on(JITFunction, "__getitem__", lambda below: below)  # it is no tuner: nothing is to be looked at
        self._put_on(Autotuner, "run", self._watch_tuner)
        self._plain_run = Autotuner.run
        self._put_on(KernelInterface, "__getitem__", self._watch_interface)
        self._put_on(CompiledKernel, "__getitem__", self._watch_compiled)

    def stop(self) -> None:
        """Notes no more. Triton has its own ways back, but where somebody else has put theirs on top."""
        self._active = False
        for undo in self._undo:
            undo()

    def _put_on(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        below, had = getattr(owner, name), name in vars(owner)
        made = make(below)
        watched = made if made is below else functools.wraps(below)(made)

        def undo() -> None:
            if vars(owner).get(name) is watched:
                setattr(owner, name, below) if had else delattr(owner, name)

        setattr(owner, name, watched)
        self._undo.append(undo)

    def _watch_function(self, below: Any) -> Any:
        """In place of `JITFunction.run`."""
        kernels, counts, tuning, thread = self._kernels, self._counts, self._tuning, self._thread

        def run(function: Any, *arguments: Any, **keywords: Any) -> Any:
            if tuning or not self._active or keywords.get("warmup"):
                call = thread.running[-1] if thread.running else None
                if call is None or call.sampled or call.function is not function or keywords.get("warmup"):
                    return self._run_function(below, function, arguments, keywords)
                kernel = below(function, *arguments, **keywords)
                call.ran.append((kernel, None, arguments, keywords))
                return kernel
            count = counts[id(function)] = counts.get(id(function), -1) + 1
            if count < _FIRST_SAMPLES or not count & (count - 1):
                return self._run_function(below, function, arguments, keywords, sampled=True)
            kernel = below(function, *arguments, **keywords)
            if id(kernel) not in kernels:
                self._note(function, _Ran(kernel, None, arguments, keywords), None)
            return kernel

        return run

    def _run_function(
        self, below: Any, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], sampled: bool = False
    ) -> Any:
        """A launch that may be of a tuner, or whose grid is to be noted."""
        if not self._active or keywords.get("warmup"):
            return self._warm_up(below(function, *arguments, **keywords), function, keywords)
        call = self._call_of(function)
        grid, watched = None, keywords
        if sampled or (call is not None and call.sampled):
            grid = _Grid(keywords["grid"])
            watched = {**keywords, "grid": grid} if callable(keywords["grid"]) else keywords
        kernel = below(function, *arguments, **watched)
        ran = _Ran(kernel, grid, arguments, keywords)
        if call is None:
            self._note(function, ran, None)
        else:
            call.ran.append(ran)
        return kernel

    def _watch_tuner(self, below: Any) -> Any:
        """In place of `Autotuner.run`, or of what a library's own tuner launches with."""
        kernels, counts, tuning, thread = self._kernels, self._counts, self._tuning, self._thread

        def run(tuner: Any, *arguments: Any, **keywords: Any) -> Any:
            call = thread.calls.get(id(tuner)) or self._meet_tuner(tuner)
            if not self._active or keywords.get("warmup") or (thread.running and self._call_of(call.function)):
                return below(tuner, *arguments, **keywords)
            count = counts[id(tuner)] = counts.get(id(tuner), -1) + 1
            call.sampled = count < _FIRST_SAMPLES or not count & (count - 1)
            ran = call.ran = []
            thread.running.append(call)
            tuning.append(None)
            try:
                result = below(tuner, *arguments, **keywords)
            finally:
                tuning.pop()
                thread.running.pop()
            if len(ran) != 1 or call.sampled or len(call.choices) != call.cached or id(ran[0][0]) not in kernels:
                self._note_choice(call, ran, arguments, keywords)
            return result

        return run

    def _meet_tuner(self, tuner: Any) -> _Call:
        call = self._thread.calls[id(tuner)] = _Call(tuner, chain_of(tuner)[-1])
        return call

    def _watch_interface(self, below: Any) -> Any:
        """In place of `KernelInterface.__getitem__`, for a tuner of a library's own with a `run` of its own."""
        plain = self._plain

        def get(interface: Any, grid: Any) -> Any:
            launch = below(interface, grid)
            if id(interface) in plain or not self._active or not self._has_own_tuner(interface):
                return launch
            watched = self._watch_tuner(lambda _, *given, **named: launch(*given, **named))
            return functools.partial(watched, interface)

        return get

    def _has_own_tuner(self, interface: Any) -> bool:
        """Whether what wraps a function has a tuner with a `run` that is not Triton's."""
        tuners = [each for each in chain_of(interface) if hasattr(each, "configs")]
        if any(type(each).run is not self._plain_run for each in tuners):
            return True
        self._plain[id(interface)] = interface  # held, so that its id stays its own
        return False

    def _watch_compiled(self, below: Any) -> Any:
        """In place of `CompiledKernel.__getitem__`: what a call or a warm-up returned is launched by itself."""

        def get(kernel: Any, grid: Any) -> Any:
            launch = below(kernel, grid)
            function = getattr(kernel.src, "fn", None)
            if not self._active or not hasattr(function, "params"):
                return launch

            def launched(*arguments: Any, **keywords: Any) -> Any:
                result = launch(*arguments, **keywords)
                self._note(function, _Ran(kernel, None, arguments, {}), None)
                return result

            return launched

        return get

    def _call_of(self, function: Any) -> _Call | None:
        """The call of a tuner of the function that runs in this thread."""
        return next((call for call in self._thread.running if call.function is function), None)

    def _note_choice(
        self, call: _Call, ran: list[Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> None:
        """What a tuner's call launched last is what it chose."""
        call.cached = len(call.choices)
        if ran:
            self._note(call.function, _Ran(*ran[-1]), _Choice(call.tuner, arguments, keywords, ran))

    def _warm_up(self, kernel: Any, function: Any, keywords: Mapping[str, Any]) -> Any:
        """A kernel that was compiled and not launched; one that is still being compiled is not waited for."""
        if self._active and not hasattr(type(kernel), "result"):
            self._meet(kernel, function, keywords)
        return kernel

    def _meet(self, kernel: Any, function: Any, keywords: Mapping[str, Any]) -> _Kernel | None:
        """A kernel with what it is a variant of; None where the call was served, or a hook prevented it."""
        met = self._kernels.get(id(kernel))
        if met is not None or kernel is None or not hasattr(kernel, "src"):
            return met
        launch = None
        with self._telling(function):
            named = {name: value for name, value in keywords.items() if name not in _NO_OPTIONS and value is not None}
            launch = describe_launch(kernel, function, named)
            for name in find_lost_hints(kernel):
                reason = f"that parts of the tuple `{name}` are multiples of 16: a spec has no hints within tuples"
                self._notes.write(Unsaid(launch.function.shown, reason))
        met = self._kernels[id(kernel)] = _Kernel(kernel, function, launch)
        self._counts.clear()
        return met

    @contextlib.contextmanager
    def _telling(self, function: Any) -> Iterator[None]:
        """What goes wrong in recording is noted, and never the program's."""
        try:
            yield
        except Unstated as error:
            self._notes.write(Unsaid(describe_function(function).shown, str(error)))
        except Exception as error:
            name = getattr(getattr(function, "fn", None), "__qualname__", "a kernel")
            self._notes.write(Unsaid(name, f"recording it failed: {type(error).__name__}: {error}"))

    def _note(self, function: Any, ran: _Ran, choice: _Choice | None) -> None:
        """Notes a launch, unless the same was noted; `choice` is the tuner's that made it."""
        with self._telling(function):
            met = self._meet(ran.kernel, function, ran.keywords)
            if met is None or met.launch is None:
                return
            tuned = self._describe_choice(function, choice) if choice else None
            key = tuned.key if tuned else ""
            if key not in met.noted:
                met.noted.add(key)
                self._notes.write(replace(met.launch, tuned=tuned))
            if ran.grid is not None:
                values = find_integers(bind(function, ran.arguments, ran.keywords))
                self._notes.write(Sample(met.launch.function, values, tuple(map(int, ran.grid.sizes)), ran.grid.read))

    def _describe_choice(self, function: Any, choice: _Choice) -> Tuned:
        """For what a tuner chose, and what it measured."""
        tuner = next((each for each in chain_of(choice.tuner) if hasattr(each, "configs")), choice.tuner)
        values = {**dict(zip(tuner.arg_names, choice.arguments, strict=False)), **choice.keywords}
        key = [f"{name}={values[name]}" for name in getattr(tuner, "keys", ()) if name in values]
        types = [str(value.dtype) for value in values.values() if hasattr(value, "dtype")]
        kernels = {id(kernel): (kernel, keywords) for kernel, _, _, keywords in choice.ran}
        met = [self._meet(kernel, function, keywords) for kernel, keywords in kernels.values()]
        launches = [each.launch for each in met if each is not None and each.launch is not None]
        given = {each.name for each in function.params if not each.is_constexpr}
        sizes = {name: value for name, value in find_integers(values).items() if name in given.intersection(tuner.keys)}
        return Tuned(" ".join([*key, *types]), tuple((each.constants, each.options) for each in launches), sizes)


def chain_of(interface: Any) -> list[Any]:
    """What wraps a jit function, from the outside in, with the function as the last."""
    chain = [interface]
    while not hasattr(chain[-1], "params") and getattr(chain[-1], "fn", None) is not None:
        chain.append(chain[-1].fn)
    return chain
