"""What a pool and its workers tell each other: one JSON line a message. In and out: frozen values through `codec`."""

from __future__ import annotations

from dataclasses import dataclass

from precast.artifact import UnitResult
from precast.job import Job
from precast.worker.failures import Failure

YES, NO = b"1", b"0"  # the pool's answers to what a worker wants


@dataclass(frozen=True)
class Request:
    """To a worker: run a job; or, with `stage`, only that stage on the text in the file `source`.

    The events that answer it carry its `token`, which no other request has and code from outside is not told.
    """

    job: Job
    stage: str = ""
    source: str = ""  # absolute path
    carry: str = "{}"
    token: str = ""
    asks: bool = False  # whether a stage that the store lacks may be asked for


@dataclass(frozen=True)
class Step:
    """What a worker is about to do, told before it does it, so that a crash has a place.

    `stage` is empty while the kernel's module is loaded and its front end runs. `source` and `pass_source` are the
    digests in the store of what the stage, and the outside pass that is running in it, were given.
    """

    stage: str = ""
    pass_name: str = ""
    source: str = ""
    carry: str = "{}"
    pass_source: str = ""


@dataclass(frozen=True)
class Event:
    """From a worker. `kind`: `ready`, `step`, `wanted` (the stage key `key`; the pool answers with a line, `1` when the
    store has it now), `done` (a result, but for a single stage) or `failed`.

    `changed` is what the job has left otherwise than it was: the worker is then not to be used again.
    """

    kind: str
    step: Step | None = None
    result: UnitResult | None = None
    failure: Failure | None = None
    token: str = ""
    changed: tuple[str, ...] = ()
    key: str = ""
