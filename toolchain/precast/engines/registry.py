"""Which engine compiles a job. In: a job, or an engine's name. Out: an engine, imported only now.

All engines of a process share one front end, and with it one loader: modules are the process's, whoever imports them.
"""

from __future__ import annotations

import importlib

from precast.engines import Engine
from precast.identity.tools import ENGINE_SETTING, ENGINES
from precast.job import Job
from precast.target import Backend


def engine_name(job: Job) -> str:
    """`stand-in`, `cpu` or `triton`."""
    wanted = dict(job.settings.environment).get(ENGINE_SETTING)
    return wanted or ("cpu" if job.unit.target.kind is Backend.CPU else "triton")


class Engines:
    """The engines of one process, each made when it is first needed; what they share is made once."""

    def __init__(self) -> None:
        self._made: dict[str, Engine] = {}

    def open(self, name: str) -> Engine:
        """The engine of that name; `ToolError` when what it needs is not installed in the right version."""
        if name not in self._made:
            self._made[name] = importlib.import_module(ENGINES[name]).make_engine(self.open)
        return self._made[name]
