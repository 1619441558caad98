"""`precast build`: asks the index whether anything moved, and only then has SCons run what is stale.

In: a project folder and a request. Out: the summary; `BuildFailed` with every failure when a step failed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from precast.bounded import read_bounded
from precast.errors import BuildFailed, ToolError
from precast.graph.collect import remove_unfinished
from precast.graph.direct import needs_no_graph, run_directly
from precast.graph.keeping import keep_snapshot
from precast.graph.lock import locked
from precast.graph.narrow import plan_narrowly
from precast.graph.request import Request
from precast.graph.session import Session, start_executor
from precast.graph.snapshot import Found
from precast.graph.unfinished import end_writing
from precast.layout import BUILD, SCONSTRUCT
from precast.progress.events import Reporter, Summary
from precast.project import Project, read_project
from precast.scratch import remove_abandoned
from precast.store import reason_of, telling_disk_faults


def build(
    folder: Path,
    request: Request,
    reporter: Reporter,
    look: Callable[[Session], None] | None = None,
    earlier: Found | None = None,
) -> Summary:
    """Builds the project in `folder`, or finds that nothing moved. Imports SCons only in the first case. `look` is
    called with what is stale before any of it is made; `earlier` is a build of the same that was found just now."""
    project = read_project(folder)
    with locked(project.folder / BUILD):
        remove_unfinished(project.folder)
        remove_abandoned()
        session = _open_session(project, request, reporter, earlier)
        try:
            with _heeding_signals(session):
                if session.build_script_moved():  # it may build what plans depend on
                    _run_graph(session)
                elif session.stale:
                    if session.sharing is None:
                        session.prepare()
                    if look is not None:
                        look(session)
                    run = run_directly if needs_no_graph(session) else _run_graph
                    run(session)
                if request.check is not None and not session.failures and not session.interrupted:
                    session.check(request.check)
                if not session.interrupted:
                    session.share()
            if session.interrupted:
                raise KeyboardInterrupt
            summary = session.finish()
        except BaseException as error:
            session.give_up(error)
            if isinstance(error, KeyboardInterrupt) and session.failures:
                raise error from BuildFailed(tuple(session.failures))  # what had failed before is told
            raise
        else:
            session.end_workers()  # what a build leaves that is killed from here on, the next one does not look for
            if not session.failures:
                keep_snapshot(session, summary)
                end_writing(session.folder)
        finally:
            session.close()
    if session.failures:
        raise BuildFailed(tuple(session.failures))
    return summary


def _open_session(project: Project, request: Request, reporter: Reporter, earlier: Found | None) -> Session:
    """A session of the kernels that may be stale, where that can be told, else of all."""
    narrow = plan_narrowly(project, request, earlier) if earlier is not None else None
    if narrow is not None:
        session = Session(project, request, reporter, start_executor, narrow=narrow)
        try:
            if session.sharing is None:
                session.prepare()  # while the parts are read
            if narrow.parts is not None:
                return session
        except BaseException:
            session.close()
            raise
        session.close()
    return Session(project, request, reporter, start_executor)


@contextlib.contextmanager
def preview(folder: Path, request: Request, reporter: Reporter) -> Iterator[Session]:
    """A session that is asked what is stale and makes nothing of it."""
    project = read_project(folder)
    with locked(project.folder / BUILD):
        session = Session(project, request, reporter, start_executor)
        try:
            yield session
        finally:
            session.close()


@contextlib.contextmanager
def _heeding_signals(session: Session) -> Iterator[None]:
    """Has the signals that end the process end running jobs first, wherever they find the main thread: what they raise
    there may be caught by others. While SCons runs jobs it does the same with handlers of its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def interrupt(number: int, frame: FrameType | None) -> None:
        session.interrupt()
        then = before[signal.Signals(number)]
        if callable(then):
            then(number, frame)

    ours = [number for number in before if callable(before[number])]  # else nobody asked to be told
    if threading.current_thread() is not threading.main_thread():
        ours = []
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _run_graph(session: Session) -> None:
    """Has SCons build the release; what SCons and the C compiler print goes to standard error."""
    from precast.graph import scons_surface

    if scons_surface.FLAGS_VARIABLE in os.environ:
        session.warn(f"{scons_surface.FLAGS_VARIABLE} in the environment: ignored; only plain `scons` hears it")
    scons_surface.install_session(session)
    arguments = ["-Q", "-s", f"-j{session.executor.room}", "-C", str(session.folder)]
    arguments += ["-k"] if session.request.keep_going else []
    script = session.folder / SCONSTRUCT
    if not script.exists():
        script = Path(__file__).parent / "toolpath" / "default_sconstruct.py"
        arguments += ["-f", str(script)]
    errors = sys.stderr
    try:
        read_bounded(script)  # as nothing else is read: not what is a pipe, or has no end
    except OSError as error:
        raise ToolError(f"cannot read `{script.name}`: {reason_of(error)}") from None
    with telling_disk_faults(session.folder / BUILD):
        code = scons_surface.run_scons(arguments, script.name, lambda line: session.tell_output(line, errors))
    if session.fault is not None:
        raise session.fault
    if not code and not session.begun:
        raise ToolError(f"{SCONSTRUCT} does not call `env.Precast()`", hint="`precast init` shows one that does")
    if code and not session.failures and not session.interrupted:
        raise ToolError(f"SCons ended with exit code {code}", hint="what it said stands above")
