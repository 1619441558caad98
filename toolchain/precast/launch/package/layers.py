"""Who stands in for Triton's ways to launch: a stack of servers on its classes, each with what was there before it.

In: a server, what it puts in place of a class's function. Out: the classes as they are to be. This file goes into a
release's Python package, with the standard library alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


def serving_lock() -> Any:
    """One lock for the servers of every release in the process, each of which has its own copy of this file."""
    shared: dict[str, Any] = vars(sys.modules["triton.runtime.jit"])
    return shared.setdefault("_precast_lock", threading.RLock())


def put_on(owner: Any, name: str, server: Any, layer: Any) -> None:
    """Puts `layer` in place of what a class has; servers below are found through its `precast_layer`."""
    layer.precast_layer = (server, vars(owner).get(name))
    setattr(owner, name, layer)


def take_off(owner: Any, name: str) -> None:
    """Gives back what was below servers that are off, as far as none that is on lies above it."""
    while (layer := getattr(vars(owner).get(name), "precast_layer", None)) and not layer[0].active:
        delattr(owner, name) if layer[1] is None else setattr(owner, name, layer[1])


def find_layers(top: Any) -> tuple[list[Any], Any]:
    """The servers that are on, the last started first, and what is below them all."""
    servers = []
    while layer := getattr(top, "precast_layer", None):
        servers += [layer[0]] if layer[0].active else []
        top = layer[1]
    return servers, top


def tuner_classes(tuner: Any) -> Iterator[Any]:
    """Triton's tuner, and the classes under it that have a `run` of their own."""
    if "run" in vars(tuner):
        yield tuner
    for each in tuner.__subclasses__():
        yield from tuner_classes(each)


def layered_birth(owner: Any, server: Any, layered_run: Callable[[], Any]) -> Any:
    """An `__init_subclass__` for `owner`, so that classes which a library makes later are served as well."""

    def born(kind: Any, /, **named: Any) -> None:
        below = layered.precast_layer[1]
        super(owner, kind).__init_subclass__(**named) if below is None else below.__func__(kind, **named)
        if server.active and "run" in vars(kind):
            put_on(kind, "run", server, layered_run())

    layered: Any = classmethod(born)
    return layered
