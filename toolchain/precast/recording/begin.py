"""Where recording begins in a process: once it has imported Triton, and not before.

In: the environment that `precast record` starts a program with. Out: a `Watch` that is on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from precast.imported import after_import

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
