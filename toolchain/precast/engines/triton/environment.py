"""Triton's environment variables: what a worker's are. Imports no Triton.

In: compile settings. Out: a complete environment. What may change code is set here or comes from the project's
settings, and is in every key through them; nothing of the user's shell passes but what a process needs to start.
"""

from __future__ import annotations

from collections.abc import Mapping

from precast.job import CompileSettings
from precast.reads import INHERITED

FIXED = {
    "TRITON_BACKENDS_IN_TREE": "1",  # no backend from another package answers
    "TRITON_DEFAULT_FP_FUSION": "1",  # said, because its default is about to change
    "TRITON_DUMP_PTXAS_LOG": "1",  # the cubin stage then prints registers and spills
    "TRITON_CACHE_DIR": "/nonexistent/triton-cache",  # the store is the only cache
    "PYTHONHASHSEED": "0",
    "PYTHONSAFEPATH": "1",
    "LC_ALL": "C.UTF-8",
}


def worker_environment(settings: CompileSettings, environ: Mapping[str, str], scratch: str) -> dict[str, str]:
    """The whole environment of a worker process whose private folder is `scratch`."""
    environment = {name: environ[name] for name in INHERITED if name in environ}
    environment |= FIXED | {"TMPDIR": scratch, "HOME": scratch}
    environment["TRITON_DISABLE_LINE_INFO"] = "0" if settings.line_info else "1"
    if settings.ptxas:
        environment |= {"TRITON_PTXAS_PATH": settings.ptxas, "TRITON_PTXAS_BLACKWELL_PATH": settings.ptxas}
    return environment | dict(settings.module_environment) | dict(settings.environment)
