"""Python passes on upstream modules: one call, its finding, its buffers, and its failures in the author's terms.

In: a definition and the module at its anchor. Out: the module changed in place; `PassFailure` when it could not be.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from precast.artifact import Finding
from precast.engines import StageFailure
from precast.errors import Place, PrecastError
from precast.passes.context import PassContext
from precast.passes.definitions import Replace
from precast.passes.elementwise import ElementwiseOp
from precast.passes.findings import record_finding
from precast.passes.plan import SelectedPass
from precast.passes.selection import PassUse


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
        """Runs the pass on an `mlir.ir.Module`, in its context."""
        use = self.selected.use
        try:
            with module.context, module.operation.location:
                return self._call(module)
        except PrecastError as error:
            raise PassFailure(error.message, use.name, self.text, error.where, error.hint) from error
        except Exception as error:  # the author's code may raise anything
            raise PassFailure(describe_error(error), use.name, self.text, place_of(error, use)) from error

    def _call(self, module: Any) -> Finding | None:
        definition = self.selected.definition
        if isinstance(definition, Replace):
            definition = definition.by
        if isinstance(definition, ElementwiseOp):
            from precast.engines.triton.elementwise import lower_elementwise

            lower_elementwise(module, definition, self.context.target)
            return None
        return record_finding(self.selected.use.name, definition.run(module, self.context))


def describe_error(error: BaseException) -> str:
    """An exception from a plugin's own code, in a line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def place_of(error: BaseException, use: PassUse) -> Place | None:
    """The innermost line of the plugin's own files that the exception came through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for file in use.files:
            if frame.filename.endswith(f"/{file.replace(':', '/')}"):
                return Place(file, frame.lineno or 1)
    return None
