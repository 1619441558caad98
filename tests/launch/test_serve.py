"""Triton's own calls, run from a release: matched by source, constexprs and arguments; nothing is compiled."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import served_kernels
import triton
from launch_release import TestUnit, build_release, scale_units
from test_python import aligned

from precast.engines.source_digest import digest_source

HERE = Path(__file__).parent


def units_of(digest: str) -> list[TestUnit]:
    """The CPU units of `scale`, as if built from the served kernel."""
    cpu = [each for each in scale_units() if each.unit.target.backend == "cpu"]
    return [replace(each, facts=replace(each.facts, source_digest=digest)) for each in cpu]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    units = units_of(digest_source(served_kernels.scale_kernel))
    release = build_release(tmp_path_factory.mktemp("served"), units, name="served", selection=())
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module("served")
    finally:
        sys.path.remove(str(release / "python"))


def load_changed(folder: Path, before: str, after: str) -> ModuleType:
    text = (HERE / "served_kernels.py").read_text()
    assert before in text
    path = folder / "served_changed.py"
    path.write_text(text.replace(before, after))
    spec = importlib.util.spec_from_file_location("served_changed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    x = aligned(64)
    kernel = served_kernels.scale_kernel
    with served.serve(), pytest.raises(RuntimeError) as caught:
        kernel[(1,)](x, x, 2.0, 64, BLOCK=128)
    assert str(caught.value) == (
        "the release cannot run `scale_kernel`: no variant has these constexprs and options; this would make it:\n"
        '[kernel.scale_kernel]\nsource = "served_kernels:scale_kernel"\n\n[kernel.scale_kernel.args]\nout = "*fp32"\n'
        'x = "*fp32"\nalpha = "fp32"\nn = "i32"\n\n[kernel.scale_kernel.constants]\nBLOCK = 128'
    )
    half = aligned(64, "float16")
    with served.serve(), pytest.raises(RuntimeError, match=r"no variant with dtype=fp16; this would make it:\n"):
        kernel[(1,)](half, half, 2.0, 64, BLOCK=64)
    with served.serve(), pytest.raises(RuntimeError, match="no variant has these constexprs and options"):
        kernel[(1,)](x, x, 2.0, 64, BLOCK=64, num_warps=8)


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
    x = aligned(64)
    with served.serve(), pytest.raises(RuntimeError, match="its source is not in the release, or has changed"):
        changed.scale_kernel[(1,)](x, x, 2.0, 64, BLOCK=64)


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
    assert digest_source(changed.scale_kernel) == digest_source(served_kernels.scale_kernel)


def test_fallback_to_triton(served, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        triton.runtime.jit.JITFunction, "run", lambda *values, **options: calls.append((values, options))
    )
    x = aligned(64)
    with served.serve(fallback="jit"):
        served_kernels.scale_kernel[(1,)](x, x, 2.0, 64, BLOCK=128)
        served_kernels.scale_kernel[(1,)](x, x, 2.0, 64, BLOCK=64)
    assert len(calls) == 1 and calls[0][1]["BLOCK"] == 128
    served_kernels.scale_kernel[(1,)](x, x, 2.0, 64, BLOCK=64)
    assert len(calls) == 2, "Triton has its own way back"
    with pytest.raises(ValueError, match='fallback is "error" or "jit", not \'compile\''):
        served.serve(fallback="compile")
