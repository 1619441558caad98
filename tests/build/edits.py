"""Random edits of a small project, of every kind of input that a build has; and what a clean build of it would be.

The stand-in engine makes texts of all that a unit is compiled from, so that whatever a key misses shows as other bytes.
"""

from __future__ import annotations

import filecmp
import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from tree import COMPILER, KERNEL, SPEC, Build, Tree

SETTINGS = """
[project]
name = "{name}"
version = "{version}"

[tool.precast]
targets = ["cuda:90", "hip:gfx942"]
pythonpath = {path}
{specs}
{settings}

[tool.precast.tools]
ptxas = "tools/ptxas"

[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
{variables}

{passes}
"""
TOOL = """#!/bin/sh
# tool {number}
exec {compiler} "$@"
"""
SCONSTRUCT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
env["SHCC"] = env["SHLINK"] = env.File("#tools/cc").abspath
env.Precast()
"""
PLUGIN = """
from dataclasses import dataclass
from precast.passes import Pass, end
from marks_table import TABLE

@dataclass(frozen=True)
class Marks(Pass):
    \"\"\"Leaves marks, {number} of them.\"\"\"
    name, stage, at = "marks", "ttir", end()
    count: int = 1
    def run(self, module, context):
        return None
"""


class EditedProject:
    """A project under edit. `edit` makes one change of a random kind and says which."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.tree = Tree(folder)
        self._kernels = ["one", "two"]
        self._name, self._version, self._numbers = "demo", "1.0", iter(range(1, 10**6))
        self._settings: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        self._passes: list[str] = []
        self._history: list[tuple[Path, bytes]] = []
        self._path = ["kernels", "early", "late"]
        self._specs = ""
        self._write_all()

    @property
    def folder(self) -> Path:
        return self.tree.folder

    def _write_all(self) -> None:
        self.tree.write("SConstruct", SCONSTRUCT)
        self.tree.write("kernels/shared.py", "import triton\n\n\ndef helper():\n    return 0\n")
        self.tree.write("kernels/table.txt", "1\n")
        self.tree.write("early/nothing.txt", "")
        self.tree.write("late/widths.py", "import triton\n\n\nWIDTH = 0\n")
        for name in self._kernels:
            self._add(name)
        for tool in ("cc", "ptxas"):
            self._write_tool(tool)
        self.tree.write("plugins/marks.py", PLUGIN.format(number=0))
        self.tree.write("plugins/marks_table.py", "TABLE = 0\n")
        self._write_settings()

    def _add(self, name: str) -> None:
        imports = "from shared import helper\nimport widths"
        self.tree.add_kernel(name, f"value + {next(self._numbers)}", imports, '["fp16", "fp32"]')
        self.tree.edit(f"kernels/{name}.py", "import triton\n", "# stand-in: data kernels/table.txt\nimport triton\n")

    def _write_tool(self, name: str) -> None:
        text = TOOL.format(number=next(self._numbers), compiler=COMPILER)
        self.tree.write(f"tools/{name}", text)
        os.chmod(self.folder / "tools" / name, 0o755)

    def _write_settings(self) -> None:
        passes = "\n".join(f"[[tool.precast.pass]]\n{each}" for each in self._passes)
        text = SETTINGS.format(
            name=self._name,
            version=self._version,
            path=json.dumps(self._path),
            specs=self._specs,
            settings=_lines(self._settings),
            variables=_lines(self._variables),
            passes=passes,
        )
        self.tree.write("pyproject.toml", text)

    def edit(self) -> str:
        kinds: list[Callable[[], str]] = [
            self._source, self._quiet_source, self._comment, self._helper, self._data, self._grid, self._align,
            self._axis, self._option, self._plugin, self._plugin_sibling, self._selection, self._tool, self._setting,
            self._variable, self._rename_project, self._rename_kernel, self._remove, self._add_kernel, self._put_back,
            self._damage, self._shadow, self._shadow, self._order_path, self._spec_folder, self._build_script,
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def _kernel(self) -> str:
        return self.random.choice(self._kernels)

    def _change(self, name: str, change: Callable[[str], str]) -> str:
        path = self.folder / name
        before = path.read_text()
        self._history.append((path, before.encode()))
        path.write_text(change(before))
        return name

    def _source(self) -> str:
        name = self._kernel()
        return "source " + self._change(f"kernels/{name}.py", lambda text: text.replace("value +", "value + 1 +", 1))

    def _quiet_source(self) -> str:
        """An edit that leaves size and mtime as they were."""
        name = f"kernels/{self._kernel()}.py"
        before = (self.folder / name).stat()
        digit = self.random.choice("123456789")
        self._change(name, lambda text: text.replace("value + 1", f"value + {digit}", 1))
        os.utime(self.folder / name, ns=(before.st_atime_ns, before.st_mtime_ns))
        return f"quiet source {name}"

    def _comment(self) -> str:
        number = next(self._numbers)
        return "comment " + self._change(f"kernels/{self._kernel()}.py", lambda text: f"# {number}\n{text}")

    def _helper(self) -> str:
        return "helper " + self._change("kernels/shared.py", lambda text: f"{text}x = {next(self._numbers)}\n")

    def _data(self) -> str:
        path = self.folder / "kernels/table.txt"
        if path.exists() and self.random.random() < 0.2:
            path.unlink()
            return "data removed"
        path.write_text(f"{next(self._numbers)}\n")
        return "data"

    def _shadow(self) -> str:
        """A module that takes another's place, as a file or a package, or leaves it."""
        file, package = self.folder / "early/widths.py", self.folder / "early/widths"
        if file.exists() or package.exists():
            shutil.rmtree(package, ignore_errors=True)
            file.unlink(missing_ok=True)
            return "shadow is gone"
        name = self.random.choice(("early/widths.py", "early/widths/__init__.py"))
        self.tree.write(name, f"import triton\n\n\nWIDTH = {next(self._numbers)}\n")
        return f"shadow {name}"

    def _order_path(self) -> str:
        self.random.shuffle(self._path)
        self._write_settings()
        return f"path {self._path}"

    def _spec_folder(self) -> str:
        """Another folder of specs, which a glob takes in or not."""
        name = next(self._numbers)
        shutil.rmtree(self.folder / "more", ignore_errors=True)
        self.tree.write(f"more/deep/more{name}.py", KERNEL.format(name=f"more{name}", value="value", imports=""))
        self.tree.write(f"more/deep/more{name}.toml", SPEC.format(name=f"more{name}", dtypes='["fp32"]'))
        self._specs = self.random.choice(("", 'kernels = ["kernels/*.toml", "more/**/*.toml"]'))
        self._write_settings()
        return f"specs in more, {self._specs}"

    def _build_script(self) -> str:
        number = next(self._numbers)
        return "script " + self._change("SConstruct", lambda text: f"# {number}\n{text}")

    def _grid(self) -> str:
        name, old = self._kernel(), 'grid = ["cdiv(n, BLOCK)'
        new = f'grid = ["{next(self._numbers)} + cdiv(n, BLOCK)'
        return "grid " + self._change(f"kernels/{name}.toml", lambda text: text.replace(old, new, 1))

    def _align(self) -> str:
        new, name = self.random.choice(("4", "8", "16", "32")), f"kernels/{self._kernel()}.toml"
        return f"align {new} " + self._change(name, lambda text: _set(text, "align = ", new))

    def _axis(self) -> str:
        new = self.random.choice(("[64]", "[128]", "[128, 256]", "[256, 128]"))
        return f"axis {new} " + self._change(f"kernels/{self._kernel()}.toml", lambda text: _set(text, "BLOCK = ", new))

    def _option(self) -> str:
        name, warps = self._kernel(), self.random.choice((1, 2, 4, 8))

        def change(text: str) -> str:
            head = text.partition(f"[kernel.{name}.options]")[0]
            return f"{head}[kernel.{name}.options]\nnum_warps = {warps}\n"

        return f"option {warps} " + self._change(f"kernels/{name}.toml", change)

    def _plugin(self) -> str:
        return "plugin " + self._change("plugins/marks.py", lambda text: PLUGIN.format(number=next(self._numbers)))

    def _plugin_sibling(self) -> str:
        return "plugin's " + self._change("plugins/marks_table.py", lambda text: f"TABLE = {next(self._numbers)}\n")

    def _selection(self) -> str:
        choices = ([], ['use = "marks"'], [f'use = "marks"\nkernels = "{self._kernel()}"'],
                   [f'use = "marks"\noptions = {{ count = {next(self._numbers)} }}'])  # fmt: skip
        self._passes = self.random.choice(choices)
        self._write_settings()
        return f"passes {self._passes}"

    def _tool(self) -> str:
        tool = self.random.choice(("cc", "ptxas"))
        self._write_tool(tool)
        return f"tool {tool}"

    def _setting(self) -> str:
        if self.random.random() < 0.5:
            self._version = f"1.{next(self._numbers)}"
        else:
            self._settings["line_info"] = self.random.choice(("true", "false"))
        self._write_settings()
        return f"settings {self._version} {self._settings}"

    def _variable(self) -> str:
        self._variables["TRITON_DEFAULT_FP_FUSION"] = self.random.choice(('"0"', '"1"'))
        self._write_settings()
        return f"variables {self._variables}"

    def _rename_project(self) -> str:
        self._name = self.random.choice(("demo", "other", "third"))
        self._write_settings()
        return f"project {self._name}"

    def _rename_kernel(self) -> str:
        old, new = self._kernel(), f"kernel{next(self._numbers)}"
        text = (self.folder / f"kernels/{old}.toml").read_text()
        self.tree.write(f"kernels/{new}.toml", text.replace(f"[kernel.{old}", f"[kernel.{new}"))
        source = (self.folder / f"kernels/{old}.py").read_text()
        self.tree.write(f"kernels/{new}.py", source)
        self.tree.edit(f"kernels/{new}.toml", f'"{_source_of(text)}:', f'"{new}.py:')
        self._drop(old)
        self._kernels.append(new)
        return f"{old} becomes {new}"

    def _remove(self) -> str:
        if len(self._kernels) < 2:
            return self._add_kernel()
        name = self._kernel()
        self._drop(name)
        return f"{name} is gone"

    def _drop(self, name: str) -> None:
        self._kernels.remove(name)
        for suffix in ("toml", "py"):
            (self.folder / f"kernels/{name}.{suffix}").unlink()
        self._history = [each for each in self._history if each[0].exists()]

    def _add_kernel(self) -> str:
        name = f"kernel{next(self._numbers)}"
        self._add(name)
        self._kernels.append(name)
        return f"{name} is new"

    def _put_back(self) -> str:
        if not self._history:
            return self._source()
        path, data = self._history.pop()
        path.write_bytes(data)
        return f"{path.name} as it was"

    def _damage(self) -> str:
        """Something of the build's own changes or goes."""
        files = sorted(path for name in ("units", "packs", "lib", "launchers") for path in
                       (self.folder / "build" / name).rglob("*") if path.is_file())  # fmt: skip
        if not files:
            return "nothing to damage"
        path = self.random.choice(files)
        os.chmod(path, path.stat().st_mode | stat.S_IWUSR)
        if self.random.random() < 0.5:
            path.unlink()
        else:  # in place of the file: others may be the same one
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data + b"x")
        return f"damage {path.relative_to(self.folder)}"

    def clean_build(self, folder: Path) -> Build:
        """The project as it is now, built from nothing elsewhere."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("build", "generated", "__pycache__"))
        clean = Tree.__new__(Tree)
        clean.folder = folder
        return clean.build()


def _lines(entries: dict[str, str]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in entries.items())


def _set(text: str, key: str, value: str) -> str:
    """`text` with the first value after `key` replaced."""
    head, found, tail = text.partition(key)
    end = min(index for index in (tail.find(each) for each in ("\n", " }", ",  ")) if index >= 0)
    return head + found + value + tail[end:]


def _source_of(spec: str) -> str:
    return spec.partition('source = "')[2].partition(":")[0]


def differences(one: Path, two: Path) -> list[str]:
    """Names of files that two folders do not have alike."""
    names = {path.relative_to(each).as_posix() for each in (one, two) for path in each.rglob("*") if not path.is_dir()}
    return sorted(name for name in names if not _alike(one / name, two / name))


def _alike(one: Path, two: Path) -> bool:
    return one.is_file() and two.is_file() and filecmp.cmp(one, two, shallow=False)
