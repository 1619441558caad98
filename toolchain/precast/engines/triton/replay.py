"""Replays a stage's effective pipeline: Triton's own steps in native managers, outside passes one by one.

In: the runs that a stage function asks for, as it asks. Out: the module behind the handle, exchanged where a Python
pass ran; what ran, what was found, what buffers were asked for. IR is verified after each outside pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from triton._C import libtriton

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.engines import Announce
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.kernel_types import CHANGE_HINT, explain_change, public_in_text
from precast.engines.triton.pipeline import find_builtin, resolve_arguments
from precast.engines.triton.python_steps import PassFailure, PythonStep
from precast.engines.triton.recording import ModuleHandle
from precast.errors import BugError
from precast.passes.context import PassContext
from precast.passes.pipeline import Pipeline, Step
from precast.passes.plan import SelectedPass, describe_run

_CALL = re.compile(r"^\s*\d+\. \w+\((.*)\) -> None", re.MULTILINE)
_KIND = re.compile(r"arg\d*: (?:[\w.]*\.)?(\w+)")


@dataclass
class StageReplay:
    """One stage's replay. A conductor for `recording`: `own` is what Triton will ask for, `effective` what it gets."""

    own: Pipeline
    effective: Pipeline
    options: Any
    passes: Mapping[str, SelectedPass]
    make_context: Callable[[str], PassContext]
    announce: Announce
    override: str = ""  # the saved pipeline that took the place of Triton's own steps
    ran: list[PassRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    buffers: list[DeviceBuffer] = field(default_factory=list)
    position: int = 0

    def leave_mlir(self) -> None:
        """Nothing to do: what follows is LLVM's."""

    def run(self, module: Any, name: str, steps: tuple[Step, ...]) -> None:
        """Runs the steps of the effective pipeline that stand for this run of the stage function."""
        handle = module if isinstance(module, ModuleHandle) else ModuleHandle(module)
        self._check_recording(name, steps)
        run = self.effective.runs[self.position]
        self.position += 1
        for runner, group in groupby(run.steps, key=_runner):
            chosen = list(group)
            if runner == "python":
                self._run_python(handle, chosen)
            elif runner == "outside":
                self._run_outside(handle, name, chosen)
            elif self.override:
                self._run_saved(handle, name, chosen)
            else:
                run_steps(handle.module, name, chosen, self.options)
        if handle is not module and handle.module is not module:
            raise BugError("a stage function was called on a bare module while a Python pass stands in it")

    def _check_recording(self, name: str, steps: tuple[Step, ...]) -> None:
        expected = self.own.runs[self.position] if self.position < len(self.own.runs) else None
        listed = [(step.op, resolve_arguments(step, self.options)) for step in expected.steps] if expected else None
        if listed != [(step.op, step.args) for step in steps]:
            raise BugError(f"Triton's pipeline `{name}` of stage `{self.own.stage}` differs from its listing")

    def _run_saved(self, handle: ModuleHandle, name: str, steps: list[Step]) -> None:
        before = str(handle.module)
        self.announce(self.override, before)
        with capture_errors() as errors:
            problem = _attempt(partial(run_steps, handle.module, name, steps, self.options))
            reason = first_error(errors.read()) or problem
        if problem:
            raise PassFailure(reason, self.override, before)
        self.announce("")

    def _run_outside(self, handle: ModuleHandle, name: str, steps: list[Step]) -> None:
        for step in steps:
            before = str(handle.module)
            self.announce(step.by, before)
            with capture_errors() as errors:
                problem = _attempt(partial(run_steps, handle.module, name, [step], self.options))
                if not problem and not handle.module.verify():
                    problem = "it left IR that is not valid"
                reason = first_error(errors.read()) or problem
            if problem:
                raise PassFailure(reason, step.by, before)
            changed = explain_change(public_in_text(before), public_in_text(str(handle.module)))
            if changed:
                raise PassFailure(changed, step.by, before, hint=CHANGE_HINT)
            self._end(step)

    def _run_python(self, handle: ModuleHandle, steps: list[Step]) -> None:
        """Adjacent Python passes share one way out; each one's output is parsed by libtriton, which verifies it."""
        from precast.engines.triton import bridge

        text = bridge.print_generic(handle.module)
        module = bridge.parse_upstream(text, self.own.stage)
        for step in steps:
            self.announce(step.by, text)
            context = self.make_context(step.by)
            finding = PythonStep(self.passes[step.by], context, text).run(module)
            before, text = text, bridge.print_upstream(module)
            with capture_errors() as errors:
                problem = _attempt(partial(_exchange, handle, text))
                reason = first_error(errors.read()) or problem
            if problem:
                raise PassFailure(f"the IR it left is not valid: {reason}", step.by, before)
            self.findings += [finding] if finding else []
            self.buffers += context.buffers
            self._end(step)

    def _end(self, step: Step) -> None:
        self.announce("")
        self.ran.append(describe_run(self.passes[step.by].use))


def _runner(step: Step) -> str:
    """Who runs a step: one native manager for Triton's own in a row, one for each outside one, or Python."""
    if step.kind == "python":
        return "python"
    return "outside" if step.by else "own"


def run_steps(module: Any, name: str, steps: list[Step], options: Any) -> None:
    """Runs native and built-in steps in one native manager. Raises what Triton raises, and `LookupError`."""
    manager = libtriton.ir.pass_manager(module.context)
    manager.enable_debug()
    for step in steps:
        args = resolve_arguments(step, options)
        if step.op == "instrument":
            _instrument(manager, str(args[0]), module.context, options.backend_name)
        elif step.kind == "native":
            from precast.engines.triton.native import find_native

            find_native(step.op.removeprefix("plugin."))(manager, list(args))
        else:
            find_builtin(step.op)(manager, *args)
    manager.run(module, name)


def _instrument(manager: Any, point: str, context: Any, backend_name: str) -> None:
    from triton._instrumentation import instrument

    instrument(manager, point=point, backend={"cuda": "nvidia", "hip": "amd"}[backend_name], context=context)


def _exchange(handle: ModuleHandle, text: str) -> None:
    """Puts the module that `text` says behind the handle, in the context of the one before."""
    from precast.engines.triton.bridge import parse_triton

    handle.module = parse_triton(text, handle.module.context)


def _attempt(action: Callable[[], None]) -> str:
    """Why `action` failed, or ""."""
    try:
        action()
    except LookupError as error:
        return f"there is no such pass: {error.args[0]}"
    except TypeError as error:
        return f"wrong arguments: {_signature(str(error))}"
    except RuntimeError as error:
        return " ".join(str(error).split())
    return ""


def _signature(message: str) -> str:
    """The types of arguments that nanobind says a pass takes, without the manager; else the message."""
    kinds = [", ".join(_KIND.findall(call)[1:]) for call in _CALL.findall(message)]
    return f"it takes ({') or ('.join(kinds)})" if kinds else " ".join(message.split())
