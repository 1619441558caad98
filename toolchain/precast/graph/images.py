"""Units and what is put together of their images, many at once and without nodes of SCons.

In: a session. Out: what a graph of the same steps would leave, and tell. SCons takes milliseconds for each node, which
are worth it where a script may name it, or where a C compiler has to run.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed

from precast.errors import PrecastError
from precast.graph.running import run_step
from precast.graph.session import Session
from precast.graph.steps import Step


def make_units(session: Session) -> set[str]:
    """Makes the stale units, as many at once as the executor has room for; what those that failed would have left."""
    units = session.declared_units
    if not units:
        return set()
    with ThreadPoolExecutor(session.executor.room, "precast-step") as threads:
        running = {threads.submit(make_step, session, unit): unit for unit in units}
        try:
            return {path for done in as_completed(running) if not done.result() for path in running[done].outputs}
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def make_images(session: Session) -> None:
    """Makes the stale units, packs and selections; `CancelledError` when one of them failed, which is told by then."""
    lacking = make_units(session)
    for step in filter(session.is_declared, (*session.steps.packs, *session.steps.selections)):
        if lacking.isdisjoint(step.inputs):
            make_step(session, step)
    if session.failures or session.interrupted:
        raise CancelledError


def make_step(session: Session, step: Step) -> bool:
    """Makes a step, unless another one's failure ended the build; whether it could. What is wrong with it is the
    session's to tell."""
    if session.interrupted or (session.failures and not session.request.goes_on):
        return False
    if session.may_be_fresh(step) and session.is_fresh(step):  # what it is made of came out as it was
        return True
    try:
        with session.running(step):
            run_step(session, step)
    except CancelledError:  # another one failed before a worker had it
        return False
    except PrecastError as error:
        if not session.interrupted:  # the user knows
            session.fail(step.name, error)
        return False
    return True
