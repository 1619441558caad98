"""One problem of a kernel with every config: are the results the author's, and how long does each take.

In: an open kernel of a release, a device, a problem. Out: a time for each config, and why others have none. Goes into
candidates.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import truediv
from types import SimpleNamespace
from typing import Any

import numpy as np

from precast.tuning.devices import Device, DeviceFault, Timer
from precast.tuning.tensors import choose_pieces, find_difference, make_tensor

CLOSE = 1.03  # configs so near to the best one are timed again, in pairs with it
HOPELESS = 4.0  # one that takes so much longer in its first rounds is timed no more
SURE_ROUNDS = 2

Samples = dict[int, list[float]]  # seconds by config


@dataclass(frozen=True)
class Method:
    """How times are taken: rounds over all configs, what is in the cache, seconds of one sample."""

    rounds: int = 9
    cache: str = "warm"
    sample_s: float = 0.001


class NoRoom(Exception):
    """A problem whose arguments the device has no memory for."""


@dataclass
class Buffer:
    """A tensor on the device, with what it holds before a launch, there too where launches write to it."""

    kind: str
    address: int
    before: np.ndarray[Any, Any]
    elements: int
    copy: int = 0


class Case:
    """A problem with its arguments on the device."""

    def __init__(self, device: Device, kernel: Any, problem: Mapping[str, Any]) -> None:
        self._device = device
        self._kernel = kernel
        self._axes = problem["axes"]
        self._written: list[Buffer] = []
        self._buffers: list[Buffer] = []
        self._arguments = {
            name: self._place(number, each) for number, (name, each) in enumerate(problem["arguments"].items())
        }

    def _place(self, number: int, argument: Mapping[str, Any]) -> Any:
        if "value" in argument:
            return argument["value"]
        kind, shape = argument["type"], argument.get("shape")
        elements = int(np.prod(shape, dtype=np.int64)) if shape else argument["elements"]
        before = make_tensor(kind, elements, argument.get("below", 0), number)
        buffer = Buffer(kind, self._device.allocate(before), before, elements)
        self._buffers.append(buffer)
        if not shape:
            return buffer.address
        strides = [int(np.prod(shape[place + 1 :], dtype=np.int64)) for place in range(len(shape))]
        return SimpleNamespace(base=buffer.address, shape=shape, strides=strides)

    def launch(self, config: Mapping[str, Any], stream: int) -> None:
        """One launch of the unit that has the problem's axes and the config's."""
        self._kernel(**self._arguments, **self._axes, **config, stream=stream)

    def run_first(self, config: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """What a launch leaves where it writes, which is noted: from then on `run` begins with the same there."""
        self.launch(config, self._device.stream)
        found = [self._read(buffer) for buffer in self._buffers]
        pairs = list(zip(self._buffers, found, strict=True))
        written = [(buffer, after) for buffer, after in pairs if not np.array_equal(after, _pieces_of(buffer))]
        for buffer, _ in written:
            buffer.copy = self._device.allocate(buffer.before)
        self._written = [buffer for buffer, _ in written]
        return [after for _, after in written]

    def run(self, config: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """What a launch leaves there."""
        for buffer in self._written:
            self._device.copy(buffer.address, buffer.copy, len(buffer.before))
        self.launch(config, self._device.stream)
        return [self._read(buffer) for buffer in self._written]

    def _read(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        pieces = choose_pieces(buffer.kind, buffer.elements)
        found = [self._device.read(buffer.address + start, size) for start, size in pieces]
        return np.concatenate(found) if found else np.empty(0, np.uint8)

    def find_difference(self, expected: list[np.ndarray[Any, Any]], found: list[np.ndarray[Any, Any]]) -> str:
        """How the results differ by more than rounding does; "" where they do not."""
        triples = zip(self._written, expected, found, strict=True)
        return next(filter(None, (find_difference(each.kind, *results) for each, *results in triples)), "")


def _pieces_of(buffer: Buffer) -> np.ndarray[Any, Any]:
    """What was in a buffer, as far as it is compared."""
    pieces = choose_pieces(buffer.kind, buffer.elements)
    found = [buffer.before[start : start + size] for start, size in pieces]
    return np.concatenate(found) if found else np.empty(0, np.uint8)


def measure_problem(
    device: Device,
    kernel: Any,
    problem: Mapping[str, Any],
    configs: Sequence[Mapping[str, Any]],
    method: Method,
    author: int = 0,
) -> tuple[list[float | None], dict[str, str]]:
    """Microseconds of each config, None where it did not run or computed something else than the author's; and why.

    `NoRoom` where the device cannot take the problem, `DeviceFault` with the config that it does not survive."""
    faults: dict[str, str] = {}
    with placed(device, kernel, problem) as case:
        fitting = _compare(case, configs, author, faults)
        timers = {number: device.make_timer(partial(case.launch, configs[number]), method.sample_s, method.cache)
                  for number in fitting}  # fmt: skip
        try:
            times = time_in_rounds(timers, method.rounds)
        finally:
            for timer in timers.values():
                timer.close()
    return [_microseconds(times.get(number)) for number in range(len(configs))], faults


def format_config(config: Mapping[str, Any]) -> str:
    """`BLOCK=64, num_warps=4`."""
    return ", ".join(f"{name}={value}" for name, value in config.items())


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e6:.5g}")


@contextmanager
def placed(device: Device, kernel: Any, problem: Mapping[str, Any]) -> Iterator[Case]:
    """The problem's arguments on the device, as long as they are needed; `NoRoom` where it cannot take them."""
    try:
        try:
            case = Case(device, kernel, problem)
        except (DeviceFault, MemoryError) as error:
            raise NoRoom(str(error) or "there is not enough memory") from error
        yield case
    finally:
        device.free_all()


def _compare(case: Case, configs: Sequence[Mapping[str, Any]], author: int, faults: dict[str, str]) -> list[int]:
    """The configs that compute what the author's does. Where that one does not run, the first that does is held to."""
    fitting: list[int] = []
    expected: list[np.ndarray[Any, Any]] = []
    for number in (author, *(each for each in range(len(configs)) if each != author)):
        difference = ""
        try:
            if not fitting:
                expected = case.run_first(configs[number])
            else:
                found = case.find_difference(expected, case.run(configs[number]))
                difference = f"another result than the author's: {found}" if found else ""
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            difference = str(error)
        except DeviceFault as error:
            raise DeviceFault(f"while {format_config(configs[number])} ran: {error}") from error
        if difference:
            faults[str(number)] = difference
        else:
            fitting.append(number)
    return sorted(fitting)


def time_in_rounds(timers: Mapping[int, Timer], rounds: int) -> dict[int, float]:
    """Seconds by config: the median of rounds that take each config in turn, every second one backwards. Then those
    that are close to the best are timed against it, round by round, and have its time by the median of the ratios."""
    samples: Samples = {number: [] for number in timers}
    for taken in range(rounds if timers else 0):
        _take_round(timers, list(timers) if taken < SURE_ROUNDS else _hopeful(samples), samples, taken)
    times = {number: statistics.median(each) for number, each in samples.items()}
    best = min(times, key=lambda number: (times[number], number), default=0)
    close = [number for number, each in times.items() if each <= CLOSE * times[best]]
    if len(close) > 1:
        pairs: Samples = {number: [] for number in close}
        for taken in range(2 * rounds):
            _take_round(timers, close, pairs, taken)
        ratios = {number: map(truediv, each, pairs[best]) for number, each in pairs.items()}
        times.update({number: times[best] * statistics.median(each) for number, each in ratios.items()})
    return times


def _take_round(timers: Mapping[int, Timer], numbers: Sequence[int], samples: Samples, taken: int) -> None:
    for number in numbers[:: -1 if taken % 2 else 1]:
        samples[number].append(timers[number].sample())


def _hopeful(samples: Samples) -> list[int]:
    """Those that may still win, by their best sample."""
    best = min(map(min, samples.values()))
    return [number for number, each in samples.items() if min(each) <= HOPELESS * best]
