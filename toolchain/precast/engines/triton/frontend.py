"""The front end: a unit's jit function to the first IR text.

In: a loaded kernel and a unit. Out: ttir or glir text as Triton's front end makes it, before any pass. Errors name the
user's own line, in whatever function of theirs it is.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton.compiler.errors import CompilationError

from precast.engines import StageFailure, StageOutput
from precast.engines.triton import v3_9
from precast.engines.triton.assembler import find_error, find_source_line
from precast.engines.triton.capture import capture_errors, first_error
from precast.engines.triton.imports import is_installed
from precast.engines.triton.load import kernel_places
from precast.engines.triton.locations import remap_locations
from precast.engines.triton.options import specialize
from precast.errors import Place
from precast.job import Job

_WRAPPED = re.compile(r"^(\w+)\((?P<quote>['\"])(?P<text>.*)(?P=quote),?\)$", re.DOTALL)


@dataclass(frozen=True)
class FrontEndText:
    """What the front end made, and what it warned of."""

    text: str
    warnings: tuple[str, ...]


def emit_source(
    function: Any, job: Job, options: Any, backend: Any, context: Any, *, located: bool = False
) -> FrontEndText:
    """Runs Triton's front end on a unit, in an MLIR context; `StageFailure` at the user's line when it refuses.

    The text has portable locations where the job wants line information, else none. With `located` it says where
    on this machine each operation comes from: for diagnostics of later stages.
    """
    fixed = specialize(job.unit, function)
    source = v3_9.make_source(function, fixed.signature, fixed.constants, fixed.attributes)
    project = Path(job.project)
    with warnings.catch_warnings(record=True) as caught, capture_errors() as errors, v3_9.line_info():
        warnings.simplefilter("always")
        try:
            module = v3_9.emit_module(source, job.unit.target, options, backend, context)
            v3_9.fix_parameters(module, fixed.signature, fixed.values, context)
        except (StageFailure, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # Python code of the author's runs here, and may even exit
            raise explain(error, errors.read(), function, project) from error
    text = v3_9.print_module(module, locations=located or job.line_info)
    if not located:
        text = remap_locations(text, project, [Path(each) for each in job.python_path])
    return FrontEndText(text, tuple(dict.fromkeys(str(each.message) for each in caught)))


def explain(error: BaseException, written: str, function: Any, project: Path) -> StageFailure:
    """A front-end error in the user's terms: the innermost line of code for kernels, and what was wrong there.

    When that is in an installed package, the hint names the project's own line that leads there.
    """
    chain = list(_chain(error))
    places = [
        place for place in (_place_in_text(written, project), *(_place_of(each, project) for each in chain)) if place
    ]
    last, root = chain[-1], _root_of(error)
    raised = [] if isinstance(root, CompilationError) else kernel_places(root, project, Path(function.file_name))
    places += raised
    own = [each for each in places if not Path(each.file).is_absolute() and not is_installed(Path(each.file))]
    place = places[-1] if places else Place(_relative(function.file_name, project), function.def_file_line_number)
    hint = f"it is reached from {own[-1]}" if own and place not in own else None
    message = _message(last) or f"{type(last).__name__}: Triton's front end refuses this"
    if raised:
        message = f"{type(root).__name__}: {root}".rstrip(": ")
    note = first_error(written)
    return StageFailure(note if note and not isinstance(last, CompilationError) else message, place, hint)


def _root_of(error: BaseException) -> BaseException:
    """The first cause of an error."""
    seen: list[BaseException] = []
    while error.__cause__ is not None and error not in seen:
        seen.append(error)
        error = error.__cause__
    return error


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes that Triton raised, outermost first."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__
    errors = [each for each in found if isinstance(each, CompilationError)]
    return list(errors) or [error]


def _message(error: BaseException) -> str:
    """What an error says, without the excerpt of source and the type that Triton puts around it."""
    text = error.error_message if isinstance(error, CompilationError) else str(error)
    match = _WRAPPED.match(text or "")
    if match is None:
        return text or ""
    return match["text"].replace("\\'", "'").replace("\\n", "\n")


def _place_of(error: BaseException, project: Path) -> Place | None:
    """The line that a `CompilationError` is about; None when it is in Triton's own library."""
    node = getattr(error, "node", None)
    function = v3_9.find_function(getattr(error, "src", None) or "")
    if function is None or node is None or not hasattr(node, "lineno"):
        return None
    if function.__module__.partition(".")[0] == "triton":
        return None
    line = function.def_file_line_number + node.lineno - 1
    return Place(_relative(function.file_name, project), line, function.def_file_col_number + node.col_offset)


_DIAGNOSTIC = re.compile(r'^(?:loc\()?"?(?P<file>/[^":\n]+)"?:(?P<line>\d+):(?P<column>\d+)\)?: error: ', re.MULTILINE)


def _place_in_text(text: str, project: Path) -> Place | None:
    """The first line of the project that a native diagnostic names."""
    for match in _DIAGNOSTIC.finditer(text):
        if Path(match["file"]).is_relative_to(project):
            return Place(_relative(match["file"], project), int(match["line"]), int(match["column"]))
    return None


def find_place(written: str, message: str, source: StageOutput, project: Path) -> Place | None:
    """The user's line that a later stage refused, when its input says where everything comes from.

    `written` is what native code wrote, `message` what was raised, `source` the stage's input.
    """
    refused = find_error(message)
    found = find_source_line(source.text, refused.line) if refused else None
    if found is not None and Path(found[0]).is_relative_to(project):
        return Place(_relative(found[0], project), found[1], found[2])
    return _place_in_text(written, project)


def _relative(file: str, project: Path) -> str:
    path = Path(file)
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else file
