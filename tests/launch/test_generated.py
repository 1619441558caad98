"""Generated text, whole: header, launchers and Python package of one kernel of every sort of argument and axis."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from test_formats import unit_of

from precast.launch.formats import describe_interface, interface_digest
from precast.launch.sources import render_library
from precast.spec.model import Argument, Unit

GOLDEN = Path(__file__).parent / "golden"
FILES = ("include/lib.h", "src/lib.c", "python/lib/__init__.py", "python/lib/__init__.pyi")


def units() -> list[Unit]:
    arguments = [Argument("x", "tensordesc<fp16[64,32]>"), Argument("pair", "(i32, *kfp32)"), Argument("half", "fp16"),
                 Argument("double", "fp64"), Argument("flag", "i1")]  # fmt: skip
    return [
        unit_of("mix", [("MODE", mode), ("dtype", dtype), ("FAST", fast), ("SCALE", 0.5)],
                [Argument("out", f"*{dtype}"), *arguments])
        for mode, dtype, fast in (("gelu-tanh", "fp16", True), ("none", "bf16", False))
    ]  # fmt: skip


def test_a_kernel_without_a_grid():
    """No function and no type lets a call leave out a grid that is nowhere."""
    free = dataclasses.replace(unit_of("free", [], [Argument("n", "i32")]), grid=())
    with_grid, interface = (describe_interface("lib", [each]) for each in (unit_of("free", [], free.arguments), free))
    assert interface_digest(with_grid) != interface_digest(interface)
    files = {file.path: file.text for file in render_library(interface)}
    for path in ("include/lib.h", "src/lib.c"):
        assert "precast_status lib_free_grid(lib *release" in files[path]
        assert "precast_status lib_free(lib *release" not in files[path]
    assert "class _free_kernel(Protocol):" in files["python/lib/__init__.pyi"]


@pytest.mark.parametrize("path", FILES)
def test_generated_text(path: str, update: bool):
    files = {file.path: file.text for file in render_library(describe_interface("lib", units()))}
    golden = GOLDEN / f"{Path(path).name}.txt"
    if update:
        golden.write_text(files[path])
    assert files[path] == golden.read_text()
