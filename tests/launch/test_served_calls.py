"""Served calls that the extension knows: what of them is compared, what runs around them, and that Python does not."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import served_call_kernels as kernels
import triton
from launch_release import TestUnit, build_release, make_unit
from test_python import aligned
from test_serve import OPTIONS
from triton import knobs
from triton.language import constexpr
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction, KernelInterface

from precast.engines.source_digest import digest_source
from precast.spec.model import Argument, Constant, Spelled

HERE = Path(__file__).parent


def unit_of(kernel: str, dtype: str, block: int, mode: Constant = 1, align: int = 16) -> TestUnit:
    arguments = [
        Argument("out", f"*{dtype}", divisibility=align), Argument("x", f"*{dtype}", divisibility=align),
        Argument("alpha", "fp32"), Argument("n", "i32"), Argument("BLOCK", "constexpr", value=block),
        Argument("MODE", "constexpr", value=mode), Argument("num_stages", "constexpr", value=2),
    ]  # fmt: skip
    values = [("BLOCK", block), ("MODE", mode)]
    unit, facts = make_unit(kernel, "cpu:x86-64-v2", values, arguments, ("cdiv(n, BLOCK)", "1", "1"), num_warps=4)
    facts = replace(facts, source_digest=digest_source(kernels.scale).text, options=OPTIONS)
    c_type = {"fp16": "int16_t", "fp32": "float", "fp64": "double"}[dtype]
    return TestUnit(unit, facts, f"SCALE({facts.symbol}, {c_type}, {block})")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Three kernels of one function: of fp32, of fp64 and, the last, of fp16."""
    units = [unit_of("scale_a", "fp32", block, mode) for block in (64, 256) for mode in (1, 2)]
    units += [unit_of("scale_b", "fp64", 64), unit_of("scale_c", "fp16", 64)]
    release = build_release(tmp_path_factory.mktemp("known"), units, name="known", selection=())
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module("known")
    finally:
        sys.path.remove(str(release / "python"))


@pytest.fixture
def jit(monkeypatch) -> list[str]:
    """What goes to Triton itself."""
    calls = []
    monkeypatch.setattr(JITFunction, "run", lambda function, *_, **named: calls.append(named))
    return calls


def ours_called(action, package: str = "known") -> list[str]:
    """The functions of the release's package that run meanwhile."""
    found = []

    def note(frame, event, _):
        if event == "call" and f"/{package}/" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def call(kernel=kernels.scale, factor=2.0, dtype="float32", grid=(1,), n=64, **named):
    """Launches, and whether the result is right."""
    out, x = aligned(n, dtype), aligned(n, dtype)
    x[:] = 3
    kernel[grid](out, x, factor, n, **{"BLOCK": 64, **named})
    return bool((out == 3 * factor).all())


SAME = {
    "by place": lambda out, x: kernels.scale[(1,)](out, x, 2.0, 64, 64, 1, 2),
    "by name": lambda out, x: kernels.scale[(1,)](n=64, alpha=2.0, BLOCK=64, x=x, out=out),
    "wrapped": lambda out, x: kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=constexpr(64)),
    "options": lambda out, x: kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=64, debug=False, num_warps=8),
    "no option": lambda out, x: kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=64, num_warps=None),
    "option and constexpr": lambda out, x: kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=64, num_stages=2),
    "list": lambda out, x: kernels.scale[[1, 1]](out, x, 2.0, 64, BLOCK=64),
    "function": lambda out, x: kernels.scale[lambda meta: (meta["n"] // meta["BLOCK"], meta["MODE"])](
        out, x, 2.0, 64, BLOCK=64
    ),
    "run": lambda out, x: kernels.scale.run(out, x, 2.0, 64, BLOCK=64, grid=(1,), warmup=False),
    "NumPy": lambda out, x: kernels.scale[(np.int64(1),)](out, x, 2.0, np.int32(64), BLOCK=np.int64(64)),
}


@pytest.mark.parametrize("name", SAME)
def test_python_is_not_asked_again(known, name):
    out, x = aligned(64), aligned(64)
    x[:] = 1
    with known.serve():
        assert "launch" in ours_called(lambda: SAME[name](out, x))
        out[:] = 0
        assert ours_called(lambda: SAME[name](out, x)) == []
    assert (out == 2).all()


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Units of members of enumerations; the last one is of a module that nobody imports."""
    module = "served_call_kernels"
    modes = [f"{module}:Level.LOW", f"({module}:Level.LOW,({module}:Word.LEFT,2))", f"{module}:Word.LEFT",
             f"{module}:Level.GONE", "nobody_imports:Level.HIGH"]  # fmt: skip
    units = [unit_of("scale", "fp32", 64, mode) for mode in [*map(Spelled, modes), 7]]
    units += [unit_of("scale", "fp32", 64, Spelled(f"{module}:Mode.FAST")), unit_of("scale", "fp32", 256, 1)]
    release = build_release(tmp_path_factory.mktemp("named"), units, name="named", selection=())
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module("named")
    finally:
        sys.path.remove(str(release / "python"))


LEVEL, WORD = kernels.Level, kernels.Word


def test_a_number_is_as_good_as_the_member_that_a_unit_has(named):
    taken = [5, LEVEL.LOW, constexpr(5), "left", WORD.LEFT, (5, ("left", 2)), (LEVEL.LOW, ("left", 2)),
             (LEVEL.LOW, (WORD.LEFT, 2)), 7, 1, kernels.Mode.FAST]  # fmt: skip
    with named.serve():
        for _ in range(2):
            assert all(call(MODE=mode) for mode in taken)
            assert call(MODE=1, BLOCK=256) and call(MODE=kernels.Mode.FAST, BLOCK=256)
        assert ours_called(lambda: [call(MODE=mode) for mode in taken], "named") == []
        for wrong in (6, LEVEL.HIGH, True, 5.0, None, "LEFT", (5, ("left", True)), (6, ("left", 2)), 0):
            with pytest.raises(RuntimeError, match="the release cannot run `scale`"):
                call(MODE=wrong)


def test_specializations_stand_beside_each_other(known):
    with known.serve():
        for _ in range(3):
            for dtype in ("float32", "float64"):
                assert call(dtype=dtype)
            assert call(BLOCK=256) and call(MODE=2) and call(MODE=kernels.Mode.FAST)
        assert ours_called(lambda: [call(dtype="float64"), call(BLOCK=256), call(MODE=kernels.Mode.FAST)]) == []
        for wrong in ({"BLOCK": True}, {"BLOCK": 64.0}, {"MODE": True}, {"MODE": kernels.Mode.SLOW}, {"MODE": 1.0},
                      {"num_stages": 3}, {"debug": True}, {"BLOK": 1}):  # fmt: skip
            for _ in range(2):
                with pytest.raises(RuntimeError, match="the release cannot run `scale`"):
                    call(**wrong)


def test_grid_functions_get_what_tritons_get(known):
    seen = []

    def grid(meta):
        seen.append(dict(meta))
        return (1,)

    with known.serve():
        for _ in range(2):
            assert call(grid=grid, num_warps=8)
    assert list(seen[0]) == list(seen[1]) == ["out", "x", "alpha", "n", "BLOCK", "MODE", "num_stages"]
    assert [{name: meta[name] for name in ("alpha", "n", "BLOCK", "MODE", "num_stages")} for meta in seen] == [
        {"alpha": 2.0, "n": 64, "BLOCK": 64, "MODE": 1, "num_stages": 2}
    ] * 2


@pytest.mark.parametrize("grid", [None, 2, (), (1, 1, 1, 1), ("1",), (1.0,), lambda meta: None])
def test_bad_grids_of_known_calls_are_told(known, grid):
    with known.serve():
        assert call()
        with pytest.raises(TypeError, match="the grid of `scale` is one to three integers, not "):
            call(grid=grid)


def test_arguments_of_known_calls_are_told(known):
    x = aligned(64)
    cases = [
        (lambda: kernels.scale[(1,)](x, x, 2.0, BLOCK=64), "`scale` misses its arguments n"),
        (lambda: kernels.scale[(1,)](x, x, 2.0, 64, 64, BLOCK=64), "`scale` gets `BLOCK` twice"),
        (lambda: kernels.scale[(1,)](*range(8)), "`scale` takes 7 arguments, not 8"),
        (lambda: call(**{"grid": (1,), "warmup": True}), "multiple values for keyword argument 'warmup'"),
    ]
    with known.serve():
        assert call()
        for wrong, message in cases:
            with pytest.raises(TypeError, match=message):
                wrong()
        with pytest.raises(ZeroDivisionError):
            call(grid=lambda meta: (1 // 0,))


def changes(monkeypatch):
    """What makes another function of `scale`, and gives it back."""
    yield lambda: monkeypatch.setattr(kernels, "OFFSET", constexpr(1))
    yield lambda: monkeypatch.setattr(kernels, "scaled", kernels.limited)
    yield lambda: monkeypatch.setattr(kernels.scaled, "_src", kernels.scaled._src.replace("*", "+"))
    yield lambda: monkeypatch.setattr(kernels.scale, "_src", kernels.scale._src.replace("<", "<="))
    yield lambda: kernels.scale.change(constexpr(1))


@pytest.mark.parametrize("number", range(5))
def test_known_functions_that_change_are_known_no_longer(known, monkeypatch, number):
    with known.serve():
        assert call() and ours_called(call) == []
        list(changes(monkeypatch))[number]()
        with pytest.raises(RuntimeError, match="its source is not in the release, or has changed"):
            call()
        monkeypatch.undo()
        kernels.scale.change(constexpr(0))
        assert call() and ours_called(call) == []


def test_equal_values_of_another_identity_are_no_change(known, monkeypatch):
    with known.serve():
        assert call()
        monkeypatch.setattr(kernels, "OFFSET", constexpr(0))
        assert call() and ours_called(call) == []


def test_hooks_that_come_later_run(known, monkeypatch):
    seen = []
    with known.serve():
        assert call() and ours_called(call) == []
        kernels.scale.pre_run_hooks.append(lambda *values, **named: seen.append(values[3]))
        assert call() and call()
        kernels.scale.pre_run_hooks.clear()
        assert call() and ours_called(call) == []
        monkeypatch.setattr(kernels.scale, "pre_run_hooks", [])
        assert call() and ours_called(call) == []
        monkeypatch.setattr(kernels.scale, "debug", True)
        with pytest.raises(RuntimeError, match="no variant has debug=True"):
            call()
    assert seen == [64, 64]


def test_launch_hooks_are_told_as_triton_tells_them(known, monkeypatch):
    seen = []

    def enter(told):
        seen.append(("enter", told.data["name"], told.data["stream"], told.data["function"] > 0))

    def count(grid, metadata, values):
        return {"bytes": values["n"] * grid[0], "block": values["BLOCK"], "warps": metadata.num_warps,
                "where": metadata.target.backend}  # fmt: skip

    monkeypatch.setattr(kernels.scale, "launch_metadata", count)
    with known.serve():
        assert call() and ours_called(call) == []
        knobs.runtime.launch_enter_hook.add(enter)
        knobs.runtime.launch_exit_hook.add(lambda told: seen.append(("exit", told.get())))
        try:
            assert call()
            launched = kernels.scale[(1,)](aligned(64), aligned(64), 2.0, 64, BLOCK=64)
            launched[(1, 1, 1)](aligned(64), aligned(64), 2.0, 64)
            with pytest.raises(RuntimeError, match="no variant"):
                call(BLOCK=3)
        finally:
            knobs.runtime.launch_enter_hook.calls.clear()
            knobs.runtime.launch_exit_hook.calls.clear()
        assert ours_called(call) == []
        monkeypatch.setattr(knobs.runtime, "launch_enter_hook", lambda told: seen.append("alone"))
        assert call()
        monkeypatch.setattr(knobs.runtime, "launch_enter_hook", None)
        assert ours_called(call) == []
    found = {"name": "scale", "stream": 0, "bytes": 64, "block": 64, "warps": 4, "where": "cpu"}
    assert seen[0] == ("enter", "scale", 0, True)
    assert {name: seen[1][1][name] for name in found} == found
    assert [each[0] for each in seen[:-1]] == ["enter", "exit"] * 3 and seen[-1] == "alone"


def test_nearest_kernel_explains_the_refusal(known):
    out, x = aligned(64), aligned(65, offset=1)[:64]
    with known.serve():
        for _ in range(2):
            with pytest.raises(RuntimeError, match="`scale`: argument `x` of `scale_a` promises align = 16") as caught:
                kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=64)
            assert call(), "known from now on, the refusal is the same"
        with pytest.raises(RuntimeError, match="no variant has enable_fp_fusion=False"):
            call(BLOCK=256, enable_fp_fusion=False)
    assert "this would make it:" in str(caught.value)


class OwnTuner(Autotuner):
    """As libraries have them: a `run` that measures by itself."""

    def run(self, *arguments, **named):
        self.nargs = dict(zip(self.arg_names, arguments, strict=False))
        best = self.configs[0]
        if len(self.configs) > 1:
            best = min(self.configs, key=lambda each: self._bench(*arguments, config=each, **named))
        self.best_config = best
        if best.pre_hook:
            best.pre_hook({**self.nargs, **named, **best.all_kwargs()})
        return self.fn.run(*arguments, **named, **best.all_kwargs())


class Entry(KernelInterface):
    """As libraries have them: around a kernel or a tuner, with keys and launches of its own."""

    def __init__(self, fn):
        self.fn, self.arg_names, self.launched = fn, fn.arg_names, None

    def run(self, *arguments, grid, warmup, **named):
        if self.launched is None:
            self.launched = self.fn.run(*arguments, grid=grid, warmup=warmup, **named)
        else:
            size = grid({**dict(zip(self.arg_names, arguments, strict=False)), "BLOCK": 64})
            self.launched[(*size, 1, 1)[:3]](*arguments)
        return self.launched


class OwnFunction(JITFunction):
    """A jit function with a `run` of its own, which adds what calls leave out."""

    def run(self, *arguments, grid, warmup, **named):
        return super().run(*arguments, grid=grid, warmup=warmup, BLOCK=64, **named)


def tuner_of(kind: type[Autotuner], kernel=kernels.scale, hook=None) -> Autotuner:
    configs = [triton.Config({"BLOCK": block}, num_stages=2, pre_hook=hook) for block in (32, 64, 128)]
    return kind(kernel, kernel.arg_names, configs, ["n"], None, None)


def tune(kernel) -> bool:
    out, x = aligned(64), aligned(64)
    x[:] = 3
    for _ in range(2):
        kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](out, x, 2.0, 64)
    return bool((out == 6).all())


def test_tuners_and_entries_of_libraries_are_served(known):
    seen = []
    with known.serve():

        class Later(OwnTuner):
            def run(self, *arguments, **named):
                return super().run(*arguments, **named)

        for kind in (Autotuner, OwnTuner, Later):
            tuner = tuner_of(kind, hook=lambda named: seen.append(named["BLOCK"]))
            assert tune(tuner) and tuner.best_config.kwargs == {"BLOCK": 64}
            for around in (
                Entry(tuner),
                tuner_of(kind, Entry(kernels.scale)),
                Heuristics(tuner, kernels.scale.arg_names, {}),
            ):
                assert tune(around)
        assert "run" in vars(Later) and hasattr(Later.run, "precast_layer")
    assert set(seen) == {64}
    assert not hasattr(OwnTuner.run, "precast_layer") and not hasattr(Later.run, "precast_layer")
    assert "__init_subclass__" not in vars(Autotuner) and "__getitem__" not in vars(JITFunction)


def test_warming_up_is_tritons(known, jit):
    with known.serve():
        assert call()
        kernels.scale.warmup(aligned(64), aligned(64), 2.0, 64, grid=(1,), BLOCK=64)
    assert [each["warmup"] for each in jit] == [True]


def test_known_calls_of_several_threads(known, monkeypatch):
    failures = []

    def work(number: int) -> None:
        try:
            for _ in range(100):
                assert call(dtype=("float32", "float64")[number % 2], grid=(1,) if number < 2 else lambda meta: (1,))
                assert call(MODE=2) and call(num_warps=number)
                if number == 3:  # looked at anew by everybody
                    monkeypatch.setattr(kernels, "OFFSET", constexpr(0))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with known.serve():
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    sys.setswitchinterval(switch)
    assert not failures


def test_jit_functions_of_libraries_keep_their_own_run(known):
    kernel = OwnFunction(kernels.scale.fn)
    with known.serve():
        assert tune(Entry(kernel)) and tune(kernel)
        assert ours_called(lambda: tune(kernel)) == []


def test_a_choice_is_made_once_for_each_key(known):
    pruned = []
    prune = {"early_config_prune": lambda configs, named, **_: pruned.append(named["n"]) or configs}
    tuner = Autotuner(kernels.scale, kernels.scale.arg_names, tuner_of(Autotuner).configs, ["n"], None, None,
                      prune_configs_by=prune)  # fmt: skip
    with known.serve():
        for n in (64, 64, 32, 64, 32):
            tuner[(1,)](aligned(n), aligned(n), 2.0, n)
    assert pruned == [64, 32]


def test_configs_that_differ_in_what_the_target_does_not_know_are_one(known):
    configs = [triton.Config({"BLOCK": 64, "waves_per_eu": waves}, num_stages=2) for waves in (1, 2)]
    with known.serve():
        assert tune(triton.autotune(configs, key=["n"])(kernels.scale))
        with pytest.raises(RuntimeError, match="no option `waves_per_eu`"):
            call(waves_per_eu=2)


def test_plain_values_reached_through_an_object_count(monkeypatch):
    before = digest_source(kernels.limited)
    assert before.text and before.is_current() and digest_source(kernels.limited).text == before.text
    before = digest_source(kernels.set_up)
    assert before.text and before.is_current()
    monkeypatch.setattr(kernels.SETTINGS.value, "limit", 8)
    assert not before.is_current() and digest_source(kernels.set_up).text not in ("", before.text)
    monkeypatch.setattr(kernels.SETTINGS.value, "limit", [8])
    assert digest_source(kernels.set_up).fault == "`set_up` uses `SETTINGS.limit`, a value of type Settings"


def test_nothing_outlives_a_function_or_a_server(known, jit):
    with known.serve() as server:
        kernel = kernels.make_kernel(constexpr(0))
        assert call(kernel) and call(kernel)
        gone = weakref.ref(kernel)
        kernel = kernels.make_kernel(constexpr(0))  # Triton itself keeps the last
        gc.collect()
        assert gone() is None and not server._entries and not server._known
        bound = kernels.scale[(1,)]
        assert call()
    assert JITFunction.__getitem__ is KernelInterface.__getitem__
    gone = weakref.ref(server)
    del server
    bound(aligned(64), aligned(64), 2.0, 64, BLOCK=64)
    assert len(jit) == 1
    del bound
    gc.collect()
    assert gone() is None


@pytest.mark.all
@pytest.mark.parametrize("allocator", ["malloc_debug", "pymalloc_debug"])
def test_ten_thousand_calls_leave_nothing_behind(known, allocator):
    program = [sys.executable, "-X", "dev", HERE / "served_many_times.py", Path(known.__file__).parents[1]]
    done = subprocess.run(program, env={"PYTHONMALLOC": allocator, "PATH": ""}, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "flat\n"), done.stdout + done.stderr
