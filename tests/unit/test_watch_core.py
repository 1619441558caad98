"""What stands in for Triton's ways to launch: every launch runs as ever, is counted, and is noted where it is new."""

from __future__ import annotations

import os
import threading

import pytest

from precast.recording import _watch


class Descriptor:
    def __init__(self, *shape):
        self.shape = list(shape)


class Function:
    """As a jit function: a compiled kernel for each type of its first argument."""

    def __init__(self):
        self.kernels: dict[type, object] = {}

    def run(self, *arguments, grid=(1,), warmup=False, **keywords):
        if arguments and isinstance(arguments[0], Exception):
            raise arguments[0]
        if callable(grid):
            grid(keywords)
        return self.kernels.setdefault(type(arguments[0]), object()) if arguments else None


class Tuner:
    """As a tuner: the first call for a size launches each config, every one the last of them."""

    def __init__(self, function):
        self.function, self.cache = function, {}

    def run(self, *arguments, **keywords):
        if arguments[0] not in self.cache:
            self.cache[arguments[0]] = 1
            self.function.run(1.5, **keywords)
        return self.function.run(*arguments, **keywords)


class Notes:
    """As a `Watch`: what is called is listed, and launches that are new have numbers from 0."""

    def __init__(self):
        self.said: list[tuple] = []
        self.told: dict[int, list[int]] = {}

    def sample(self, below, function, arguments, keywords):
        return below(function, *arguments, **(keywords or {})), "grid"

    def _note(self, what, is_new):
        self.said.append(what)
        self.told[len(self.told)] = []
        return len(self.told) - 1 if is_new else -1

    def note(self, launch, is_new):
        return self._note(("note", launch[2], launch[3]), is_new)

    def note_choice(self, call, is_new):
        return self._note(("choice", len(call[2]), call[3]), is_new)

    def tell(self, number, count):
        self.told[number].append(count)

    def meet_tuner(self, tuner):
        return tuner.function, tuner.cache

    def warm_up(self, kernel, function, keywords):
        self.said.append(("warm",))

    def watch_own(self, interface, launch):
        return launch


@pytest.fixture
def watched(monkeypatch):
    notes = Notes()
    core = _watch.watch(notes, Descriptor)
    core.set_active(True)
    monkeypatch.setattr(Function, "run", core.stand_in("function", Function.run))
    monkeypatch.setattr(Tuner, "run", core.stand_in("tuner", Tuner.run))
    return core, notes


def counts(core) -> list[int]:
    return [count for _, count in sorted(core.counts())]


def test_each_size_is_noted_once_and_counted(watched):
    core, notes = watched
    function = Function()
    for n in (5, 6, 5, 5):
        assert function.run(n) is function.kernels[int]
    assert notes.said == [("note", "grid", (5,)), ("note", "grid", (6,))]
    assert counts(core) == [3, 1] and notes.told[0] == [1, 2]


@pytest.mark.parametrize(
    "values",
    [(1, True), (1, 1.0), ((1, 2), (2, 1)), ([1], [2]), (Descriptor(1, 2), Descriptor(2, 1)), ("a", "b"), (None, 0),
     (2**70, -(2**70)), (((1,),), ((2,),))],
)  # fmt: skip
def test_what_tells_launches_apart(watched, values):
    core, _ = watched
    function = Function()
    for value in (*values, *values):
        function.run("x", value)
        function.run("x", named=value)
    assert counts(core) == [2, 2, 2, 2]


def test_a_kernel_that_comes_for_a_size_that_is_known_is_noted(watched):
    _, notes = watched
    function = Function()
    function.run(5)
    function.kernels[int] = object()
    function.run(5)
    assert notes.said == [("note", "grid", (5,)), ("note", None, (5,))]


def test_of_very_many_sizes_the_rest_is_neither_noted_nor_missed(watched):
    core, notes = watched
    function = Function()
    for n in range(300):
        function.run(n)
    assert len(notes.said) == len(counts(core)) == 256
    function.run(1.5)  # another kernel
    assert notes.said[256:] == [("note", None, (1.5,))]


def test_a_grid_that_is_a_function_is_looked_at_ever_more_seldom(watched):
    _, notes = watched
    function = Function()
    for _ in range(1000):
        function.run(5, grid=lambda given: (1,))
    assert len(notes.said) == 64 + 3  # 128, 256, 512


def test_what_a_launch_raises_is_the_program_s(watched):
    core, _ = watched
    for where in (Function(), Tuner(Function())):
        with pytest.raises(KeyError, match="mine"):
            where.run(KeyError("mine"))
    assert counts(core) == []


def test_of_a_tuner_s_call_the_last_launch_counts(watched):
    core, notes = watched
    tuner = Tuner(Function())
    for n in (5, 5, 5, 6):
        assert tuner.run(n) is tuner.function.kernels[int]
    assert notes.said == [("choice", 2, (5,)), ("choice", 2, (6,))]
    assert counts(core) == [3, 1]
    tuner.function.run(5)  # by itself
    assert notes.said[2:] == [("note", "grid", (5,))]


def test_a_tuner_of_another_thread_is_none_of_this_one_s(watched):
    """A launch while another thread's tuner measures is a launch."""
    _, notes = watched
    function, inside, done = Function(), threading.Event(), threading.Event()

    def grid(given):
        inside.set()
        assert done.wait(60)

    thread = threading.Thread(target=lambda: Tuner(function).run(5, grid=grid))
    thread.start()
    assert inside.wait(60)
    function.run(7)
    done.set()
    thread.join()
    assert notes.said == [("note", "grid", (7,)), ("choice", 2, (5,))]


def test_warm_ups_are_no_launches(watched):
    core, notes = watched
    Function().run(5, warmup=True)
    assert notes.said == [("warm",)] and counts(core) == []


def test_what_is_off_is_as_it_was(watched):
    core, notes = watched
    core.set_active(False)
    assert Function().run(5) is not None and Function.run(Function(), 5) is not None
    assert notes.said == [] and Function.run.__name__ == "run"
    with pytest.raises(TypeError):
        Function.run()


def test_a_forked_child_counts_its_own(watched):
    core, _ = watched
    function = Function()
    for _ in range(3):
        function.run(5)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        core.forget_counts()
        function.run(5)
        os.write(writer, repr(counts(core)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"[1]" and counts(core) == [3]
