"""The probe of one kernel's module: a child process that imports it for each target and tells what the plan asks.

In: `python -m precast.engines.triton.kernel_probe REQUEST ANSWER`, the request a `ProbeRequest` in JSON; the folder
that it runs in is its own. Out: the answer, a `ProbeAnswer`, always written whole. The environment is a worker's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from precast.codec import from_json, to_json
from precast.digest import seal
from precast.engines.triton.environment import worker_environment
from precast.spec.imported import ProbeAnswer, ProbeFault, ProbeRequest, TargetAnswer
from precast.store import write_file
from precast.target import Target

PREPARED = "--prepared"


def probe_kernel(request: ProbeRequest) -> ProbeAnswer:
    """Imports the kernel's module for every target. What it raises is told as a fault, at the author's line."""
    try:
        from precast.engines import StageFailure
        from precast.engines.triton.imported import describe_imported
        from precast.engines.triton.load import KernelLoader
    except ImportError as error:
        message = f"`{request.source.text}` has to be imported to be planned, which needs Triton: {error}"
        return ProbeAnswer(request.digest, fault=ProbeFault(message, hint="pip install precast[gpu]"))
    loader, found = KernelLoader(), []
    try:
        for text in request.targets:
            path = [Path(each) for each in request.python_path]
            loaded = loader.load(request.source, Path(request.project), path, Target.parse(text))
            described = describe_imported(loaded.function, loaded.tuner)
            found.append(TargetAnswer(text, described, loaded.recording.reads()))
        return ProbeAnswer(request.digest, tuple(found))
    except StageFailure as failure:
        where = failure.where
        place = (where.file, where.line, where.column) if where else ("", 0, 1)
        return ProbeAnswer(request.digest, fault=ProbeFault(failure.message, *place, failure.hint))


def main(arguments: list[str]) -> None:
    request_file, answer_file = Path(arguments[0]), Path(arguments[1])
    request = from_json(request_file.read_bytes(), ProbeRequest)
    if PREPARED not in arguments:
        command = [sys.executable, "-m", "precast.engines.triton.kernel_probe", *arguments, PREPARED]
        os.execve(sys.executable, command, worker_environment(request.settings, os.environ, os.getcwd()))
    answer = probe_kernel(request)
    write_file(answer_file, seal(to_json(answer, indent=1).encode()))


if __name__ == "__main__":
    main(sys.argv[1:])
