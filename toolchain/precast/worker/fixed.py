"""A stage in a process of its own whose memory always lies at the same addresses.

In: a stage's inputs and its text. Out: what the engine made of it, and whether addresses were really fixed. For stages
whose result depends on the order of pointers, three things make them the same from run to run and place to place:
address randomisation is off; the stage runs in a fresh thread, whose heap starts empty; and the allocator's cache of
freed blocks, through which blocks of the main heap would come into it, is off. What the process did before (paths,
environment, bytecode files) then no longer shows. `python -m precast.worker.fixed` is that process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.codec import from_json, to_json
from precast.engines import StageFailure, StageInputs, StageOutput
from precast.engines.triton.capture import capture_errors, first_error
from precast.reads import Read
from precast.worker.failures import Failure, describe_failure, raise_failure
from precast.worker.lifeline import die_with_parent

ADDR_NO_RANDOMIZE = 0x0040000
QUERY = 0xFFFFFFFF
MARK = "PRECAST_FIXED_ADDRESSES"  # set once the process has tried, so that a refusal does not repeat
TUNABLES = "glibc.malloc.tcache_count=0"


@dataclass(frozen=True)
class _Answer:
    fixed: bool
    carry: str = "{}"
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    reads: tuple[Read, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True)
class _Question:
    engine: str
    inputs: StageInputs
    project: str


def run_fixed(inputs: StageInputs, data: bytes, project: Path, engine: str) -> tuple[StageOutput, bool]:
    """Has the engine of that name run a stage in a fresh process; the second value tells whether its addresses were
    fixed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").write_bytes(data)
        (folder / "question.json").write_text(to_json(_Question(engine, inputs, str(project))), encoding="utf-8")
        command = [sys.executable, "-m", "precast.worker.fixed", str(os.getpid())]
        with capture_errors() as errors:
            finished = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False)
            if finished.returncode != 0:
                raise StageFailure(_ending(finished.returncode, first_error(errors.read())))
        answer = from_json((folder / "answer.json").read_bytes(), _Answer)
        if answer.failure is not None:
            raise_failure(answer.failure)
        data = (folder / "output").read_bytes()
        outside = (answer.passes, answer.findings, answer.buffers, answer.reads)
        return StageOutput(data, answer.carry, *outside), answer.fixed


def _ending(code: int, words: str) -> str:
    how = f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended its process with code {code}"
    return f"the compiler {how}" + (f": {words}" if words else "")


def has_fixed_addresses() -> bool:
    """Whether this process runs without address randomisation."""
    current = ctypes.CDLL(None).personality(QUERY)
    return bool(current != -1 and current & ADDR_NO_RANDOMIZE)


def fix_addresses() -> None:
    """Starts this program anew without address randomisation, unless it has tried before or the machine refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    current = libc.personality(QUERY)
    if MARK in os.environ or current == -1 or libc.personality(current | ADDR_NO_RANDOMIZE) == -1:
        return
    os.environ |= {MARK: "1", "GLIBC_TUNABLES": TUNABLES}
    os.execv(sys.executable, [sys.executable, "-m", "precast.worker.fixed", *sys.argv[1:]])


def ignore_passes(name: str, text: str = "") -> None:
    """Nobody hears of passes from here: the failure itself names its pass."""


def answer_request() -> None:
    """Answers the request in the working directory: everything is made ready first, the stage gets its own thread."""
    from precast.engines.registry import Engines  # after the addresses are settled

    question = from_json(Path("question.json").read_bytes(), _Question)
    inputs, project = question.inputs, Path(question.project)
    data, fixed = Path("source").read_bytes(), has_fixed_addresses()
    try:
        engine = Engines().open(question.engine)
        engine.prepare(inputs, project)
        with ThreadPoolExecutor(1) as thread:
            output = thread.submit(engine.run_stage, inputs, data, project, ignore_passes).result()
    except Exception as error:
        answer = _Answer(fixed, failure=describe_failure(error))
    else:
        Path("output").write_bytes(output.data)
        answer = _Answer(fixed, output.carry, output.passes, output.findings, output.buffers, output.reads)
    Path("answer.json").write_text(to_json(answer), encoding="utf-8")


def main() -> None:
    die_with_parent(int(sys.argv[1]))
    fix_addresses()
    answer_request()


if __name__ == "__main__":
    main()
