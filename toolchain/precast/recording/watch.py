"""Watches Triton launch: stands in for its ways to launch, lets each run as ever, and notes what ran.

In: Triton, imported by the program. Out: notes. A launch that a tuner measures is none of the program's: of all that
happens within one call of a tuner, the last launch is what it chose.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class _Wrapped:
    """What wraps a function: held, so that its id stays its own."""

    interface: Any
    function: Any
    has_own_tuner: bool  # one with a `run` that is not Triton's


@dataclass(slots=True)
class _Ran:
    """One launch that ran; `grid` only where it is to be noted."""

    kernel: Any
    grid: _Grid | None
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


@dataclass(slots=True)
class _Call:
    """One call of a tuner while it runs, with the kernels of its function that were launched, and the last launch."""

    tuner: Any
    function: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    sampled: bool
    ran: dict[int, _Ran] = field(default_factory=dict)  # a launch of each kernel
    last: _Ran | None = None


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
        self._wrapped: dict[int, _Wrapped] = {}
        self._local = threading.local()
        self._active = False
        self._tuning: list[None] = []  # one for each call of a tuner that runs, in any thread
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction, KernelInterface

        self._active = True
        self._put_on(JITFunction, "run", self._watch_function)
        self._put_on(Autotuner, "run", self._watch_tuner)
        self._put_on(KernelInterface, "__getitem__", self._watch_interface)
        self._put_on(CompiledKernel, "__getitem__", self._watch_compiled)

    def stop(self) -> None:
        """Notes no more. Triton has its own ways back, but where somebody else has put theirs on top."""
        self._active = False
        for undo in self._undo:
            undo()

    def _put_on(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        below, had = getattr(owner, name), name in vars(owner)
        watched = functools.wraps(below)(make(below))

        def undo() -> None:
            if vars(owner).get(name) is watched:
                setattr(owner, name, below) if had else delattr(owner, name)

        setattr(owner, name, watched)
        self._undo.append(undo)

    def _watch_function(self, below: Any) -> Any:
        """In place of `JITFunction.run`."""
        kernels, counts = self._kernels, self._counts

        def run(function: Any, *arguments: Any, **keywords: Any) -> Any:
            if not self._active or self._tuning or keywords.get("warmup"):
                return self._run_function(below, function, arguments, keywords)
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
            call.ran[id(kernel)] = call.last = ran
        return kernel

    def _watch_tuner(self, below: Any) -> Any:
        """In place of `Autotuner.run`."""

        def run(tuner: Any, *arguments: Any, **keywords: Any) -> Any:
            return self._run_tuner(below, tuner, arguments, keywords)

        self._plain_run = run
        return run

    def _watch_interface(self, below: Any) -> Any:
        """In place of `KernelInterface.__getitem__`, for a tuner of a library's own with a `run` of its own."""

        def get(interface: Any, grid: Any) -> Any:
            launch = below(interface, grid)
            if hasattr(interface, "params") or not self._active or not self._wrapped_by(interface).has_own_tuner:
                return launch
            return lambda *arguments, **keywords: self._run_tuner(
                lambda _, *given, **named: launch(*given, **named), interface, arguments, keywords
            )

        return get

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
        """The outermost call of a tuner of the function that runs in this thread."""
        for call in getattr(self._local, "calls", ()):
            if call.function is function:
                return call  # type: ignore[no-any-return]
        return None

    def _is_sampled(self, function: Any) -> bool:
        """Whether a launch's grid is noted: the first ones since a kernel was new, later ones ever more seldom."""
        count = self._counts[id(function)] = self._counts.get(id(function), -1) + 1
        return count < _FIRST_SAMPLES or not count & (count - 1)

    def _wrapped_by(self, interface: Any) -> _Wrapped:
        found = self._wrapped.get(id(interface))
        if found is None:
            chain = chain_of(interface)
            own = any(hasattr(each, "configs") and type(each).run is not self._plain_run for each in chain)
            found = self._wrapped[id(interface)] = _Wrapped(interface, chain[-1], own)
        return found

    def _run_tuner(self, below: Any, tuner: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """One call of a tuner: what it launched last is what it chose."""
        if not self._active or keywords.get("warmup"):
            return below(tuner, *arguments, **keywords)
        function = self._wrapped_by(tuner).function
        calls = self._local.__dict__.setdefault("calls", [])
        if calls and self._call_of(function) is not None:
            return below(tuner, *arguments, **keywords)
        call = _Call(tuner, function, arguments, keywords, self._is_sampled(tuner))
        calls.append(call)
        self._tuning.append(None)
        try:
            result = below(tuner, *arguments, **keywords)
        finally:
            self._tuning.pop()
            calls.pop()
        if call.last is not None and (call.sampled or len(call.ran) > 1 or id(call.last.kernel) not in self._kernels):
            self._note(function, call.last, call)
        return result

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

    def _note(self, function: Any, ran: _Ran, call: _Call | None) -> None:
        """Notes a launch, unless the same was noted; `call` is the tuner's that chose it."""
        with self._telling(function):
            met = self._meet(ran.kernel, function, ran.keywords)
            if met is None or met.launch is None:
                return
            tuned = self._describe_choice(call) if call else None
            key = tuned.key if tuned else ""
            if key not in met.noted:
                met.noted.add(key)
                self._notes.write(replace(met.launch, tuned=tuned))
            if ran.grid is not None:
                values = find_integers(bind(function, ran.arguments, ran.keywords))
                self._notes.write(Sample(met.launch.function, values, tuple(map(int, ran.grid.sizes)), ran.grid.read))

    def _describe_choice(self, call: _Call) -> Tuned:
        """For what a tuner chose, and what it measured."""
        tuner = next((each for each in chain_of(call.tuner) if hasattr(each, "configs")), call.tuner)
        values = {**dict(zip(tuner.arg_names, call.arguments, strict=False)), **call.keywords}
        key = [f"{name}={values[name]}" for name in getattr(tuner, "keys", ()) if name in values]
        types = [str(value.dtype) for value in values.values() if hasattr(value, "dtype")]
        met = [self._meet(ran.kernel, call.function, ran.keywords) for ran in call.ran.values()]
        launches = [each.launch for each in met if each is not None and each.launch is not None]
        return Tuned(" ".join([*key, *types]), tuple((each.constants, each.options) for each in launches))


def chain_of(interface: Any) -> list[Any]:
    """What wraps a jit function, from the outside in, with the function as the last."""
    chain = [interface]
    while not hasattr(chain[-1], "params") and getattr(chain[-1], "fn", None) is not None:
        chain.append(chain[-1].fn)
    return chain
