"""Kernels of a release as operators of PyTorch: what they declare, its own checks, compiled and exported programs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from launch_release import build_release, scale_units

from precast.launch.package.torch_ops import register, render_schema

SOFTMAX = (
    (("out", "tensor"), ("x", "const tensor"), ("bias", "tensor?"), ("n", "int"), ("alpha", "float"), ("fast", "bool")),
    (("dtype", "dtype"), ("BLOCK", "int"), ("MODE", "word"), ("EVEN", "bool")),
    True,
)


def test_a_schema_declares_what_is_written():
    assert render_schema(SOFTMAX, frozenset({"out", "bias"})) == (
        "(Tensor(a0!) out, Tensor x, Tensor(a2!)? bias, SymInt n, float alpha, bool fast, *, "
        "str? dtype=None, int? BLOCK=None, str? MODE=None, bool? EVEN=None) -> ()"
    )
    assert render_schema(((("n", "int"),), (), False), frozenset()) == "(SymInt n, SymInt[] grid) -> ()"


def test_a_wrong_word_on_what_is_written():
    with pytest.raises(KeyError, match="the release has no kernel 'softmux'"):
        register("shop", {"softmax": None}, {"softmax": SOFTMAX}, {"softmux": ("out",)})
    with pytest.raises(ValueError, match="`n` of `softmax` is no tensor"):
        register("shop", {"softmax": None}, {"softmax": SOFTMAX}, {"softmax": ("n",)})


@pytest.fixture(scope="module")
def ops(torch: ModuleType, tmp_path_factory: pytest.TempPathFactory):
    """The operators of a release, on this machine's processor."""
    release = build_release(tmp_path_factory.mktemp("ops") / "release", list(scale_units()), name="forge", selection=())
    sys.path.insert(0, str(Path(release) / "python"))
    try:
        package = importlib.import_module("forge")
    finally:
        sys.path.pop(0)
    assert package.register_torch_ops(mutates={"scale": ("out",)}) == ("forge::scale",)
    assert package.register_torch_ops(mutates={"scale": ("out",)}) == ("forge::scale",)
    return torch.ops.forge


def scaled(ops, x, alpha=2.0):
    import torch

    out = torch.empty_like(x)
    ops.scale(out, x, alpha, x.numel(), BLOCK=64)
    return out + 1


@pytest.mark.all
def test_an_operator_launches(torch, ops):
    x = torch.arange(1000, dtype=torch.float32)
    assert torch.equal(scaled(ops, x), 2 * x + 1)
    schema = str(ops.scale.default._schema)
    assert schema.startswith("forge::scale(Tensor(a0!) out, Tensor x, float alpha, SymInt n, *, ")


@pytest.mark.all
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pytorch_s_own_checks(torch, ops, dtype):
    x = torch.arange(256, dtype=getattr(torch, dtype))
    torch.library.opcheck(ops.scale.default, (torch.empty_like(x), x, 2.0, 256), {"BLOCK": 64})


@pytest.mark.all
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_graph_is_compiled(torch, ops, backend):
    compiled = torch.compile(lambda x: scaled(ops, x * 2) * 3, fullgraph=True, backend=backend, dynamic=True)
    for count in (1000, 640):
        x = torch.arange(count, dtype=torch.float32)
        assert torch.equal(compiled(x), (2 * (2 * x) + 1) * 3)


@pytest.mark.all
def test_a_program_is_exported(torch, ops):
    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled(ops, x)

    x = torch.arange(128, dtype=torch.float32)
    program = torch.export.export(Model(), (x,))
    assert "forge.scale" in str(program.graph)
    assert torch.equal(program.module()(x), 2 * x + 1)
