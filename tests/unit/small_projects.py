"""Small projects for the tests of spec, project and plan: texts in, a folder or errors out."""

import textwrap
from pathlib import Path

from precast.diagnostic import format_error
from precast.errors import PrecastError
from precast.plan import plan_project
from precast.project import read_project

SETTINGS = """\
[tool.precast]
name = "demo"
version = "1.0"
targets = ["cuda:80", "cuda:90", "hip:gfx942"]
"""
KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    pass
"""
SPEC = """\
[kernel.scale]
source = "scale.py:scale_kernel"
grid = ["cdiv(n, BLOCK)", "1", "1"]

[kernel.scale.args]
x = { type = "*{dtype}", align = 16 }
out = { type = "*{dtype}", align = 16 }
n = "i32"
stride = "i64"

[kernel.scale.matrix]
dtype = ["fp16", "fp32"]
BLOCK = [128]
"""


def make_project(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A project of one kernel in `folder`, with `files` on top of it (None removes one)."""
    texts = {"pyproject.toml": SETTINGS, "kernels/scale.py": KERNEL, "kernels/scale.toml": SPEC, **(files or {})}
    for name, text in texts.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
    return folder


def plan(folder: Path, **globs):
    return plan_project(read_project(folder), **globs)


def error_text(folder: Path, **globs) -> str:
    """The printed error of planning the project in `folder`, with paths relative to it; "" when there is none."""
    try:
        plan(folder, **globs)
    except PrecastError as error:
        return format_error(error).replace(f"{folder}/", "")
    return ""
