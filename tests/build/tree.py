"""A small project to build for real, and what a build of it said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from forked import run_forked

SETTINGS = """
[project]
name = "demo"
version = "1.0"

[tool.precast]
targets = {targets}
pythonpath = ["kernels"]
{more}
"""

TIME_LIMIT_S = 300
COMPILER = os.environ.get("PRECAST_TEST_CC", "cc")  # keeps its objects: most of a small build's time is C

SCONSTRUCT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath], CC="{compiler}")
env.Precast()
"""

KERNEL = """
import triton
import triton.language as tl
{imports}

@triton.jit
def {name}_kernel(out, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside)
    tl.store(out + offsets, {value}, mask=inside)
"""

SPEC = """
[kernel.{name}]
source = "{name}.py:{name}_kernel"
grid = ["cdiv(n, BLOCK)", "1", "1"]

[kernel.{name}.args]
out = {{ type = "*{{dtype}}", align = 16 }}
x = {{ type = "*{{dtype}}", align = 16 }}
n = "i32"

[kernel.{name}.matrix]
dtype = {dtypes}
BLOCK = [128]
"""

SHARED = """
import triton


@triton.jit
def twice(value):
    return value + value
"""


@dataclass(frozen=True)
class Build:
    """One run: exit code, events in order, and the text of both streams."""

    code: int
    events: list[dict]
    out: str
    err: str

    @property
    def summary(self) -> dict:
        assert self.events and self.events[-1]["event"] == "summary", self.out + self.err
        return self.events[-1]

    @property
    def steps(self) -> list[str]:
        """Every step that ran, sorted."""
        return sorted(event["step"] for event in self.events if event["event"] == "ended")

    @property
    def compiled(self) -> list[str]:
        """Units whose image was compiled anew, sorted."""
        return sorted(e["step"] for e in self.events if e["event"] == "ended" and "@" in e["step"] and not e["reused"])

    @property
    def release(self) -> Path:
        assert self.code == 0, self.out + self.err
        return Path(self.summary["release"])


class Tree:
    """A project's folder. `compiler` is of C: for a test of what that makes, the machine's own."""

    def __init__(
        self,
        folder: Path,
        targets: tuple[str, ...] = ("cuda:90", "hip:gfx942"),
        more: str = "",
        compiler: str = COMPILER,
    ) -> None:
        self.folder = folder
        self.write("pyproject.toml", SETTINGS.format(targets=json.dumps(targets), more=more))
        self.write("SConstruct", SCONSTRUCT.format(compiler=compiler))

    def prime(self, built: Tree) -> None:
        """Takes over what another project compiled of C, which is most of a small build's time."""
        for name in ("objects", "launchers", "sconsign.dblite", "index.sqlite"):
            source, place = built.folder / "build" / name, self.folder / "build" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, place) if source.is_dir() else shutil.copy2(source, place)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"))

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def add_kernel(self, name: str, value: str = "value + 1", imports: str = "", dtypes: str = '["fp32"]') -> None:
        self.write(f"kernels/{name}.py", KERNEL.format(name=name, value=value, imports=imports))
        self.write(f"kernels/{name}.toml", SPEC.format(name=name, dtypes=dtypes))

    def build(self, *words: str, **environment: str) -> Build:
        """`precast build --json …`, by one worker unless more are asked for: tests run beside one another. With an
        environment in a process that is started for it."""
        alone = () if any(word.startswith("-j") for word in words) else ("-j1",)
        command = ["build", "--json", "--project", str(self.folder), *alone, *words]
        if environment:
            return run([sys.executable, "-m", "precast", *command], None, environment)
        return make_build(*run_forked(["precast", *command], kept_environment(), TIME_LIMIT_S))

    def scons(self, *words: str, **environment: str) -> Build:
        """Plain `scons` in the project's folder, with its events as JSON lines among what SCons itself says."""
        if environment:
            return run([sys.executable, "-m", "SCons", "progress=json", *words], self.folder, environment)
        command = ["scons", "progress=json", *words]
        return make_build(*run_forked(command, kept_environment(), TIME_LIMIT_S, self.folder))


def run(command: list[str], folder: Path | None, environment: dict[str, str]) -> Build:
    environment = kept_environment() | environment
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    return make_build(done.returncode, done.stdout, done.stderr)


def kept_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}


def make_build(code: int, out: str, err: str) -> Build:
    return Build(code, [json.loads(line) for line in out.splitlines() if line.startswith('{"event"')], out, err)


def make_tree(folder: Path, **settings: object) -> Tree:
    """Three kernels: `scale` and `shift` share a helper, `copy` stands alone."""
    tree = Tree(folder, **settings)
    tree.write("kernels/shared.py", SHARED)
    tree.add_kernel("scale", "twice(value) + value", "from shared import twice")
    tree.add_kernel("shift", "twice(value) + 1", "from shared import twice")
    tree.add_kernel("copy", "value")
    return tree
