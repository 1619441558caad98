"""Watches Triton launch: stands in for its ways to launch, lets each run as ever, and notes what ran.

In: Triton, imported by the program. Out: notes. A launch that a tuner measures is none of the program's: of all that
happens within one call of a tuner, the last launch is what it chose. The extension `_watch` calls `Watch` where a
launch is like none before; all others it counts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from precast.launch.package.calls import bind
from precast.launch.package.specs import Unstated
from precast.recording import _watch  # type: ignore[attr-defined]  # built from C
from precast.recording.describing import (
    describe_arguments,
    describe_function,
    describe_launch,
    find_integers,
    find_lost_hints,
    named_by,
)
from precast.recording.no_device.assumed import find_assumed
from precast.recording.notes import Launch, Notebook, Problem, Sample, Tuned, Unsaid

_NO_OPTIONS = frozenset({"grid", "warmup"})
_NOTHING = -1  # the number of a launch that is not counted


@dataclass
class _Kernel:
    """A compiled kernel that was met; `launch` is None where no spec can say it."""

    kernel: Any  # held, so that its id stays its own
    function: Any
    launch: Launch | None
    noted: set[str] = field(default_factory=set)  # for which keys of a tuner; "" without one


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


# A launch as the extension hands it over: the compiled kernel, its grid where it was looked at, arguments, keywords.
_Ran = tuple[Any, _Grid | None, tuple[Any, ...], Mapping[str, Any] | None]


class Watch:
    """Notes all that this process launches through Triton, from `start` to `stop`.

    What has no underscore the extension calls, with what it is to note; it must not raise.
    """

    def __init__(self, folder: Path, absent: str = "") -> None:
        self._notes = Notebook(folder)
        self._absent = absent  # the target of a device that is not there: nothing is measured, and values are assumed
        self._kernels: dict[int, _Kernel] = {}
        self._problems: list[Problem] = []
        self._undo: list[Callable[[], None]] = []
        self._core: Any = None

    def start(self) -> None:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction, KernelInterface

        if self._core is None:
            self._core = _watch.watch(self, _descriptor_type())
            os.register_at_fork(after_in_child=self._core.forget_counts)
        self._core.set_active(True)
        atexit.register(self._tell_all)
        self._put_on(JITFunction, "run", "function")
        self._put_on(Autotuner, "run", "tuner")
        self._plain_run = Autotuner.run
        for each in (JITFunction, Autotuner):  # whose `run` is watched: nothing else is to be looked at
            self._put_on(each, "__getitem__", "")
        self._watch_tuners_of(Autotuner)
        self._put_on(KernelInterface, "__getitem__", "get")
        self._put_on(CompiledKernel, "__getitem__", self._watch_compiled)

    def stop(self) -> None:
        """Notes no more. Triton has its own ways back, but where somebody else has put theirs on top."""
        self._core.set_active(False)
        atexit.unregister(self._tell_all)
        for undo in self._undo:
            undo()
        self._undo.clear()
        self._tell_all()

    def _tell_all(self) -> None:
        for number, count in sorted(self._core.counts()):
            self.tell(number, count)

    def _put_on(self, owner: Any, name: str, kind: str | Callable[[Any], Any]) -> None:
        """In place of a method what the extension has for its kind, what is made from it, or with "" the same."""
        below, had = getattr(owner, name), name in vars(owner)
        if isinstance(kind, str):
            watched = self._core.stand_in(kind, below) if kind else below
        else:
            watched = functools.wraps(below)(kind(below))

        def undo() -> None:
            if vars(owner).get(name) is watched:
                setattr(owner, name, below) if had else delattr(owner, name)

        setattr(owner, name, watched)
        self._undo.append(undo)

    def _watch_tuners_of(self, tuner: Any) -> None:
        """Looks at calls of libraries' own tuners, those too whose classes are yet to come."""

        plain = tuner.__getitem__

        def watch(kind: Any) -> None:
            if kind.run is not self._plain_run and kind.__getitem__ is plain:
                self._put_on(kind, "__getitem__", "get")

        def begin_class(kind: Any, /, **named: Any) -> None:
            super(tuner, kind).__init_subclass__(**named)
            watch(kind)

        kinds = list(tuner.__subclasses__())
        for each in kinds:
            watch(each)
            kinds += each.__subclasses__()
        tuner.__init_subclass__ = hook = classmethod(begin_class)

        def undo() -> None:
            if vars(tuner).get("__init_subclass__") is hook:
                del tuner.__init_subclass__

        self._undo.append(undo)

    def sample(self, below: Any, function: Any, arguments: tuple[Any, ...], keywords: Any) -> tuple[Any, _Grid]:
        """Launches as ever, with a grid that is looked at. What the launch raises is the program's."""
        given = (keywords or {}).get("grid")
        grid = _Grid(given)
        watched = {**keywords, "grid": grid} if callable(given) else keywords or {}
        return below(function, *arguments, **watched), grid

    def note(self, launch: tuple[Any, Any, _Grid | None, tuple[Any, ...], Any], is_new: bool) -> int:
        """Notes a launch without a tuner; the number that it is counted by."""
        function, kernel, grid, arguments, keywords = launch
        return self._note(function, (kernel, grid, arguments, keywords), None, is_new)

    def note_choice(self, call: tuple[Any, Any, list[_Ran], tuple[Any, ...], Any], is_new: bool) -> int:
        """Notes what a tuner's call launched last: that is what it chose. Without a device it does not, and all are."""
        tuner, function, ran, arguments, keywords = call
        tuned = None
        with self._telling(function):
            tuned = self._describe_choice(function, tuner, ran, arguments, keywords or {})
        for candidate in ran[:-1] if self._absent else ():
            self._note(function, candidate, None, False)
        return self._note(function, ran[-1], tuned, is_new) if tuned else _NOTHING

    def tell(self, number: int, count: int) -> None:
        """Notes how many launches there were of one kind."""
        problem = self._problems[number]
        with self._telling(None):
            self._notes.write(replace(problem, number=number, count=count))

    def meet_tuner(self, tuner: Any) -> tuple[Any, Any]:
        """The function that a tuner launches, and the choices that it keeps."""
        return chain_of(tuner)[-1], getattr(_tuner_of(tuner), "cache", ())

    def watch_own(self, interface: Any, launch: Any) -> Any:
        """A call as it is, or watched where a tuner with a `run` of its own is in what wraps the function."""
        tuners = [each for each in chain_of(interface) if hasattr(each, "configs")]
        if all(type(each).run is self._plain_run for each in tuners):
            return launch
        watched = self._core.stand_in("tuner", lambda _, *given, **named: launch(*given, **named))
        return functools.partial(watched, interface)

    def warm_up(self, kernel: Any, function: Any, keywords: Mapping[str, Any]) -> None:
        """A kernel that was compiled and not launched; one that is still being compiled is not waited for."""
        if not hasattr(type(kernel), "result"):
            self._meet(kernel, function, keywords)

    def _watch_compiled(self, below: Any) -> Any:
        """In place of `CompiledKernel.__getitem__`: what a call or a warm-up returned is launched by itself."""

        def get(kernel: Any, grid: Any) -> Any:
            launch = below(kernel, grid)
            function = getattr(kernel.src, "fn", None)
            if not hasattr(function, "params"):
                return launch

            def launched(*arguments: Any, **keywords: Any) -> Any:
                result = launch(*arguments, **keywords)
                self._note(function, (kernel, None, arguments, {}), None, False)
                return result

            return launched

        return get

    def _meet(self, kernel: Any, function: Any, keywords: Mapping[str, Any]) -> _Kernel | None:
        """A kernel with what it is a variant of; None where the call was served, or a hook prevented it."""
        met = self._kernels.get(id(kernel))
        if met is not None or kernel is None or not hasattr(kernel, "src"):
            return met
        launch = None
        with self._telling(function):
            named = {name: value for name, value in _without_launch(keywords).items() if value is not None}
            launch = describe_launch(kernel, function, named)
            for name in find_lost_hints(kernel):
                reason = f"that parts of the tuple `{name}` are multiples of 16: a spec has no hints within tuples"
                self._notes.write(Unsaid(launch.function.shown, reason))
        met = self._kernels[id(kernel)] = _Kernel(kernel, function, launch)
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

    def _note(self, function: Any, ran: _Ran, tuned: Tuned | None, is_new: bool) -> int:
        """Notes a launch, unless the same was noted; `tuned` where a tuner chose it."""
        kernel, grid, arguments, keywords = ran
        with self._telling(function):
            is_bound = self._absent or is_new or grid is not None
            values = bind(function, arguments, _without_launch(keywords)) if is_bound else {}
            assumed = self._check_assumed(function, values) if self._absent else frozenset()
            met = self._meet(kernel, function, keywords or {})
            if met is None or met.launch is None:
                return _NOTHING
            hints = tuple(each for each in met.launch.hints if named_by(each) not in assumed)
            launch = replace(met.launch, tuned=tuned, hints=hints, assumed=self._absent)
            noted = replace(launch, tuned=None) if self._absent else launch  # the tuner chose nothing
            key = noted.tuned.key if noted.tuned else ",".join(sorted(assumed))
            if key not in met.noted:
                met.noted.add(key)
                self._notes.write(noted)
            if assumed or (grid is None and not is_new):
                return _NOTHING
            if grid is not None:
                sizes = tuple(map(int, grid.sizes))
                sample = Sample(launch.function, find_integers(values), sizes, grid.read, launch.types)
                self._notes.write(sample)
            if is_new:
                self._problems.append(describe_arguments(launch, function, values))
                return len(self._problems) - 1
        return _NOTHING

    def _check_assumed(self, function: Any, values: Mapping[str, Any]) -> frozenset[str]:
        """The arguments whose values nobody knows, which are told; `Unstated` where one is a constexpr."""
        assumed = frozenset(find_assumed(values))
        for name in sorted(assumed):
            if any(each.name == name and each.is_constexpr for each in function.params):
                raise Unstated(f"constexpr `{name}` depends on values of a tensor, which only a device computes")
            reason = f"argument `{name}` depends on values of a tensor: what is recorded takes any number"
            self._notes.write(Unsaid(describe_function(function).shown, reason))
        return assumed

    def _describe_choice(
        self, function: Any, outer: Any, ran: list[_Ran], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Tuned:
        """For what a tuner chose, and what it measured."""
        tuner = _tuner_of(outer)
        values = {**dict(zip(tuner.arg_names, arguments, strict=False)), **keywords}
        keys = getattr(tuner, "keys", ())
        key = [f"{name}={values[name]}" for name in keys if name in values]
        types = [str(value.dtype) for value in values.values() if hasattr(value, "dtype")]
        kernels = {id(kernel): (kernel, named) for kernel, _, _, named in ran}
        met = [self._meet(kernel, function, named or {}) for kernel, named in kernels.values()]
        launches = [each.launch for each in met if each is not None and each.launch is not None]
        given = {each.name for each in function.params if not each.is_constexpr}
        sizes = {name: value for name, value in find_integers(values).items() if name in given.intersection(keys)}
        others = tuple((each.constants, each.options) for each in launches)
        return Tuned(" ".join([*key, *types]), others, sizes, _axes_of(tuner))


def _without_launch(keywords: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keywords without Triton's own, as which a kernel may have parameters that are given by place."""
    return {name: value for name, value in (keywords or {}).items() if name not in _NO_OPTIONS}


def _axes_of(tuner: Any) -> tuple[str, ...]:
    """What the configs of a tuner set to other values."""
    configs = [each.all_kwargs() for each in getattr(tuner, "configs", ())]
    names = dict.fromkeys(name for each in configs for name in each)
    return tuple(name for name in names if any(each.get(name) != configs[0].get(name) for each in configs))


def _descriptor_type() -> Any:
    """The type of tensor descriptors; None under a Triton without."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:
        return None
    return TensorDescriptor


def _tuner_of(interface: Any) -> Any:
    """What has the configs, of all that wraps a function."""
    return next((each for each in chain_of(interface) if hasattr(each, "configs")), interface)


def chain_of(interface: Any) -> list[Any]:
    """What wraps a jit function, from the outside in, with the function as the last."""
    chain = [interface]
    while not hasattr(chain[-1], "params") and getattr(chain[-1], "fn", None) is not None:
        chain.append(chain[-1].fn)
    return chain
