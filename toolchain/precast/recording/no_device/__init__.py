"""A device that is not there: what a recorded program finds in the place of Triton's driver and of PyTorch's tensors.

In: a target, modules as the program has imported them. Out: a program that runs up to its launches; notes of what it
reads that is not known.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from precast.recording.notes import Notebook
from precast.target import Target


class Absent:
    """The device, in one process. PyTorch and Triton are imported in any order, or only one of them."""

    def __init__(self, folder: Path, target: str) -> None:
        self._target = Target.parse(target)
        self._notes = Notebook(folder)
        self._tensors: Any = None

    def start_torch(self) -> None:
        from precast.recording.no_device.tensors import Tensors

        self._tensors = Tensors(sys.modules["torch"], self._target, self._notes.write)

    def start_triton(self) -> None:
        from precast.recording.no_device.driver import start

        start(self._target, self._launched)

    def _launched(self, values: tuple[Any, ...]) -> None:
        if self._tensors is not None:
            self._tensors.launched(values)
