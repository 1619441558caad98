"""A small project with plugins, and its units compiled by a worker, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tree import Tree

from precast.artifact import UnitResult
from precast.job import Job
from precast.plan import Plan, plan_project
from precast.project import read_project
from precast.worker.pool import WorkerPool

HEAD = """
from dataclasses import dataclass

from precast.passes import *
from precast.passes.ir import find_kernel, walk
from precast.passes.ops import TritonOp
"""


@dataclass(frozen=True)
class Compiled:
    """One unit's result and the texts of its stages."""

    result: UnitResult
    texts: dict[str, str]

    def text(self, stage: str) -> str:
        return self.texts[stage]

    @property
    def ran(self) -> list[str]:
        return [run.name for run in self.result.passes]

    @property
    def reused(self) -> list[str]:
        """Stages whose result came from the store."""
        return [stage.stage for stage in self.result.stages if stage.reused]


class PluginTree(Tree):
    """A project with kernels `scale` and `copy`; `select` writes pyproject's passes, `plugin` a file of plugins."""

    def __init__(
        self,
        folder: Path,
        targets: tuple[str, ...] = ("cuda:90", "hip:gfx942", "cpu:x86-64-v3"),
        python_path: tuple[str, ...] = ("kernels",),
    ) -> None:
        super().__init__(folder, targets)
        self.edit("pyproject.toml", 'pythonpath = ["kernels"]', f"pythonpath = {list(python_path)}")
        self._settings = (folder / "pyproject.toml").read_text()
        self.add_kernel("scale", "value + 1")
        self.add_kernel("copy", "value")

    def plugin(self, text: str, name: str = "plugins/mine.py", head: str = HEAD) -> None:
        self.write(name, head + text)

    def select(self, *uses: str) -> None:
        """Each use is a plugin's name, or the lines of its table."""
        tables = [f"[[tool.precast.pass]]\n{use if '=' in use else f'use = {use!r}'}\n" for use in uses]
        self.write("pyproject.toml", self._settings + "\n" + "\n".join(tables))

    def plan(self, kernel: str = "*", target: str = "*") -> Plan:
        return plan_project(read_project(self.folder), kernels=(kernel,), targets=(target,))

    def job(self, kernel: str = "scale", target: str = "cuda:90") -> Job:
        plan = self.plan(kernel, target)
        return plan.job(plan.units[0].unit)

    def compile(self, pool: WorkerPool, kernel: str = "scale", target: str = "cuda:90") -> Compiled:
        job = self.job(kernel, target)
        result = pool.submit(job).result()
        files = {path.suffix[1:]: path for path in Path(job.output).glob(f"{kernel}.*")}
        stages = job.unit.stages[:-1]
        return Compiled(result, {stage: files[stage].read_text() for stage in stages})
