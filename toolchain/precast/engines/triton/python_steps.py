"""Python passes on upstream modules: one call, its finding, its buffers, and its failures in the author's terms.

In: a definition and the module at its anchor. Out: the module changed in place; `PassFailure` when it could not be.
"""

from __future__ import annotations

import io
import sys
import threading
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.artifact import Finding
from precast.engines import StageFailure
from precast.engines.triton.capture import traced
from precast.engines.triton.kernel_types import CHANGE_HINT, explain_change, public_in_module
from precast.engines.triton.surroundings import kept_surroundings
from precast.errors import Place, PrecastError
from precast.passes.context import PassContext
from precast.passes.definitions import Replace
from precast.passes.elementwise import ElementwiseOp
from precast.passes.faults import describe_error, find_line
from precast.passes.findings import record_finding
from precast.passes.plan import SelectedPass


class PassFailure(StageFailure):
    """An outside pass failed, or left IR that is not valid. `ir` is the text that it was given."""

    def __init__(
        self, message: str, pass_name: str, ir: str, where: Place | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, where, hint, pass_name=pass_name)
        self.ir = ir


@dataclass(frozen=True)
class PythonStep:
    """A Python pass about to run: `text` is the IR that it is given, for messages and reproducers."""

    selected: SelectedPass
    context: PassContext
    text: str

    def run(self, module: Any) -> Finding | None:
        """Runs the pass on an `mlir.ir.Module`, in its context. It leaves the kernel's parameters as they are, or more
        by the buffers that it asked for."""
        use, before, threads = self.selected.use, public_in_module(module), set(threading.enumerate())
        finding = self._run(module)
        left = [each.name for each in threading.enumerate() if each not in threads]
        if left:
            message = f"it left a thread running: {', '.join(left)}"
            raise PassFailure(message, use.name, self.text, hint="wait for it before `run` returns")
        problem = explain_change(before, public_in_module(module), len(self.context.buffers))
        if problem:
            raise PassFailure(problem, use.name, self.text, hint=CHANGE_HINT)
        return finding

    def _run(self, module: Any) -> Finding | None:
        use, printed = self.selected.use, _Printed()
        try:
            surroundings = (traced(), kept_surroundings(), redirect_stdout(printed), self.selected.inside())
            with ExitStack() as stack:
                for each in (*surroundings, module.context, module.operation.location):
                    stack.enter_context(each)
                return self._call(module)
        except PrecastError as error:
            raise PassFailure(error.message, use.name, self.text, error.where, error.hint or printed.hint) from error
        except MemoryError as error:
            raise PassFailure("it ran out of memory", use.name, self.text, place_of(error, self.selected)) from error
        except BaseException as error:  # the author's code may raise anything, and may ask the interpreter to end
            place = place_of(error, self.selected)
            raise PassFailure(describe_error(error), use.name, self.text, place, printed.hint) from error

    def _call(self, module: Any) -> Finding | None:
        definition = self.selected.definition
        if isinstance(definition, Replace):
            definition = definition.by
        if isinstance(definition, ElementwiseOp):
            from precast.engines.triton.elementwise import lower_elementwise

            lower_elementwise(module, definition, self.context.target)
            return None
        return record_finding(self.selected.use.name, definition.run(module, self.context))


class _Printed(io.StringIO):
    """What a pass prints: kept for its failure, and passed on to where a worker keeps all output."""

    def write(self, text: str) -> int:
        sys.stderr.write(text)
        return super().write(text)

    @property
    def hint(self) -> str | None:
        """The last line, as a failure's hint tells it."""
        lines = self.getvalue().strip().splitlines()
        return f"it printed: {lines[-1]}" if lines else None


def place_of(error: BaseException, selected: SelectedPass) -> Place | None:
    """The innermost line of the plugin's own files that the exception came through."""
    if selected.namespace is None:
        return None
    found = find_line(error, {Path(file) for file in selected.namespace.files})
    return Place(selected.namespace.name_file(found[0]), found[1]) if found else None
