"""A stand-in engine that compiles nothing: for tests of graph, store and workers at sizes where compilers are slow.

In: a job, as for any engine. Out: texts made of digests, so that equal inputs give equal bytes and a change of the
kernel's file changes all of them. A project asks for it with `PRECAST_ENGINE = "stand-in"` in `[tool.precast.triton]`.
Comment lines of the kernel's file steer it: `# stand-in: sleep 0.2`, `# stand-in: fail ttgir`,
`# stand-in: crash llir`, `# stand-in: hang llir`, `# stand-in: grow llir`, `# stand-in: chance llir` (another text each
time), `# stand-in: data tables/a.json` (a file that is read); `# stand-in: run mischief.py` executes that file of the
kernels' folder in each stage. Other comment lines change nothing.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from precast.artifact import Facts
from precast.engines import Announce, Engine, SourceText, StageFailure, StageInputs, StageOutput
from precast.engines.parameters import list_parameters
from precast.errors import Place
from precast.job import Job
from precast.reads import ABSENT, Read, ReadKind
from precast.spec.closure import INSTALLED
from precast.store import digest_bytes
from precast.target import Backend

_ORDER = re.compile(r"^# stand-in: (\w+) ([\w./]+)$", re.MULTILINE)
_COMMENT = re.compile(r"^#(?! stand-in:).*\n", re.MULTILINE)


class StandinEngine:
    """Makes bytes out of digests and does what the kernel's file orders."""

    def read_source(self, job: Job) -> SourceText:
        """The kernel's files and the data that they order, without comments, and the unit's text."""
        project = Path(job.project)
        names = [name for name, _ in job.sources if not name.startswith(INSTALLED)]
        sources = [(project / name).read_bytes() for name in names]
        reads = [Read(ReadKind.SOURCE, name, digest_bytes(data)) for name, data in zip(names, sources, strict=True)]
        own = (project / job.unit.source.file).read_bytes().decode()
        for name in (subject for verb, subject in _ORDER.findall(own) if verb == "data"):
            data = (project / name).read_bytes() if (project / name).exists() else b""
            reads.append(Read(ReadKind.DATA, name, digest_bytes(data) if data else ABSENT))
            sources.append(data)
        text = "".join(_COMMENT.sub("", data.decode()) for data in sources)
        made = f"{text}\n{job.unit}\n{job.unit.options}\n".encode()
        return SourceText(StageOutput(made), (job.unit.source.file,), reads=tuple(sorted(reads)))

    def run_stage(self, inputs: StageInputs, data: bytes, project: Path, announce: Announce) -> StageOutput:
        """One line for the stage, which every input changes; orders of the kernel's file are passed on and obeyed."""
        orders = _ORDER.findall(data.decode())
        for verb, subject in orders:
            if verb in ("sleep", "run") or subject == inputs.stage:
                obey(verb, subject, project)
        kept = "".join(f"# stand-in: {verb} {subject}\n" for verb, subject in orders)
        chance = os.urandom(8).hex() if ("chance", inputs.stage) in orders else ""
        return StageOutput(f"{kept}{inputs.stage} of {inputs.key}{chance}\n".encode())

    def prepare(self, inputs: StageInputs, project: Path) -> None:
        """Nothing is needed."""

    def needs_fixed_addresses(self, inputs: StageInputs, data: bytes) -> bool:
        return False

    def find_place(self, job: Job, walked: Sequence[StageInputs], failure: StageFailure) -> Place | None:
        """The first line: what the kernel's file orders may stand anywhere."""
        return Place(job.unit.source.file, 1)

    def read_facts(self, job: Job, stages: Mapping[str, StageOutput]) -> Facts:
        """What a launcher needs to be generated; the image itself cannot run."""
        unit = job.unit
        hidden = () if unit.target.kind is Backend.CPU else (("global_scratch", "*i8"), ("profile_scratch", "*i8"))
        symbol = unit.slug.replace("-", "_") if unit.target.kind is Backend.CPU else unit.source.function
        size = len(stages[unit.target.image_suffix].data)
        source = (Path(job.project) / unit.source.file).read_text(encoding="utf-8")
        digest = digest_bytes(_COMMENT.sub("", source).encode())
        parameters = tuple(list_parameters(unit, {}, (), hidden))
        return Facts(symbol, parameters, code_bytes=size, source_digest=digest)


def obey(verb: str, subject: str, project: Path) -> None:
    """Does to this process what a compiler at fault would."""
    if verb == "sleep":
        time.sleep(float(subject))
    elif verb == "run":
        text = Path(project, "kernels", subject).read_text(encoding="utf-8")
        exec(compile(text, subject, "exec"), {"__name__": subject})
    elif verb in ("data", "chance"):
        pass  # told with the source, or of the stage's text
    elif verb == "fail":
        raise StageFailure(f"the stand-in refuses {subject}")
    elif verb == "crash":
        os.write(2, b"LLVM ERROR: the stand-in was told to crash\n")
        os.abort()
    elif verb == "hang":
        time.sleep(1e6)
    elif verb == "grow":
        held = os.urandom(1 << 20) * 1024  # and no more: nobody knows how soon it is ended
        time.sleep(1e6)
        del held
    else:
        raise StageFailure(f"the stand-in knows no order `{verb}`")


def make_engine(open_engine: Callable[[str], Engine]) -> StandinEngine:
    """The engine; it needs no other."""
    return StandinEngine()
