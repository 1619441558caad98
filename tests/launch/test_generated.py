"""Generated text, whole: header, launchers and Python package of one kernel of every sort of argument and axis."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_formats import unit_of

from precast.launch.formats import describe_interface
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


@pytest.mark.parametrize("path", FILES)
def test_generated_text(path: str, update: bool):
    files = {file.path: file.text for file in render_library(describe_interface("lib", units()))}
    golden = GOLDEN / f"{Path(path).name}.txt"
    if update:
        golden.write_text(files[path])
    assert files[path] == golden.read_text()
