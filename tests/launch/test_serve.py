"""Triton's own calls, run from a release: matched by source, constexprs, options and arguments; nothing is compiled."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import served_kernels
import triton
from launch_release import TestUnit, build_release, scale_units
from test_python import aligned
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from precast.engines.source_digest import digest_source
from precast.launch.package.calls import Call
from precast.launch.package.fragment import find_hints
from precast.plan import plan_project
from precast.project import read_project
from precast.spec.spelling import python_value

HERE = Path(__file__).parent
OPTIONS = (("debug", False), ("enable_fp_fusion", True), ("sanitize_overflow", True))
SETTINGS = '[tool.precast]\nname = "demo"\nversion = "1.0"\ntargets = ["cpu:x86-64-v3", "cuda:90"]\n'
SPEC = """
[kernel.scale_kernel]
source = "served_kernels.py:scale_kernel"
grid = ["cdiv(n, BLOCK)", "1", "1"]

[kernel.scale_kernel.args]
out = "*fp32"
x = "*fp32"
alpha = "fp32"
n = "i32"

[kernel.scale_kernel.matrix]
BLOCK = [64, 256]
"""


def units_of(digest: str) -> list[TestUnit]:
    """The CPU units of `scale`, as if built from the served kernel."""
    cpu = [each for each in scale_units() if each.unit.target.backend == "cpu"]
    return [replace(each, facts=replace(each.facts, source_digest=digest, options=OPTIONS)) for each in cpu]


def make_served(folder: Path, name: str) -> ModuleType:
    units = units_of(digest_source(served_kernels.scale_kernel).text)
    release = build_release(folder, units, name=name, selection=())
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(release / "python"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return make_served(tmp_path_factory.mktemp("served"), "served")


@pytest.fixture
def jit(monkeypatch) -> list[str]:
    """Triton's own ways to launch, which note who was called and with what, and compile nothing."""
    calls = []
    monkeypatch.setattr(JITFunction, "run", lambda function, *_, **named: calls.append((function.__name__, named)))
    return calls


def load_changed(folder: Path, before: str, after: str) -> ModuleType:
    text = (HERE / "served_kernels.py").read_text()
    assert before in text
    path = folder / "served_changed.py"
    path.write_text(text.replace(before, after))
    spec = importlib.util.spec_from_file_location("served_changed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refusal(served: ModuleType, call) -> str:
    """What a call without a unit says."""
    with served.serve(), pytest.raises(RuntimeError) as caught:
        call()
    assert type(caught.value).__name__ == "MissingVariant"
    return str(caught.value)


def scale(*arguments, grid=(1,), kernel=served_kernels.scale_kernel, **keywords):
    """A call that the release has a unit for, but for what is given."""
    x = aligned(64)
    return lambda: kernel[grid](*(arguments or (x, x, 2.0, 64)), **{"BLOCK": 64, **keywords})


def plan_fragment(folder: Path, message: str):
    """The units that a refusal's spec adds to a project that has the kernel."""
    (folder / "kernels").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(SETTINGS)
    shutil.copy(HERE / "served_kernels.py", folder / "kernels")
    (folder / "kernels" / "served.toml").write_text(SPEC)
    before = {planned.unit for planned in plan_project(read_project(folder)).units}
    (folder / "kernels" / "missing.toml").write_text(message.partition("this would make it:\n")[2])
    return [planned.unit for planned in plan_project(read_project(folder)).units if planned.unit not in before]


def test_calls_of_triton_run_from_the_release(served):
    x, out = aligned(1000), aligned(1000)
    x[:] = np.arange(1000)
    with served.serve():
        served_kernels.scale_kernel[(16,)](out, x, 2.5, 1000, BLOCK=64)
        np.testing.assert_array_equal(out, 2.5 * x)
        served_kernels.scale_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](
            out, x, 3.0, n=1000, BLOCK=256
        )
        np.testing.assert_array_equal(out, 3 * x)
        wide, wide_out = aligned(64, "float64"), aligned(64, "float64")
        wide[:] = 1
        served_kernels.scale_kernel[(1, 1)](wide_out, wide, 2.0, 64, BLOCK=64, num_warps=4)
        assert (wide_out == 2).all()


def test_missing_variant_names_itself(served):
    assert refusal(served, scale(BLOCK=128)) == (
        "the release cannot run `scale_kernel`: no variant has BLOCK=128; this would make it:\n"
        '[kernel.scale_kernel]\nsource = "served_kernels.py:scale_kernel"\ngrid = ["cdiv(n, BLOCK)", "1", "1"]\n'
        'only = ["cpu:*"]\nhints = [["out%16", "x%16", "n%16"]]\n\n[kernel.scale_kernel.args]\nout = "*fp32"\n'
        'x = "*fp32"\nalpha = "fp32"\nn = "i32"\n\n[kernel.scale_kernel.constants]\nBLOCK = 128'
    )
    half = aligned(64, "float16")
    assert "no variant with dtype=fp16; this would make it:\n" in refusal(served, scale(half, half, 2.0, 64))


def test_hints_of_a_call_are_those_that_the_jit_takes():
    values = (aligned(64), aligned(64, offset=1), 1, 17, 0, 16, aligned(64), True, 16.0, 1, 32)
    call = Call(served_kernels.hinted_kernel, values, {}, (1,))
    types = ["*fp32", "*fp32", "i32", "i32", "i32", "i32", "*fp32", "i1", "fp32", "i64", "i32"]
    assert find_hints(call, dict(zip(call.values, types, strict=True))) == ["x%16", "n==1", "zero%16", "count%16"]


MISSING = {
    "constexpr": (scale(BLOCK=128), {"BLOCK": 128}, {}),
    "option": (scale(enable_fp_fusion=False), {"BLOCK": 64}, {"enable_fp_fusion": False}),
    "with an option that means nothing here": (scale(BLOCK=128, num_warps=8), {"BLOCK": 128}, {}),
    "element type": (scale(*[aligned(64, "float16")] * 2, 2.0, 64), {"BLOCK": 64}, {}),
    "number": (scale(*[aligned(64)] * 2, 2.0, 2**40), {"BLOCK": 64}, {}),
    "NumPy": (scale(*[aligned(64)] * 2, np.float32(2), np.int64(64), BLOCK=np.int64(128)), {"BLOCK": 128}, {}),
    "real number": (scale(*[aligned(64)] * 2, 2.0, 64.0), {"BLOCK": 64}, {}),
    "broken promise": (scale(aligned(63, offset=1), aligned(64), 2.0, 63), {"BLOCK": 64}, {}),
}


@pytest.mark.parametrize("name", MISSING)
def test_fragment_makes_the_missing_unit(served, tmp_path, name):
    call, constants, options = MISSING[name]
    (unit,) = plan_fragment(tmp_path, refusal(served, call).replace("[kernel.scale_kernel", "[kernel.scale_2"))
    assert str(unit.target) == "cpu:x86-64-v3"
    assert unit.source.text == "kernels/served_kernels.py:scale_kernel"
    assert {each.name: each.value for each in unit.arguments if each.type == "constexpr"} == constants
    assert dict(unit.options) == options
    types = [each.type for each in unit.arguments]
    pointer = "*fp16" if name == "element type" else "*fp32"
    count = {"number": "i64", "real number": "fp32"}.get(name, "i32")
    assert types == [pointer, pointer, "fp32", count, "constexpr"]
    assert unit.grid == (() if name == "real number" else ("cdiv(n, BLOCK)", "1", "1"))


@pytest.mark.parametrize(
    ("mode", "bias", "text"),
    [
        ('a "word" of\n{braces}\x7f', None, True),
        (float("inf"), 1e-30, False),
        (True, "tl.float16", False),
        (None, "none", False),
        ("None", 1.0, False),
        ((1, (2.0, None, "a:b"), True), -0.0, False),
        (2**64, "a:b", False),
        ('"quoted"', (), False),
    ],
)
def test_fragment_of_a_kernel_that_the_release_has_not(served, tmp_path, mode, bias, text):
    x = aligned(64)
    kernel = served_kernels.__mixed_kernel
    said = refusal(served, lambda: kernel[lambda meta: (2, meta["BLOCK"])](x, (x, 5.0), True, mode, bias))
    assert "its source is not in the release, or has changed; this would make it:\n[kernel.mixed_kernel]" in said
    (unit,) = plan_fragment(tmp_path, said)
    assert not unit.grid
    assert [each.type for each in unit.arguments[:3]] == ["*fp32", "(*fp32, fp32)", "i1"]
    assert repr([python_value(each.value) for each in unit.arguments[3:]]) == repr([mode, bias, 64])


def test_what_no_spec_can_state_has_no_fragment(served):
    x = aligned(64)
    cases = [
        (scale(BLOK=12), "cpu targets have no option `BLOK`"),
        (scale(launch_cooperative_grid=True), "cpu targets have no option `launch_cooperative_grid`"),
        (scale(extern_libs={}), "cpu targets have no option `extern_libs`"),
        (scale(BLOCK=[64]), "constexpr `BLOCK` is a list, which is no value of a spec"),
        (scale(x, "x", 2.0, 64), "argument `x` is a str, for which there is no type"),
    ]
    for call, reason in cases:
        assert refusal(served, call).endswith(f"; no spec can state it: {reason}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("enable_fp_fusion", False), ("debug", True), ("launch_cooperative_grid", True), ("BLOK", 12), ("extern_libs", {}),
     ("BLOCK", True), ("BLOCK", [64]), ("stream", 0)],
)  # fmt: skip
def test_what_no_unit_was_made_for_goes_to_triton(served, jit, name, value):
    with served.serve(fallback="jit"):
        scale(**{name: value})()
    assert [each["BLOCK" if name == "BLOCK" else name] for _, each in jit] == [value]
    assert f"`{name}`" in (said := refusal(served, scale(**{name: value}))) or f"no variant has {name}=" in said


def test_options_that_are_the_units_own(served):
    own = {"enable_fp_fusion": True, "debug": False, "num_stages": 9, "num_warps": 8, "num_ctas": 2, "maxnreg": 9}
    for name, value in own.items():
        with served.serve():
            scale(**{name: value})()
            scale(**{name: None})()


def test_one_is_not_true(served, jit):
    with served.serve(fallback="jit"):
        for value in (1, True, 1.0, 64, 64.0):
            scale(BLOCK=value)()
    assert [repr(each["BLOCK"]) for _, each in jit] == ["1", "True", "1.0", "64.0"]
    unit = importlib.import_module("served._variants").Unit("", "cpu:x86-64-v3", {"EVEN": True}, {}, {}, ())
    assert [unit.has_constants({"EVEN": value}) for value in (True, 1, 1.0)] == [True, False, False]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("scaled(tl.load", "2 * scaled(tl.load"),
        ("return value * alpha", "return value + alpha"),
        ("OFFSET = tl.constexpr(0)", "OFFSET = tl.constexpr(1)"),
        ("mask=places < n)", "mask=places <= n)"),
    ],
)
def test_changed_source_never_matches(served, tmp_path, before, after):
    changed = load_changed(tmp_path, before, after)
    said = refusal(served, scale(kernel=changed.scale_kernel))
    assert "its source is not in the release, or has changed; this would make it:\n" in said


def test_source_that_changes_while_it_is_served_never_matches(served, jit):
    before = served_kernels.OFFSET
    with served.serve(fallback="jit"):
        scale()()
        served_kernels.OFFSET = triton.language.constexpr(1)
        scale()()
        served_kernels.OFFSET = before
        scale()()
    assert len(jit) == 1


def test_source_that_cannot_be_compared_says_why(served, tmp_path):
    changed = load_changed(tmp_path, "OFFSET = tl.constexpr(0)", "OFFSET = tl.constexpr(object())")
    assert refusal(served, scale(kernel=changed.scale_kernel)) == (
        "the release cannot run `scale_kernel`: its source cannot be compared: `scale_kernel` uses `OFFSET`, a value "
        "of type object"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A comment counts for nothing.", "# It does, in truth.\n\n"),
        ("Multiplies by a number.", "Another text."),
        ("alpha, n, BLOCK", "alpha,  n ,BLOCK"),
        ("\n@triton.jit\ndef scale_kernel", "\n\n\n@triton.jit()\ndef scale_kernel"),
    ],
)
def test_comments_and_layout_do_not_count(tmp_path, before, after):
    changed = load_changed(tmp_path, before, after)
    assert digest_source(changed.scale_kernel).text == digest_source(served_kernels.scale_kernel).text


def test_fallback_to_triton(served, jit):
    with served.serve(fallback="jit"):
        scale(BLOCK=128)()
        scale()()
    assert len(jit) == 1 and jit[0][1]["BLOCK"] == 128
    scale()()
    assert len(jit) == 2, "Triton has its own way back"
    with pytest.raises(ValueError, match='fallback is "error" or "jit", not \'compile\''):
        served.serve(fallback="compile")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A second release, with its own copy of the code that serves; its kernel is another."""
    return make_served(tmp_path_factory.mktemp("other"), "other")


@pytest.mark.parametrize("order", ["first", "last"])
def test_servers_stop_in_any_order(served, other, jit, order):
    own = JITFunction.run, Autotuner.run
    a, b = served.serve(), other.serve()
    (a if order == "first" else b).stop()
    scale()()
    assert not jit, "the server that is on serves"
    c = other.serve("jit")
    (b if order == "first" else a).stop()
    scale(BLOCK=128)()
    assert jit.pop()[1]["BLOCK"] == 128, "servers that are off do not complain"
    (b if order == "first" else a).start()
    c.stop()
    (b if order == "first" else a).stop()
    assert (JITFunction.run, Autotuner.run) == own
    scale()()
    assert len(jit) == 1
    b.stop()
    with a.start(), a.start():
        scale()()
    assert len(jit) == 1 and JITFunction.run is own[0]


def test_each_server_is_asked_before_one_complains(served, other, jit, monkeypatch):
    miss = importlib.import_module("served._variants").Miss("it is not here", 0)
    monkeypatch.setattr("served._serve.Server.launch", lambda *_: miss)
    with other.serve(), served.serve():
        scale()()
    with other.serve(), served.serve("jit"), pytest.raises(RuntimeError, match="no variant has BLOCK=128"):
        scale(BLOCK=128)()
    with other.serve("jit"), served.serve(), pytest.raises(RuntimeError, match="it is not here"):
        scale(BLOCK=128)()
    with other.serve("jit"), served.serve("jit"):
        scale(BLOCK=128)()
    assert len(jit) == 1


def test_servers_of_several_threads(served, other):
    own = JITFunction.run, Autotuner.run
    failures = []

    def serve(release: ModuleType) -> None:
        for _ in range(200):
            try:
                with release.serve():
                    scale()()
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=serve, args=(each,)) for each in (served, other) * 3]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    sys.setswitchinterval(switch)
    assert not failures and (JITFunction.run, Autotuner.run) == own


@pytest.mark.parametrize("grid", [None, 2, (), (1, 1, 1, 1), ("1",), (1.0,), lambda meta: None])
@pytest.mark.parametrize("fallback", ["error", "jit"])
def test_bad_grid_is_told_as_such(served, jit, grid, fallback):
    with served.serve(fallback), pytest.raises(TypeError, match="the grid of `scale_kernel` is one to three integers"):
        scale(grid=grid)()
    assert not jit


def test_arguments_that_are_not_the_functions(served, jit):
    x = aligned(64)
    cases = [
        (scale(x, x, 2.0), "`scale_kernel` misses its arguments n"),
        (scale(x, x, 2.0, 64, x=x), "`scale_kernel` gets `x` twice"),
        (scale(x, x, 2.0, 64, 64, 64), "`scale_kernel` takes 5 arguments, not 6"),
    ]
    for call, message in cases:
        with served.serve(), pytest.raises(TypeError, match=message):
            call()
        with served.serve("jit"):
            call()
    assert len(jit) == 3


def test_hooks_run_once_whoever_launches(served, jit, monkeypatch):
    seen = []
    hook = lambda *values, **named: seen.append((values[3], named["BLOCK"]))  # noqa: E731
    monkeypatch.setattr(served_kernels.scale_kernel, "pre_run_hooks", [hook])
    out, x = aligned(64), aligned(64)
    x[:] = 3
    with served.serve("jit"):
        scale(out, x, 2.0, 64)()
        assert (seen, out[0], len(jit)) == ([(64, 64)], 6, 0)
        scale(aligned(64, "float16"), x, 2.0, 64)()
    assert (len(seen), len(jit)) == (1, 1), "Triton runs them itself"


def tuned(*blocks, hook=None, **named):
    configs = [triton.Config({"BLOCK": block}, num_warps=8, pre_hook=hook) for block in blocks]
    return triton.autotune(configs, key=["n"], **named)(served_kernels.scale_kernel)


def call_tuned(tuner, grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)):
    x, out = aligned(256), aligned(256)
    x[:] = 3
    tuner[grid](out, x, 2.0, 256)
    return out


def test_autotuned_kernel_with_one_config_of_the_release(served):
    seen = []
    tuner = tuned(32, 64, 128, hook=lambda named: seen.append(named["BLOCK"]))
    with served.serve():
        assert (call_tuned(tuner) == 6).all()
        assert (call_tuned(tuned(64)) == 6).all()
    assert (seen, tuner.best_config.kwargs) == ([64], {"BLOCK": 64})


def test_autotuned_kernel_under_heuristics_and_pruning(served):
    heuristic = triton.heuristics({"BLOCK": lambda named: 64 * named["num_warps"]})(served_kernels.scale_kernel)
    configs = [triton.Config({}, num_warps=warps) for warps in (1, 2, 8)]
    with served.serve():
        assert (call_tuned(triton.autotune(configs, key=["n"])(heuristic), (4,)) == 6).all()
        pruned = {"early_config_prune": lambda configs, named, **_: configs[:1] if named["n"] == 256 else configs}
        assert (call_tuned(tuned(64, 256, prune_configs_by=pruned)) == 6).all()


def test_configs_that_differ_in_nothing_are_one(served):
    """On a CPU warps, stages and the like decide nothing."""
    options = ({"num_warps": 2}, {"num_warps": 4, "num_stages": 3}, {"num_warps": 8, "num_ctas": 2})
    configs = [triton.Config({"BLOCK": 64}, **each) for each in options]
    unnamed = [triton.Config({}, **each) for each in options]
    with served.serve():
        tuner = triton.autotune(configs, key=["n"])(served_kernels.scale_kernel)
        assert (call_tuned(tuner) == 6).all() and tuner.best_config is configs[0]
        x, out = aligned(64), aligned(64)
        x[:] = 3
        triton.autotune(unnamed, key=["n"])(served_kernels.scale_kernel)[(1,)](out, x, 2.0, 64, BLOCK=64)
        assert (out == 6).all()


def test_of_configs_that_differ_the_author_s_first_runs(served):
    first, other = (triton.Config({"BLOCK": block}, num_warps=2) for block in (64, 256))
    hooked = triton.Config({"BLOCK": 64}, num_warps=4, pre_hook=lambda named: None)
    missing = triton.Config({"BLOCK": 128}, num_warps=2)
    for configs in ([first, hooked], [missing, other, first], [hooked, triton.Config({"BLOCK": 64}), other]):
        tuner = triton.autotune(configs, key=["n"])(served_kernels.scale_kernel)
        with served.serve():
            assert (call_tuned(tuner) == 6).all()
        assert tuner.best_config is next(each for each in configs if each is not missing)


@pytest.mark.parametrize("tune", [False, True])
def test_a_served_call_returns_what_can_be_launched_again(served, tune):
    kernel, block = (tuned(64, 128), {}) if tune else (served_kernels.scale_kernel, {"BLOCK": 64})
    out, x = aligned(128), aligned(128)
    x[:] = 1
    with served.serve():
        launched = kernel[(1,)](out, x, 2.0, 128, **block)
    assert out.sum() == 128
    launched[(2, 1, 1)](out, x, 3.0, 128)
    assert (out == 3).all()
    launched[(2, 1, 1)](out, x, 4.0, 128, 64)
    assert (out == 4).all()
    launched[(1, 1, 1)](out, x, 5.0, 128, stream=0)
    assert out.tolist() == [5] * 64 + [4] * 64
    assert repr(launched) == "<`scale_kernel` of a release>"
    with pytest.raises(TypeError, match=r"takes 4 arguments \(out, x, alpha, n\), not 6"):
        launched[(2, 1, 1)](out, x, 3.0, 128, 64, 64)
    with pytest.raises(TypeError, match="lacks n"):
        launched[(2, 1, 1)](out, x, 3.0)
    half = aligned(128, "float16")
    with pytest.raises(RuntimeError, match="argument `out` of `scale` is fp16"):
        launched[(2, 1, 1)](half, half, 3.0, 128)


def test_autotuned_kernel_that_the_release_cannot_choose_for(served, jit, monkeypatch):
    said = refusal(served, lambda: call_tuned(tuned(32, 128)))
    assert "it has units for none of the 2 configs of its autotuner; this would make it:\n" in said
    assert said.endswith("BLOCK = 32")
    measured = []
    monkeypatch.setattr(Autotuner, "run", lambda *_, **__: measured.append(1))
    with served.serve("jit"):
        call_tuned(tuned(64, 256))
        call_tuned(tuned(32, 128))
    assert len(measured) == 2


def test_gpu_units_are_chosen_by_their_options(fakes, tmp_path):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fakes / "cuda")}
    done = subprocess.run(
        [sys.executable, HERE / "serve_on_cuda.py", tmp_path], env=environment, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (unit,) = plan_fragment(tmp_path / "project", done.stdout.replace("[kernel.scale_kernel", "[kernel.scale_2"))
    assert (str(unit.target), dict(unit.options)) == ("cuda:90", {"num_warps": 2})
