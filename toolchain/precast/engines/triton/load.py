"""Loads a kernel's module as its author wrote it and finds the jit function that a spec names.

In: a `Source`, the project's folder, the folders where modules are found. Out: Triton's jit function and the project
files that its import really read. Packages with relative imports, siblings, installed helpers, factories and
decorators need nothing from the author; a module that cannot be imported is a `StageFailure` at the author's line.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from precast.engines import StageFailure
from precast.engines.source_digest import digest_source
from precast.engines.triton import v3_9
from precast.engines.triton.devices import Device
from precast.engines.triton.imports import ImportSession, SourceLoader, is_installed
from precast.engines.triton.reading import PRIVATE, ReadRecorder, Recording
from precast.engines.triton.stubs import Standin, StandinFunction, joining_metaclasses
from precast.engines.triton.wrapped import Wrapped, find_wrapped
from precast.errors import Place, nearest_hint
from precast.reads import ReadKind
from precast.spec.model import Source
from precast.target import Target

HOOK_WARNING = (
    "the kernel's module sets a hook on Triton's stages: it does nothing here; a build takes passes from "
    "[[tool.precast.pass]]"
)


@dataclass(frozen=True)
class Loaded:
    """A kernel's jit function, with what its module has read and asked so far."""

    function: Any
    tuner: Any  # @triton.autotune around it, or None
    recording: Recording
    device: Device
    warnings: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The project's own files that were executed: project-relative, sorted."""
        ran = (Path(each.name) for each in self.recording.reads() if each.kind is ReadKind.SOURCE)
        return tuple(file.as_posix() for file in ran if not file.is_absolute() and not is_installed(file))

    @cached_property
    def source_digest(self) -> str:
        """The digest by which a release finds a unit again for a call of the function itself."""
        return digest_source(self.function).text

    def serves(self, target: Target) -> bool:
        """Whether this is what loading for `target` would give: no file changed, and nobody asked for the target."""
        return (target == self.device.target or not self.device.was_asked) and self.recording.is_current()


class KernelLoader:
    """Loads kernels one after another and keeps the last module, which the next variant usually needs again.

    One for a process: what is imported is the process's.
    """

    def __init__(self) -> None:
        self._recorder = ReadRecorder()
        self._key: tuple[object, ...] = ()
        self._session: ImportSession | None = None
        self._loaded: Loaded | None = None

    def load(self, source: Source, project: Path, python_path: Sequence[Path], target: Target) -> Loaded:
        """The kernel that `source` names, as its module is on `target`.

        The import session stays open until another is loaded or `close`.
        """
        key = (source, project, tuple(python_path))
        if self._loaded is not None and key == self._key and self._loaded.serves(target):
            return self._loaded
        self.close()
        name, root = module_name(source, project)
        recording = Recording(project, [os.environ[each] for each in PRIVATE if each in os.environ])
        self._session = ImportSession([root, *python_path], recording, __file__)
        device = Device(target, self._session.seal)
        with answering(device), self._recorder.watching(recording):
            module = import_module(name, project / source.file, project, recording)
            found = find_kernel(module, source, project)
            warnings = (HOOK_WARNING,) if v3_9.has_stage_hook() else ()
        self._session.seal.closed = True
        self._session.note_packages()
        self._key, self._loaded = key, Loaded(found.function, found.tuner, recording, device, warnings)
        return self._loaded

    @contextlib.contextmanager
    def compiling(self, loaded: Loaded, target: Target) -> Iterator[None]:
        """For the front end's time: what the kernel's code reads and asks then is recorded too."""
        device = loaded.device.for_target(target)
        with self._recorder.watching(loaded.recording), v3_9.answering_for(device):
            yield

    def import_named(self, names: Iterable[str]) -> None:
        """Imports modules that constexprs name, as the kernel's own was."""
        session, loaded = self._session, self._loaded
        missing = [name for name in names if name not in sys.modules]
        if not missing or session is None or loaded is None:
            return
        session.seal.closed = False
        try:
            with answering(loaded.device), self._recorder.watching(loaded.recording):
                for name in missing:
                    _import_named(name)
        finally:
            session.seal.closed = True
        session.note_packages()

    def close(self) -> None:
        """Forgets the module that is loaded."""
        if self._session is not None:
            self._session.close()
            v3_9.forget_functions()
        self._key, self._session, self._loaded = (), None, None


@contextlib.contextmanager
def answering(device: Device) -> Iterator[None]:
    """In the block modules for kernels are imported: what they ask of a device they ask this one."""
    with device.answering_through_torch(), v3_9.answering_for(device), joining_metaclasses():
        yield


def _import_named(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # the module is the user's and may raise anything
        raise StageFailure(f"module `{name}`, which a constexpr names, does not import: {error}") from error


def module_name(source: Source, project: Path) -> tuple[str, Path]:
    """The dotted name to import a source by, and the folder to import it from.

    A file inside packages is imported as part of them, so that its relative imports work. A module without a file is
    one of an installed package.
    """
    if not source.file:
        return source.module, project
    file = (project / source.file).resolve()
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    name = source.module or ".".join(parts)
    if source.module:
        depth = name.count(".") + (file.name == "__init__.py")
        folder = file.parents[depth]
    return name, folder


def import_module(name: str, file: Path, project: Path, recording: Recording) -> types.ModuleType:
    """Imports the module `name`, which must be `file`; `StageFailure` at the author's line when it fails."""
    with telling_failures("the kernel's module does not import", project, file):
        if name in sys.modules and file != project:  # a module of the worker itself has the name of this file
            return _import_renamed(name, file, recording)
        return importlib.import_module(name)


def _import_renamed(name: str, file: Path, recording: Recording) -> types.ModuleType:
    """Imports a plain file whose name is taken, under one that is not."""
    other = f"kernel_{name.replace('.', '_')}"
    spec = importlib.util.spec_from_file_location(other, file, loader=SourceLoader(other, str(file), recording))
    assert spec is not None and spec.loader is not None
    module = sys.modules[other] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def telling_failures(what: str, project: Path, file: Path) -> Iterator[None]:
    """Whatever the author's code raises in the block, `SystemExit` too, is a `StageFailure` at the line that raised."""
    try:
        yield
    except (StageFailure, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        place, reached_from = find_places(error, project, file)
        hint = _import_hint(error) or (f"it is reached from {reached_from}" if reached_from else None)
        raise StageFailure(_describe(error, what), place, hint) from error


def _describe(error: BaseException, what: str) -> str:
    if isinstance(error, SyntaxError):
        return f"syntax error: {error.msg}"
    text = str(error).strip()
    return f"{what}: {type(error).__name__}: {text or type(error).__name__}"


def _import_hint(error: BaseException) -> str | None:
    if any(v3_9.is_launch(frame.f_code) for frame, _ in traceback.walk_tb(error.__traceback__)):
        return 'it launches a kernel while it is imported: keep what runs below `if __name__ == "__main__":`'
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "name the source as a module (`package.module:function`) and its folder in `pythonpath`"
    return None


def find_places(error: BaseException, project: Path, file: Path) -> tuple[Place, Place | None]:
    """The innermost line of code for kernels that an exception passed through, else the start of `file`.

    When that is in an installed package, also the innermost one of the project's own.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(relative_name(error.filename, project), error.lineno, max(error.offset or 1, 1)), None
    places = kernel_places(error, project, file)
    own = [place for place in places if not is_installed(Path(place.file)) and not Path(place.file).is_absolute()]
    start = Place(relative_name(str(file), project), 1)
    innermost = places[-1] if places else start
    return innermost, own[-1] if own and own[-1] != innermost and innermost not in own else None


def kernel_places(error: BaseException, project: Path, file: Path) -> list[Place]:
    """The lines of code for kernels that an exception passed through, innermost last."""
    frames = [each for each in traceback.walk_tb(error.__traceback__) if _is_for_kernels(each[0], project, file)]
    return [Place(relative_name(frame.f_code.co_filename, project), line) for frame, line in frames]


def _is_for_kernels(frame: types.FrameType, project: Path, file: Path) -> bool:
    """Whether a frame runs the project's code, or that of a package that a `SourceLoader` loaded."""
    path = Path(frame.f_code.co_filename)
    is_own = path == file or (path.is_relative_to(project) and not is_installed(path))
    return is_own or (path.is_absolute() and isinstance(frame.f_globals.get("__loader__"), SourceLoader))


def relative_name(file: str, project: Path) -> str:
    """A file's path as messages show it: relative to the project where it can be."""
    path = Path(file)
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else file


def find_kernel(module: types.ModuleType, source: Source, project: Path) -> Wrapped:
    """The jit function that `source.function` names in `module`: a name, a dotted one, or a factory's call.

    Only what the spec writes as a call is called.
    """
    node = ast.parse(source.function, mode="eval").body
    file = project / source.file
    with telling_failures(f"`{source.text}` fails", project, file):
        is_call = isinstance(node, ast.Call)
        value = _call_factory(node, module, source) if isinstance(node, ast.Call) else _look_up(node, module, source)
        found = find_wrapped(value)
    if len(found) == 1:
        return found[0]
    raise _refusal(value, found, source, is_call)


def _refusal(value: Any, found: Sequence[Wrapped], source: Source, is_call: bool) -> StageFailure:
    kind, hint = type(value).__name__, None
    if found:
        names = ", ".join(f"`{each.function.__name__}`" for each in found)
        return StageFailure(f"`{source.text}` holds several jit functions: {names}", _start_of(source), hint)
    if isinstance(value, Standin) and not isinstance(value, StandinFunction):
        message = f"`{source.text}` is made by {value.origin}: what it would be is not known"
        return StageFailure(message, _start_of(source), hint)
    if isinstance(value, types.FunctionType | StandinFunction):
        kind = "a plain function"
        hint = f"if it makes a kernel, write the call: `{source.function}(…)`" if not is_call else None
    what = f"makes no jit function but {kind}" if is_call else f"is not a jit function but {kind}"
    return StageFailure(f"`{source.text}` {what}", _start_of(source), hint)


def _start_of(source: Source) -> Place | None:
    return Place(source.file, 1) if source.file else None


def _look_up(node: ast.expr, module: types.ModuleType, source: Source) -> Any:
    """The value of a name or a dotted name in `module`."""
    value: object = module
    for part in ast.unparse(node).split("."):
        if not hasattr(value, part):
            names = [name for name, each in vars(module).items() if find_wrapped(each)]
            hint = nearest_hint(part, names, "jit functions")
            raise StageFailure(f"`{source.text}`: there is no `{part}`", _start_of(source), hint)
        value = getattr(value, part)
    return value


def _call_factory(call: ast.Call, module: types.ModuleType, source: Source) -> Any:
    """What a factory makes of the arguments in the spec: literals, and names of its module."""

    def evaluate(node: ast.expr) -> Any:
        is_name = isinstance(node, ast.Name | ast.Attribute)
        return _look_up(node, module, source) if is_name else ast.literal_eval(node)

    arguments = [evaluate(each) for each in call.args]
    keywords = {each.arg or "": evaluate(each.value) for each in call.keywords}
    return _look_up(call.func, module, source)(*arguments, **keywords)
