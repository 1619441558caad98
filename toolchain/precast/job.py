"""A job: one unit's compilation, complete and serialisable. In: a plan. Out: what a worker takes.

Level 3, beside `plan`; the engines and the worker read it, nobody writes into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.identity import Tools
from precast.passes.selection import PassUse
from precast.spec.model import CompileSettings, Unit
from precast.target import Backend

__all__ = ["CompileSettings", "Job"]


@dataclass(frozen=True)
class Job:
    """Everything that a worker needs for one unit. Paths are absolute; none of them is in a key."""

    unit: Unit
    passes: tuple[PassUse, ...]
    settings: CompileSettings
    tools: Tools  # identities of all that its stages run
    sources: tuple[tuple[str, str], ...]  # every file that its kernel can be made of, with its digest
    project: str  # folder of pyproject.toml
    python_path: tuple[str, ...]  # folders where kernel modules are found, project first
    store: str  # folder of the content-addressed store
    output: str  # folder that receives image, stage files and facts.json, by rename
    time_limit_s: float = 600.0
    memory_limit_mb: int = 0  # 0: none
    expected_bytes: int = 0  # of memory, as it took when it was last compiled; 0: not known
    keep_stages: bool = True  # link every stage's text into `output`, not the image alone
    repeat_passes: bool = False  # afterwards run each pass twice on the same input, and fail for one that differs

    @property
    def line_info(self) -> bool:
        """Whether the unit's texts say where code comes from: the project wants it, or a CPU's asserts tell it."""
        asserts = self.unit.target.kind is Backend.CPU and ("debug", True) in self.unit.options
        return self.settings.line_info or asserts
