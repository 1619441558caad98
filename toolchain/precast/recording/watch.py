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
class _Ran:
    """One launch that ran; `grid` only where it is to be noted."""

    kernel: _Kernel
    grid: _Grid | None
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


@dataclass
class _Call:
    """One call of a tuner or another wrapper while it runs, with the launches of its function so far."""

    wrapper: Any
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    sampled: bool
    kernels: dict[int, _Kernel] = field(default_factory=dict)
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
    """Notes all that this process launches through Triton, from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notebook(folder)
        self._kernels: dict[int, _Kernel] = {}
        self._counts: dict[int, int] = {}
        self._calls = threading.local()
        self._active = False
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction, KernelInterface

        self._active = True
        self._put_on(JITFunction, "run", self._run_function)
        self._put_on(Autotuner, "run", self._run_wrapper)
        self._put_on(KernelInterface, "__getitem__", functools.partial(self._get_wrapper, JITFunction))
        self._put_on(CompiledKernel, "__getitem__", self._get_compiled)

    def stop(self) -> None:
        """Notes no more. Triton has its own ways back, but where somebody else has put theirs on top."""
        self._active = False
        for undo in self._undo:
            undo()

    def _put_on(self, owner: Any, name: str, act: Callable[..., Any]) -> None:
        below = getattr(owner, name)

        @functools.wraps(below)
        def watched(self_: Any, *arguments: Any, **keywords: Any) -> Any:
            if self._active:
                return act(below, self_, arguments, keywords)
            return below(self_, *arguments, **keywords)

        had = name in vars(owner)

        def undo() -> None:
            if vars(owner).get(name) is watched:
                setattr(owner, name, below) if had else delattr(owner, name)

        setattr(owner, name, watched)
        self._undo.append(undo)

    def _run_function(self, below: Any, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """`JITFunction.run`."""
        if keywords.get("warmup"):
            kernel = below(function, *arguments, **keywords)
            if not hasattr(type(kernel), "result"):  # one that is still being compiled is not waited for
                self._meet(kernel, function, keywords)
            return kernel
        call = self._call_of(function)
        grid = _Grid(keywords["grid"]) if (call.sampled if call else self._is_sampled(function)) else None
        if grid is not None and callable(keywords["grid"]):
            keywords = {**keywords, "grid": grid}
        kernel = below(function, *arguments, **keywords)
        met = self._meet(kernel, function, keywords)
        if met is None:
            return kernel
        if call is not None:
            call.kernels[id(kernel)] = met
            call.last = _Ran(met, grid, arguments, keywords)
        elif grid is not None or not met.noted:
            self._note(_Ran(met, grid, arguments, keywords), None)
        return kernel

    @property
    def _running(self) -> list[_Call]:
        """The calls of tuners and wrappers that run in this thread, the innermost last."""
        found: list[_Call] | None = getattr(self._calls, "running", None)
        if found is None:
            found = self._calls.running = []
        return found

    def _call_of(self, function: Any) -> _Call | None:
        """The outermost call that is for a function."""
        return next((each for each in self._running if leads_down(each.wrapper, function)), None)

    def _is_sampled(self, function: Any) -> bool:
        """Whether a launch's grid is noted: the first ones since a kernel was new, later ones ever more seldom."""
        count = self._counts[id(function)] = self._counts.get(id(function), -1) + 1
        return count < _FIRST_SAMPLES or not count & (count - 1)

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

    def _note(self, ran: _Ran, tuned: Tuned | None) -> None:
        met, key = ran.kernel, tuned.key if tuned else ""
        if met.launch is None:
            return
        with self._telling(met.function):
            if key not in met.noted:
                met.noted.add(key)
                self._notes.write(replace(met.launch, tuned=tuned))
            if ran.grid is not None:
                values = find_integers(bind(met.function, ran.arguments, ran.keywords))
                sizes = tuple(map(int, ran.grid.sizes))
                self._notes.write(Sample(met.launch.function, values, sizes, ran.grid.read))

    def _run_wrapper(self, below: Any, wrapper: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """`run` of a tuner, or what `wrapper[grid]` gives."""
        calls = self._running
        if keywords.get("warmup") or any(each.wrapper is wrapper for each in calls):
            return below(wrapper, *arguments, **keywords)
        call = _Call(wrapper, arguments, keywords, self._is_sampled(wrapper))
        calls.append(call)
        try:
            result = below(wrapper, *arguments, **keywords)
        finally:
            calls.pop()
        if call.last is not None and (call.sampled or len(call.kernels) > 1 or not call.last.kernel.noted):
            with self._telling(call.last.kernel.function):
                self._note(call.last, describe_choice(call))
        return result

    def _get_wrapper(
        self, function_type: type, below: Any, wrapper: Any, arguments: tuple[Any, ...], _: dict[str, Any]
    ) -> Any:
        """`KernelInterface.__getitem__`: a library's own tuner has a `run` of its own, which is only seen from here."""
        launch = below(wrapper, *arguments)
        if isinstance(wrapper, function_type):
            return launch

        def run(_: Any, *given: Any, **keywords: Any) -> Any:
            return launch(*given, **keywords)

        return lambda *given, **keywords: self._run_wrapper(run, wrapper, given, keywords)

    def _get_compiled(self, below: Any, kernel: Any, arguments: tuple[Any, ...], _: dict[str, Any]) -> Any:
        """`CompiledKernel.__getitem__`: what a call or a warm-up returned is launched by itself."""
        launch = below(kernel, *arguments)

        def launched(*given: Any, **keywords: Any) -> Any:
            result = launch(*given, **keywords)
            function = getattr(kernel.src, "fn", None)
            met = self._meet(kernel, function, {}) if hasattr(function, "params") else None
            if met is not None and not met.noted:
                self._note(_Ran(met, None, given, {}), None)
            return result

        return launched


def leads_down(wrapper: Any, function: Any) -> bool:
    """Whether a wrapper's chain of `fn` ends in the function."""
    while wrapper is not None and wrapper is not function:
        wrapper = getattr(wrapper, "fn", None)
    return wrapper is function


def describe_choice(call: _Call) -> Tuned | None:
    """For what a tuner chose, and what else it measured; None for a wrapper that chooses nothing."""
    tuner = call.wrapper
    while tuner is not None and not hasattr(tuner, "configs"):
        tuner = getattr(tuner, "fn", None)
    if tuner is None:
        return None
    values = {**dict(zip(tuner.arg_names, call.arguments, strict=False)), **call.keywords}
    key = [f"{name}={values[name]}" for name in getattr(tuner, "keys", ()) if name in values]
    types = [str(value.dtype) for value in values.values() if hasattr(value, "dtype")]
    launches = [each.launch for each in call.kernels.values() if each.launch is not None]
    return Tuned(" ".join([*key, *types]), tuple((each.constants, each.options) for each in launches))
