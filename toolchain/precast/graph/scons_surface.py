"""The private surfaces of SCons that Precast uses, all of them, for the pinned version.

In: steps and what makes them. Out: an action whose signature is ours to choose, a task that reports real starts and
ends, a decider that asks the index, and a signature file that may be damaged.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import SCons.Action
import SCons.Errors
import SCons.Node
import SCons.Node.FS
import SCons.Platform.posix
import SCons.SConsign
import SCons.Script
import SCons.Script.Main
import SCons.Subst
import SCons.Taskmaster
import SCons.Taskmaster.Job
import SCons.Tool.gcc

from precast.diagnostic import format_error
from precast.errors import Place, PrecastError, ToolError
from precast.graph.session import Session
from precast.graph.signatures import SignatureFile
from precast.store import reason_of

_File = SCons.Node.FS.File
FLAGS_VARIABLE = "SCONSFLAGS"  # words that SCons puts before those of its command line


class StepAction(SCons.Action.FunctionAction):  # type: ignore[misc]  # SCons has no types
    """Calls `make`. Signed by `name` alone: bytecode, which SCons would take, differs between Python versions and
    does not cover what the function calls; what a step depends on is in its key."""

    def __init__(self, name: str, make: Callable[[], object]) -> None:
        def execute(target: Any, source: Any, env: Any) -> None:
            make()

        super().__init__(_do_nothing, {"cmdstr": None})  # SCons spells out all that a function refers to
        self.execfunction = execute
        self._signature = name.encode()

    def get_presig(self, target: Any, source: Any, env: Any, executor: Any = None) -> bytes:
        return self._signature


def _do_nothing(target: Any, source: Any, env: Any) -> None:
    """Stands for a step's function while SCons takes a signature of it, which nobody asks for."""


class StepTask(SCons.Script.Main.BuildTask):  # type: ignore[misc]  # SCons has no types
    """A task that tells the session when its step starts, ends and fails; a step that is fresh is passed over."""

    session: ClassVar[Session]

    def execute(self) -> None:
        step = self.session.step_of(path_of(self.targets[0]))
        if step is None:
            super().execute()
        elif self.session.is_fresh(step):
            return
        elif not SCons.Action.execute_actions:  # scons -n
            self.display(f"would make {step.name}")
        else:
            with self.session.running(step):
                super().execute()

    def failed(self) -> None:
        if self.session.interrupted or self._was_dropped():  # the user knows
            self.do_failed()
            self.exc_clear()
            return
        build_error = SCons.Errors.convert_to_BuildError(self.exc_info()[1])
        build_error.node = build_error.node or self.node
        path = path_of(self.targets[0])
        step = self.session.step_of(path)
        error = _error_of(build_error, path)
        if error is None:
            self.session.fault = build_error.exc_info[1]
            if self.session.aloud:  # SCons prints the traceback; else the driver's caller does
                super().failed()
                return
        else:
            self.session.fail(step.name if step else path, error)
            if self.session.aloud:
                sys.stderr.write(format_error(error) + "\n")
        self.exception = (build_error, build_error, None)
        self.do_failed(build_error.exitstatus)
        self.exc_clear()

    def _was_dropped(self) -> bool:
        """Whether this is a unit that waited for a worker when another one failed, or a command that a terminal's
        interrupt ended, of which this process may hear later."""
        cause = SCons.Errors.convert_to_BuildError(self.exc_info()[1])
        dropped = bool(cause.exc_info and isinstance(cause.exc_info[1], CancelledError))
        return dropped or cause.status in (-signal.SIGINT, 128 + signal.SIGINT)


def _error_of(build_error: Any, path: str) -> PrecastError | None:
    """The user's error behind a failed task; None when the fault is ours."""
    cause = build_error.exc_info[1] if build_error.exc_info else None
    if isinstance(cause, PrecastError):
        return cause
    if cause is None or isinstance(cause, SCons.Errors.StopError | SCons.Errors.UserError):
        return ToolError(f"{path} was not made: {build_error.errstr}", hint="what the command said stands above")
    return None


def path_of(node: Any) -> str:
    """A node's path relative to the top folder, with `/`; an alias's name."""
    return str(node.get_internal_path() if isinstance(node, SCons.Node.FS.Base) else node)


def command_text(env: Any, command: str) -> str | None:
    """A command, or that of a variable, as SCons signs it: without files, and without what `$(` and `$)` hide. None for
    a variable that holds no text."""
    text = env.get(command, command)
    return str(env.subst(text, raw=SCons.Subst.SUBST_SIG)) if isinstance(text, str) else None


class Interrupt(SCons.Taskmaster.Job.InterruptState):  # type: ignore[misc]  # SCons has no types
    """SCons's note that a signal asked it to stop; it would wait for running jobs, which may take minutes."""

    session: ClassVar[Session]

    def set(self) -> None:
        super().set()
        self.session.interrupt()


def install_session(session: Session) -> None:
    """Has SCons run its tasks for `session`. SCons keeps one task class for the process, so there is one session."""
    SCons.Script.Main.BuildTask = type("SessionTask", (StepTask,), {"session": session})
    SCons.Taskmaster.Job.InterruptState = type("SessionInterrupt", (Interrupt,), {"session": session})


def installed_session() -> Session | None:
    session = getattr(SCons.Script.Main.BuildTask, "session", None)
    return session if isinstance(session, Session) else None


def make_decider(session: Session) -> Callable[[Any, Any, Any, Any], bool]:
    """Decides by the index for our steps, whatever dependency is asked about; by content for C files, whose outputs
    must also be what they were."""
    known: dict[str, bool] = {}

    def is_stale(path: str) -> bool:
        step = session.step_of(path)
        return session.is_damaged(path) if step is None else not session.is_fresh(step)

    def decide(dependency: Any, target: Any, previous: Any, repository_node: Any = None) -> bool:
        path = path_of(target)
        # All that feeds a target is finished before SCons asks about it, so the first answer stays true.
        if path not in known:
            known[path] = is_stale(path)
        if session.step_of(path) is not None:
            return known[path]
        # Asked in any case: SCons keeps the digest that is taken here, and without it compiles again the next time.
        changed = dependency.changed_content(target, previous, repository_node)
        return bool(changed) or known[path]

    return decide


def open_signatures(env: Any, file: Path) -> None:
    """Keeps SCons's signatures in `file`."""
    module = SimpleNamespace(open=lambda name, mode: SignatureFile(Path(name)))
    env.SConsignFile(str(file).replace("$", "$$"), module)


def build_now(env: Any, nodes: list[Any], is_known: Callable[[str], bool]) -> bool:
    """Builds nodes while the SConstruct is still being read, as SCons does for configure checks; whether it could.

    What is made on the way is taken as it lies there only where `is_known` says so of its path: SCons knows what it was
    made of, not what it is. Nor is it taken from a cache of SCons's, which hands out unchecked what it keeps.
    """
    for node in _made_for(nodes, scan=False):  # to scan what is still to be made would find too little, for good
        node.set_nocache()
        if not is_known(path_of(node)):
            node.set_always_build()
    task_class = SCons.Script.Main.BuildTask
    task_class.options = SCons.Script.Main.OptionsParser.values
    before = env.fs.getcwd()
    env.fs.chdir(env.fs.Top, change_os_dir=True)
    try:
        taskmaster = SCons.Taskmaster.Taskmaster(nodes, task_class)
        SCons.Taskmaster.Job.Jobs(1, taskmaster).run()
    finally:
        env.fs.chdir(before, change_os_dir=True)
    return all(node.get_state() in (SCons.Node.executed, SCons.Node.up_to_date) for node in nodes)


def always_build(env: Any, path: str) -> None:
    """Has a file made again, if somebody makes it."""
    node = env.fs.File(path if os.path.isabs(path) else f"#{path}")
    if node.has_builder():
        node.set_always_build()


def leaves_of(nodes: list[Any]) -> set[str]:
    """The files that nobody makes from which `nodes` are made, headers and tools included."""
    return {path_of(node) for node in _behind(nodes, scan=True) if isinstance(node, _File) and not node.has_builder()}


def made_for(nodes: list[Any]) -> set[str]:
    """The files that are made for `nodes`, themselves included."""
    return {path_of(node) for node in _made_for(nodes, scan=True) if isinstance(node, _File)}


def _made_for(nodes: list[Any], *, scan: bool) -> Iterator[Any]:
    return (node for node in _behind(nodes, scan=scan) if node.has_builder())


def _behind(nodes: list[Any], *, scan: bool) -> Iterator[Any]:
    """`nodes`, and all that they depend on. What is still to be made may be no file to SCons until then."""
    seen, waiting = set(nodes), list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        children = [child for child in node.all_children(scan) if child not in seen]
        seen.update(children)
        waiting += children


class Lines(io.StringIO):
    """A stream that hands on whole lines, from any thread."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say
        self._rest = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._say(line)
        return len(text)

    def end(self) -> None:
        """Hands on what no end of a line came after."""
        if self._rest:
            self.write("\n")


def _run_program(lines: Lines, words: list[str], environment: dict[str, str]) -> int:
    """A program's exit code. What it prints goes through a file: one that stays behind may keep a pipe open."""
    with tempfile.TemporaryFile() as output:
        code = subprocess.Popen(words, env=environment, stdout=output, stderr=subprocess.STDOUT).wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    lines.write(text if text.endswith("\n") or not text else f"{text}\n")
    return code


def _asked_once(detect_version: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """SCons starts a compiler five times for each environment, to be told its version."""
    told: dict[tuple[str, str], Any] = {}

    def ask(env: Any, compiler: Any) -> Any:
        key = str(env.subst(compiler)), str(env["ENV"])
        if key not in told:
            told[key] = detect_version(env, compiler)
        return told[key]

    return ask


def _tell_exception(script: str, tell: Callable[..., None]) -> None:
    """Tells of an exception that left SCons's script. SCons prints where in the script that was, or, if it read none,
    where in SCons; it does so on the standard error that there was when it was imported. What a disk refused is a
    `ToolError`."""
    error, trace = sys.exc_info()[1:]
    if not isinstance(error, OSError):
        tell(sys.stderr)
        return
    while trace and SCons.Script._SConscript.stack_bottom not in trace.tb_frame.f_locals:
        trace = trace.tb_next
    if trace is None:
        raise ToolError(f"cannot read `{script}`: {reason_of(error)}") from None
    about = f": {error.filename}" if error.filename else ""
    raise ToolError(f"{reason_of(error)}{about}", Place(script, trace.tb_lineno)) from None


@contextlib.contextmanager
def _replacing(owner: Any, **members: Any) -> Iterator[None]:
    before = {name: getattr(owner, name) for name in members}
    vars(owner).update(members)
    try:
        yield
    finally:
        vars(owner).update(before)


def run_scons(arguments: list[str], script: str, say: Callable[[str], None]) -> int:
    """Runs SCons in this process on a file of the name `script`, deaf to `SCONSFLAGS`; its exit code. `say` gets each
    line that it prints, or that a program which it runs prints: nothing writes where a bar is drawn."""
    lines = Lines(say)
    gcc, scripts = SCons.Tool.gcc, SCons.Script._SConscript
    tell = scripts.SConscript_exception
    try:
        with (
            _replacing(SCons.Platform.posix, exec_subprocess=partial(_run_program, lines)),
            _replacing(gcc, detect_version=_asked_once(gcc.detect_version)),
            _replacing(scripts, SConscript_exception=partial(_tell_exception, script, tell)),
            contextlib.redirect_stdout(lines),
            contextlib.redirect_stderr(lines),
        ):
            return _run_main(arguments)
    finally:
        lines.end()


def _run_main(arguments: list[str]) -> int:
    before, flags = sys.argv, os.environ.pop(FLAGS_VARIABLE, None)
    sys.argv = ["scons", *arguments]
    try:
        SCons.Script.main()
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):  # SCons makes exit code 2 of it
            raise KeyboardInterrupt from end
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
        os.environ |= {} if flags is None else {FLAGS_VARIABLE: flags}
    return 0
