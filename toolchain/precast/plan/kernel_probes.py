"""Kernels whose text does not say enough: computed configs, defaults that are no literals.

In: a kernel's source and targets. Out: what its module says when it is imported, by child processes, one for each
source; kept in `build/kernels/` until the source, what its import read, the settings or Triton are others.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from precast.bounded import read_bounded
from precast.codec import from_json, to_json
from precast.digest import digest_text, unseal
from precast.errors import Place, PlanError, SpecError, relative_text
from precast.layout import KERNELS
from precast.passes.children import run_child
from precast.reads import INHERITED, Read, ReadKind, digest_now
from precast.scratch import Scratch
from precast.spec.imported import ProbeAnswer, ProbeFault, ProbeRequest
from precast.store import telling_disk_faults

TIME_LIMIT_S = 120.0


def read_imported(request: ProbeRequest, folder: Path, build: Path) -> ProbeAnswer:
    """The kernel as it is on each target; `SpecError` at the author's line when its module does not import.

    `folder` is the project's as the user gave it, for places.
    """
    name = re.sub(r"\W+", "_", request.source.function)[:40]
    file = build / Path(KERNELS).name / f"{name}-{digest_text(request.source.text)[:12]}.json"
    answer = _read_kept(file)
    if answer is None or answer.request != request.digest or not is_fresh(answer, Path(request.project)):
        answer = run_probe(request, folder, file)
    if answer.fault:
        raise _error_of(answer.fault, request.project, folder)
    return answer


def _read_kept(file: Path) -> ProbeAnswer | None:
    try:
        answer = _read_answer(file)
    except Exception:  # absent, damaged, or written by another version: made anew
        return None
    return None if answer.fault else answer


def _read_answer(file: Path) -> ProbeAnswer:
    return from_json(unseal(read_bounded(file)) or b"", ProbeAnswer)


def is_fresh(answer: ProbeAnswer, project: Path) -> bool:
    """Whether all that the module read would be the same now."""
    return all(digest_now(read, project, os.environ) == read.digest for read in reads_of(answer))


def reads_of(answer: ProbeAnswer) -> frozenset[Read]:
    """What the module read; other variables are fixed, or settings, which are in the request."""
    reads = (read for each in answer.targets for read in each.reads)
    return frozenset(each for each in reads if each.kind is not ReadKind.ENVIRONMENT or each.name in INHERITED)


def run_probe(request: ProbeRequest, folder: Path, file: Path) -> ProbeAnswer:
    """Runs the probe's child process; `PlanError` when that itself dies."""
    with telling_disk_faults(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
    with Scratch() as scratch:
        asked = scratch / "request.json"
        asked.write_text(to_json(request), encoding="utf-8")
        done = run_child("precast.engines.triton.kernel_probe", [str(asked), str(file.resolve())], TIME_LIMIT_S)
    if done.code is None:
        message = f"the module of `{request.source.text}` does not import within {TIME_LIMIT_S:.0f} s"
        raise PlanError(message, _start_of(request, folder))
    if not file.is_file():
        words = done.words.splitlines()
        told = relative_text(words[-1] if words else done.ending, Path(request.project))
        message = f"the module of `{request.source.text}` ends the process that imports it: {told}"
        raise PlanError(message, _start_of(request, folder))
    return _read_answer(file)


def _start_of(request: ProbeRequest, folder: Path) -> Place:
    return Place(str(folder / request.source.file), 1)


def _error_of(fault: ProbeFault, project: str, folder: Path) -> SpecError:
    where = Place(str(folder / fault.file), fault.line, fault.column) if fault.file else None
    return SpecError(relative_text(fault.message, project), where, fault.hint)
