"""Where recording begins in a process: once it has imported Triton, and not before.

In: the environment that `precast record` starts a program with. Out: a `Watch` that is on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

VARIABLE = "PRECAST_RECORD"  # the folder that processes write their notes to
STARTUP = Path(__file__).parent / "startup"


def begin() -> None:
    """Records all that this process launches, if the environment says so."""
    folder = os.environ.get(VARIABLE)
    if folder:
        after_import("triton", lambda: _watch(folder))


def _watch(folder: str) -> None:
    from precast.recording.watch import Watch

    Watch(Path(folder)).start()


def recording_environment(folder: Path) -> dict[str, str]:
    """What makes every Python that inherits it record into `folder`."""
    path = os.environ.get("PYTHONPATH")
    return {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join([str(STARTUP), *([path] if path else [])])}


def after_import(name: str, act: Callable[[], None]) -> None:
    """Acts once the module is imported, at once where it is."""
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Finder(name, act))


class _Finder(MetaPathFinder):
    """Finds one module as it would be found without it, and takes itself away."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._act)
                return spec
        sys.meta_path.insert(0, self)  # it is not there: it may be another time
        return None


class _Loader(Loader):
    """Loads as the module's own loader does, then acts; the module keeps its own loader."""

    def __init__(self, own: Loader, act: Callable[[], None]) -> None:
        self._own = own
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        self._own.exec_module(module)
        self._act()
