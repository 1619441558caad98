"""Files written for Triton's own stages hook, run unmodified (DESIGN §4, the fourth kind of pass).

In: the stage functions of one unit. Out: the same, with those that the hook replaced. Triton's hook is one global for
a process; here a hook file is called directly, for one unit, in a folder that holds it and the files that it declares.
"""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from triton import knobs

from precast.artifact import PassRun
from precast.engines.triton.python_steps import PassFailure, describe_error
from precast.errors import PluginError
from precast.passes.loading import execute_file
from precast.passes.plan import SelectedPass, describe_run

FUNCTION = "inspect_stages_hook"
Stages = dict[str, Callable[[Any, dict[str, Any]], Any]]


@dataclass(frozen=True)
class RunningHook:
    """A hook that was called for this unit: the stages it changed, and the folder that it lives in."""

    pass_run: PassRun
    changed: tuple[str, ...]
    folder: tempfile.TemporaryDirectory[str]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The hook's folder as the current one, and Triton's own hook setting as it was before."""
        with _current_folder(Path(self.folder.name)):
            yield


@contextmanager
def _current_folder(folder: Path) -> Iterator[None]:
    before, setting = os.getcwd(), knobs.runtime.add_stages_inspection_hook
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        knobs.runtime.add_stages_inspection_hook = setting


def start_hooks(
    selected: Sequence[SelectedPass], backend: Any, stages: Stages, options: Any, language: Any, project: Path
) -> tuple[RunningHook, ...]:
    """Calls each hook on `stages`, which they change in place, in order."""
    return tuple(_start(each, backend, stages, options, language, project) for each in selected)


def _start(
    selected: SelectedPass, backend: Any, stages: Stages, options: Any, language: Any, project: Path
) -> RunningHook:
    definition, use = selected.definition, selected.use
    folder = tempfile.TemporaryDirectory(prefix="precast-hook-")
    for name in (definition.file, *definition.reads):
        copy = Path(folder.name) / Path(name).name
        shutil.copyfile(project / name, copy)
    before = dict(stages)
    with _current_folder(Path(folder.name)):
        try:
            function = _find_function(execute_file(Path(folder.name) / Path(definition.file).name), definition.file)
            function()  # Triton's first call form: it asks for a key. Ours is made of the file's bytes.
            function(backend, stages, options, language, _capability(backend, options))
        except PluginError:
            raise
        except Exception as error:
            raise PassFailure(describe_error(error), use.name, "") from error
    changed = tuple(name for name in stages if stages[name] is not before.get(name))
    if changed and changed[0] != use.stage:
        raise PluginError(
            f"hook `{use.name}` changes stage `{changed[0]}`, and says that it stands in `{use.stage}`",
            hint=f'give it stage="{changed[0]}"',
        )
    return RunningHook(describe_run(use), changed, folder)


def _find_function(module: ModuleType, file: str) -> Callable[..., Any]:
    function = getattr(module, FUNCTION, None)
    if not inspect.isfunction(function):
        raise PluginError(f"hook file `{file}` defines no function `{FUNCTION}`")
    return function


def _capability(backend: Any, options: Any) -> int | None:
    """What Triton hands a hook: the compute capability on CUDA, None on HIP."""
    return int(backend._parse_arch(options.arch)) if hasattr(backend, "_parse_arch") else None
