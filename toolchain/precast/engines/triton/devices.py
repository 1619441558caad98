"""What a kernel's module hears when it asks which device there is: the unit's target, on every machine.

In: a target. Out: an object in the place of Triton's driver, and the answers of `torch`, installed or not: those of a
device that the building machine has would be another's. Where nothing can be known, such as a number of processors, the
answer is a stand-in.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.machinery import PathFinder
from typing import Any

from precast.engines.triton import v3_9
from precast.engines.triton.stubs import NEWEST, Seal, Standin
from precast.imported import after_import
from precast.target import Backend, Target, find_capability, shared_memory_limit

NO_DEVICE = "a build has no device"

DRIVER = "triton.runtime.driver.active"
# Parts that only builds of `torch` for other makers' devices have: code asks with `hasattr` whether they are there.
FOREIGN = frozenset(f"torch.{each}" for each in ("corex", "gcu", "hpu", "mlu", "musa", "npu", "ptpu", "xla"))
ACTIVE = f"{DRIVER}.get_active_torch_device()"
# Functions of the installed `torch` whose results only a device knows: they give stand-ins, as without `torch`.
OF_A_DEVICE = ("torch.cuda.get_device_properties", "torch.cuda.get_device_name")
LEFT_TO_TORCH = frozenset({"torch.library.Library"})


class Device:
    """Stands where Triton expects a driver. `was_asked` tells whether the target may have decided something."""

    def __init__(self, target: Target, seal: Seal) -> None:
        self.target = target
        self._seal = seal
        self._answers = find_answers(target, seal)
        seal.answer = self._answer

    @property
    def was_asked(self) -> bool:
        return self._seal.asked

    def for_target(self, target: Target) -> Device:
        """The device of `target` for the same modules, which hear of it from now on."""
        return self if target == self.target else Device(target, self._seal)

    def _answer(self, name: str) -> Any:
        if name in FOREIGN:
            raise AttributeError(name)
        word = name.rpartition(".")[2]
        if word in v3_9.REEXPORTED:
            return v3_9.REEXPORTED[word]
        found = self._answers[name]
        self._seal.asked = True
        return found

    @contextmanager
    def answering_through_torch(self) -> Iterator[None]:
        """What code asks the installed `torch` of devices in the block is answered for the target."""
        if PathFinder.find_spec("torch") is None:
            yield
            return
        with ExitStack() as undone:
            undone.callback(after_import("torch", partial(self._answer_through_torch, undone)))
            yield

    def _answer_through_torch(self, undone: ExitStack) -> None:
        self._seal.asked = True  # some of it are plain values, which nobody hears being read
        known = {name for name in self._answers if name.startswith("torch.") and "(" not in name}
        for name in known - LEFT_TO_TORCH:
            _replace(undone, name, self._answers[name])
        if self.target.kind is not Backend.CPU:
            for name in OF_A_DEVICE:
                _replace(undone, name, Standin(name, self._seal, NO_DEVICE))

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


class Properties(dict[str, int]):
    """What is known of a device by its architecture alone; all else is a stand-in."""

    def __init__(self, seal: Seal, **known: int) -> None:
        super().__init__(known)
        self._seal = seal

    def __missing__(self, name: str) -> Any:
        return Standin(f"get_device_properties(…)['{name}']", self._seal, NO_DEVICE)


def find_answers(target: Target, seal: Seal) -> Mapping[str, Any]:
    """What is known of Triton's driver and of `torch` without them, by dotted name."""
    on_gpu = target.kind is not Backend.CPU
    answers: dict[str, Any] = {
        "torch.cuda.is_available": _always(on_gpu),
        "torch.accelerator.is_available": _always(on_gpu),
        "torch.cuda.device_count": _always(int(on_gpu)),
        "torch.version.cuda": NEWEST if target.kind is Backend.CUDA else None,
        "torch.version.hip": NEWEST if target.kind is Backend.HIP else None,
        "torch.version.xpu": None,
        "torch.library.Library": partial(_make_library, seal),
        f"{ACTIVE}.type": "cuda" if on_gpu else "cpu",
        f"{ACTIVE}.index": 0,
    }
    return {**answers, **_find_gpu_answers(target, seal)} if on_gpu else answers


def _find_gpu_answers(target: Target, seal: Seal) -> Mapping[str, Any]:
    capability, limit = find_capability(target), shared_memory_limit(target)
    properties = Properties(seal, warpSize=v3_9.make_gpu_target(target).warp_size)
    if limit is not None:
        properties["max_shared_mem"] = limit
    return {
        f"{DRIVER}.utils.get_device_properties": _always(properties),
        "torch.cuda.current_device": _always(0),
        "torch.cuda.get_device_capability": _always(capability),
        "torch.cuda.get_device_properties(…).major": capability[0],
        "torch.cuda.get_device_properties(…).minor": capability[1],
        "torch.cuda.get_device_properties(…).gcnArchName": target.arch,
    }


def _replace(undone: ExitStack, name: str, value: Any) -> None:
    """Puts a value in the place of one of an imported module; of a module that this `torch` lacks, nothing."""
    place, _, last = name.rpartition(".")
    module = sys.modules.get(place)
    if module is not None and hasattr(module, last):
        undone.callback(setattr, module, last, getattr(module, last))
        setattr(module, last, value)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *arguments, **keywords: value


def _make_library(seal: Seal, name: str, *arguments: Any) -> Standin:
    library = Standin("torch.library.Library(…)", seal)
    vars(library)["ns"] = name
    return library
