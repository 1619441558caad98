"""A stage in a process of its own whose memory always lies at the same addresses.

In: a job, a stage and its input. Out: what the engine made of it, and whether addresses were really fixed. For the
stages whose result depends on the order of pointers: the process does the same work from its first instruction, so
that its heap grows the same way each time. `python -m precast.worker.fixed` is that process.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.codec import from_json, to_json
from precast.engines import StageFailure, StageOutput
from precast.job import Job
from precast.worker.messages import Failure, Request

ADDR_NO_RANDOMIZE = 0x0040000
QUERY = 0xFFFFFFFF
MARK = "PRECAST_FIXED_ADDRESSES"  # set once the process has tried, so that a refusal does not repeat


@dataclass(frozen=True)
class _Answer:
    fixed: bool
    carry: str = "{}"
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    failure: Failure | None = None


def run_fixed(job: Job, stage: str, source: StageOutput) -> tuple[StageOutput, bool]:
    """Runs `stage` in a fresh process; the second value tells whether its addresses were fixed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").write_bytes(source.data)
        (folder / "request.json").write_text(to_json(Request(_without_places(job), stage, "source", source.carry)))
        command = [sys.executable, "-m", "precast.worker.fixed"]
        finished = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False)
        if finished.returncode != 0 or not (folder / "answer.json").exists():
            raise StageFailure(f"the compiler's own process for this stage ended with {finished.returncode}")
        answer = from_json((folder / "answer.json").read_bytes(), _Answer)
        if answer.failure is not None:
            failed = answer.failure
            raise StageFailure(failed.message, failed.where, failed.hint, pass_name=failed.pass_name)
        data = (folder / "output").read_bytes()
        return StageOutput(data, answer.carry, answer.passes, answer.findings, answer.buffers), answer.fixed


def _without_places(job: Job) -> Job:
    """The job without this machine's paths, whose lengths would move the heap; passes need theirs."""
    if job.passes:
        return job
    return replace(job, project="/", python_path=(), store="", output="")


def fix_addresses() -> bool:
    """Starts this program anew without address randomisation; returns, in that process, whether it is off."""
    libc = ctypes.CDLL(None, use_errno=True)
    current = libc.personality(QUERY)
    if current != -1 and current & ADDR_NO_RANDOMIZE:
        return True
    if MARK in os.environ or current == -1:
        return False
    os.environ[MARK] = "1"
    if libc.personality(current | ADDR_NO_RANDOMIZE) == -1:
        return False
    os.execv(sys.executable, [sys.executable, "-m", "precast.worker.fixed"])


def ignore_passes(name: str, text: str = "") -> None:
    """Nobody hears of passes from here: the failure itself names its pass."""


def main() -> None:
    """Answers the request in the working directory."""
    fixed = fix_addresses()
    from precast.engines.registry import open_engine  # after the addresses are settled

    request = from_json(Path("request.json").read_bytes(), Request)
    source = StageOutput(Path(request.source).read_bytes(), request.carry)
    try:
        output = open_engine(request.job).run_stage(request.job, request.stage, source, ignore_passes)
    except StageFailure as error:
        failure = Failure("compile", error.message, error.where, error.hint, error.pass_name)
        answer = _Answer(fixed, failure=failure)
    else:
        Path("output").write_bytes(output.data)
        answer = _Answer(fixed, output.carry, output.passes, output.findings, output.buffers)
    Path("answer.json").write_text(to_json(answer))


if __name__ == "__main__":
    main()
