"""Files written for Triton's own stages hook, run unmodified: the fourth kind of pass.

In: the stage functions of one unit. Out: the same, with those that the hook replaced. Triton's hook is one global for
a process; here a hook file is called directly, for one unit, in a folder that holds it and the files that it declares.
What it sets of Triton's knobs and the environment holds in its own stages, and nowhere else.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from triton import knobs

from precast.artifact import PassRun
from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.engines import StageFailure
from precast.engines.triton.loose_files import alone
from precast.engines.triton.python_steps import PassFailure
from precast.engines.triton.surroundings import Surroundings, kept_surroundings, look_around, read_knobs, set_knobs
from precast.errors import Place, PluginError, nearest_hint
from precast.passes.definitions import HookFile
from precast.passes.faults import describe_error, find_line
from precast.passes.namespace import Namespace
from precast.passes.plan import SelectedPass, describe_run
from precast.passes.resources import resolve_resource
from precast.target import Target

FUNCTION = "inspect_stages_hook"
SETTING = "knobs.runtime.add_stages_inspection_hook"
Stages = dict[str, Callable[[Any, dict[str, Any]], Any]]


class RunningHook:
    """A hook that was called for this unit: the stages it changed, and the folder that it lives in."""

    def __init__(self, selected: SelectedPass, target: Target, project: Path) -> None:
        self.selected, self.changed = selected, tuple[str, ...]()
        self._target = target
        self._folder = tempfile.TemporaryDirectory(prefix="precast-hook-")
        self._origins = self._copy_files(project)
        home = Path(self._folder.name)
        self._file = next(path for path, name in self._origins.items() if name == selected.definition.file)
        self._namespace = Namespace(self._file.relative_to(home).as_posix(), home)
        if selected.namespace:
            self._namespace.watch = selected.namespace.watch  # one memory of what the pass reads
        self._mine = look_around()

    @property
    def pass_run(self) -> PassRun:
        return describe_run(self.selected.use)

    def _copy_files(self, project: Path) -> dict[Path, str]:
        """Puts the hook's files into its folder: as they lie around the hook's own, others beside it."""
        use, definition = self.selected.use, self.selected.definition
        around, origins = (project / definition.file).parent, {}
        for name in use.files:
            path = resolve_resource(name, project)
            if name == use.library or path.suffix == ".so" or name == use.origin:
                continue
            inside = path.relative_to(around) if path.is_relative_to(around) else Path(path.name)
            copy = Path(self._folder.name) / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            namespace = self.selected.namespace
            copy.write_bytes(namespace.read(path) if namespace else read_bounded(path, MOST_FILE_BYTES))
            origins[copy] = name
        return origins

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The hook's folder, its modules, and what it has set so far; afterwards all is as it was."""
        with kept_surroundings():
            self._mine.restore()
            with self._namespace.inside():
                yield
            self._mine = look_around()

    def start(self, backend: Any, stages: Stages, options: Any, language: Any) -> None:
        """Executes the file and calls the hook on `stages`, which it changes in place."""
        before = dict(stages)
        with kept_surroundings():
            self._mine = _moved_to(self._folder.name)
        try:
            with self.inside():
                earlier = knobs.runtime.add_stages_inspection_hook
                with alone(self._target):
                    module = self._namespace.load()
                    values = read_knobs()
                set_knobs(values)  # what the file has set is meant for its stages
                function = _find_function(module, self.selected.definition, earlier)
                function()  # Triton's first call form: it asks for a key. Ours is made of the files' bytes.
                function(backend, stages, options, language, _capability(backend, options))
                knobs.runtime.add_stages_inspection_hook = earlier
        except (PluginError, StageFailure):
            raise
        except BaseException as error:  # the author's code may raise anything
            raise self.failure(error) from error
        self.changed = tuple(name for name in stages if stages[name] is not before.get(name))
        use = self.selected.use
        if self.changed and self.changed[0] != use.stage:
            raise PluginError(
                f"hook `{use.name}` changes stage `{self.changed[0]}`, and says that it stands in `{use.stage}`",
                hint=f'give it stage="{self.changed[0]}"',
            )

    def failure(self, error: BaseException, message: str = "") -> PassFailure:
        """What the hook's own code raised, at its line."""
        found = find_line(error, set(self._origins))
        where = Place(self._origins[found[0]], found[1]) if found else None
        return PassFailure(message or describe_error(error), self.selected.use.name, "", where)


def start_hooks(
    selected: Sequence[SelectedPass],
    backend: Any,
    stages: Stages,
    options: Any,
    language: Any,
    target: Target,
    project: Path,
) -> tuple[RunningHook, ...]:
    """Calls each hook on `stages`, which they change in place, in order."""
    hooks = tuple(RunningHook(each, target, project) for each in selected)
    for hook in hooks:
        hook.start(backend, stages, options, language)
    return hooks


def _moved_to(folder: str) -> Surroundings:
    os.chdir(folder)
    return look_around()


def _find_function(module: ModuleType, definition: HookFile, earlier: Any) -> Callable[..., Any]:
    """The hook of a file: the named one, the usual one, the one that the file has set, or the only one of its shape."""
    file, given = definition.file, knobs.runtime.add_stages_inspection_hook
    shaped = {name: each for name, each in vars(module).items() if _takes_stages(each, module)}
    if definition.function:
        named = getattr(module, definition.function, None)
        if not callable(named):
            hint = nearest_hint(definition.function, shaped, "hooks")
            raise PluginError(f"hook file `{file}` defines no function `{definition.function}`", hint=hint)
        return _as_function(named)
    if callable(given) and given is not earlier:
        return _as_function(given)
    if callable(getattr(module, FUNCTION, None)):
        return _as_function(getattr(module, FUNCTION))
    if len(shaped) == 1:
        return _as_function(*shaped.values())
    if shaped:
        listed = ", ".join(f"`{name}`" for name in shaped)
        hint = 'say which: HookFile(…, function="…")'
        raise PluginError(f"hook file `{file}` has {len(shaped)} functions that may be the hook: {listed}", hint=hint)
    raise PluginError(f"hook file `{file}` defines no function `{FUNCTION}`, and sets no {SETTING}")


def _as_function(value: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = value
    return found


def _takes_stages(value: Any, module: ModuleType) -> bool:
    """Whether a value is a function of the file's own with a hook's arguments."""
    if not inspect.isfunction(value) or value.__module__ != module.__name__:
        return False
    return {"stages", "options"} <= set(inspect.signature(value).parameters)


def _capability(backend: Any, options: Any) -> int | None:
    """What Triton hands a hook: the compute capability on CUDA, None on HIP."""
    return int(backend._parse_arch(options.arch)) if hasattr(backend, "_parse_arch") else None
