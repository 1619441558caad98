"""A stand-in engine that compiles nothing: for tests of graph, store and workers at sizes where compilers are slow.

In: a job, as for any engine. Out: texts made of digests, so that equal inputs give equal bytes and a change of the
kernel's file changes all of them. A project asks for it with `PRECAST_ENGINE = "stand-in"` in `[tool.precast.triton]`.
Comment lines of the kernel's file steer it: `# stand-in: sleep 0.2`, `# stand-in: fail ttgir`,
`# stand-in: crash llir`, `# stand-in: hang llir`, `# stand-in: grow llir`; `# stand-in: run mischief.py` executes that
file of the kernels' folder in each stage. Other comment lines change nothing.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from precast.artifact import Facts
from precast.engines import Announce, SourceText, StageFailure, StageOutput
from precast.engines.parameters import list_parameters
from precast.errors import Place
from precast.job import Job
from precast.store import digest_bytes
from precast.target import Backend

NAME = "stand-in"
_ORDER = re.compile(r"^# stand-in: (\w+) ([\w.]+)$", re.MULTILINE)
_COMMENT = re.compile(r"^#(?! stand-in:).*\n", re.MULTILINE)


class StandinEngine:
    """Makes bytes out of digests and does what the kernel's file orders."""

    def read_source(self, job: Job) -> SourceText:
        """The kernel's file without comments, and the unit's text."""
        path = Path(job.project, job.unit.source.file)
        text = _COMMENT.sub("", path.read_text())
        return SourceText(StageOutput(f"{text}\n{job.unit}\n{job.unit.options}\n".encode()), (job.unit.source.file,))

    def stage_key(self, job: Job, stage: str, source: StageOutput) -> str:
        passes = [(use.name, use.digest, str(use.options)) for use in job.passes if use.stage == stage]
        return digest_bytes(f"{NAME} {stage} {job.unit.target} {passes} {digest_bytes(source.data)}".encode())

    def run_stage(self, job: Job, stage: str, source: StageOutput, announce: Announce) -> StageOutput:
        """One line for the stage; orders of the kernel's file are passed on and obeyed."""
        orders = _ORDER.findall(source.text)
        for verb, subject in orders:
            if verb in ("sleep", "run") or subject == stage:
                obey(verb, subject, job)
        kept = "".join(f"# stand-in: {verb} {subject}\n" for verb, subject in orders)
        return StageOutput(f"{kept}{stage} of {digest_bytes(source.data)}\n".encode())

    def needs_fixed_addresses(self, job: Job, stage: str, source: StageOutput) -> bool:
        return False

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """What a launcher needs to be generated; the image itself cannot run."""
        unit = job.unit
        hidden = () if unit.target.kind is Backend.CPU else (("global_scratch", "*i8"), ("profile_scratch", "*i8"))
        symbol = unit.slug.replace("-", "_") if unit.target.kind is Backend.CPU else unit.source.function
        size = len(stages[unit.target.image_suffix].data)
        return Facts(symbol, tuple(list_parameters(unit, {}, (), hidden)), code_bytes=size)


def obey(verb: str, subject: str, job: Job) -> None:
    """Does to this process what a compiler at fault would."""
    if verb == "sleep":
        time.sleep(float(subject))
    elif verb == "run":
        exec(compile(Path(job.project, "kernels", subject).read_text(), subject, "exec"), {"__name__": subject})
    elif verb == "fail":
        raise StageFailure(f"the stand-in refuses {subject}", Place(job.unit.source.file, 1))
    elif verb == "crash":
        os.write(2, b"LLVM ERROR: the stand-in was told to crash\n")
        os.abort()
    elif verb == "hang":
        time.sleep(1e6)
    elif verb == "grow":
        held = []
        while True:
            held.append(os.urandom(1 << 20) * 32)
    else:
        raise StageFailure(f"the stand-in knows no order `{verb}`")
