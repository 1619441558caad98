"""Which engine compiles a job. In: a job, or an engine's name. Out: an engine, imported only now."""

from __future__ import annotations

from precast.engines import Engine
from precast.job import Job
from precast.target import Backend

ENGINE_SETTING = "PRECAST_ENGINE"  # in [tool.precast.triton]; for tests


def engine_name(job: Job) -> str:
    """`stand-in`, `cpu` or `triton`."""
    wanted = dict(job.settings.environment).get(ENGINE_SETTING)
    return wanted or ("cpu" if job.unit.target.kind is Backend.CPU else "triton")


def open_engine(name: str) -> Engine:
    """The engine of that name; `ToolError` when what it needs is not installed in the right version."""
    if name == "stand-in":
        from precast.engines.standin import StandinEngine

        return StandinEngine()
    if name == "cpu":
        from precast.engines.cpu_units import CpuUnitEngine

        return CpuUnitEngine()
    from precast.engines.triton.compile import TritonEngine

    return TritonEngine()
