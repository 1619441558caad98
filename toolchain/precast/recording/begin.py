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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precast.recording.no_device import Absent

VARIABLE = "PRECAST_RECORD"  # the folder that processes write their notes to
NO_DEVICE = "PRECAST_RECORD_NO_DEVICE"  # the target of a device that is not there
STARTUP = Path(__file__).parent / "startup"


def begin() -> None:
    """Records all that this process launches, if the environment says so."""
    folder = os.environ.get(VARIABLE)
    if folder:
        target = os.environ.get(NO_DEVICE, "")
        absent = _stand_in(folder, target) if target else None
        after_import("triton", lambda: _watch(folder, target, absent))


def _stand_in(folder: str, target: str) -> Absent:
    from precast.recording.no_device import Absent

    absent = Absent(Path(folder), target)
    after_import("torch", absent.start_torch)
    return absent


def _watch(folder: str, target: str, absent: Absent | None) -> None:
    from precast.recording.watch import Watch

    if absent is not None:
        absent.start_triton()
    Watch(Path(folder), target).start()


def recording_environment(folder: Path, target: str = "") -> dict[str, str]:
    """What makes every Python that inherits it record into `folder`; with a target, without a device.

    Then nothing is compiled: what `torch.compile` decorates runs as it is.
    """
    path = os.environ.get("PYTHONPATH")
    without = {NO_DEVICE: target, "TORCHDYNAMO_DISABLE": "1"} if target else {}
    return {VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join([str(STARTUP), *([path] if path else [])]), **without}


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
