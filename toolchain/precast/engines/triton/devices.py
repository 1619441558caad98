"""What a kernel's module hears when it asks which device there is: the unit's target, on every machine.

In: a target. Out: an object in the place of Triton's driver, and the answers of `torch` where it is not installed.
Where nothing can be known, such as a number of processors, the answer is a stand-in.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.machinery import PathFinder
from typing import Any

from precast.engines.triton import v3_9
from precast.engines.triton.stubs import OLDEST, Seal, Standin
from precast.target import Backend, Target

NO_DEVICE = "a build has no device"

DRIVER = "triton.runtime.driver.active"
ACTIVE = f"{DRIVER}.get_active_torch_device()"


class Device:
    """Stands where Triton expects a driver. `was_asked` tells whether the target may have decided something."""

    def __init__(self, target: Target, seal: Seal) -> None:
        self.target = target
        self._seal = seal
        self._answers = torch_answers(target)
        seal.answer = self._answer

    @property
    def was_asked(self) -> bool:
        return self._seal.asked

    def for_target(self, target: Target) -> Device:
        """The device of `target` for the same modules, which hear of it from now on."""
        return self if target == self.target else Device(target, self._seal)

    def _answer(self, name: str) -> Any:
        found = self._answers[name]
        self._seal.asked = True
        return found

    def get_current_target(self) -> Any:
        """Triton's name for the target."""
        self._seal.asked = True
        return v3_9.make_gpu_target(self.target)

    def get_active_torch_device(self) -> Any:
        """What `torch.device` would be, where it is installed; else a stand-in that knows its kind and number."""
        self._seal.asked = True
        if PathFinder.find_spec("torch") is None:
            return Standin(ACTIVE, self._seal, NO_DEVICE)
        return importlib.import_module("torch").device(self._answers[f"{ACTIVE}.type"], 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._seal.asked = True
        return Standin(f"{DRIVER}.{name}", self._seal, NO_DEVICE)


def torch_answers(target: Target) -> Mapping[str, Any]:
    """The answers of `torch` about devices, by dotted name."""
    on_gpu = target.kind is not Backend.CPU
    answers: dict[str, Any] = {
        "torch.cuda.is_available": lambda *_, **__: on_gpu,
        "torch.accelerator.is_available": lambda *_, **__: on_gpu,
        "torch.version.cuda": OLDEST if target.kind is Backend.CUDA else None,
        "torch.version.hip": OLDEST if target.kind is Backend.HIP else None,
        "torch.version.xpu": None,
        f"{ACTIVE}.type": "cuda" if on_gpu else "cpu",
        f"{ACTIVE}.index": 0,
    }
    if on_gpu:
        capability = find_capability(target)
        answers["torch.cuda.get_device_capability"] = lambda *_, **__: capability
    return answers


def find_capability(target: Target) -> tuple[int, int]:
    """A GPU's compute capability as `torch` has it: (9, 0) for `cuda:90`, (9, 4) for `hip:gfx942`."""
    digits = target.arch.removeprefix("gfx")
    if target.kind is Backend.CUDA:
        return int(digits[:-1]), int(digits[-1])
    return int(digits[:-2]), int(digits[-2])
