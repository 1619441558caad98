"""A file that was written to be run beside a GPU and a framework, executed where there is neither.

In: a hook file's top level. Out: inert stand-ins for packages that are not installed, and an answer to whoever asks
which device there is, for as long as the block lasts.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from precast.engines.triton.devices import Device
from precast.engines.triton.imports import LastFinder
from precast.engines.triton.stubs import Seal, is_standin
from precast.engines.triton.v3_9 import answering_for
from precast.passes import namespace
from precast.target import Target


@contextlib.contextmanager
def alone(target: Target) -> Iterator[None]:
    """Executes in the block what else needs a device or a framework. Afterwards its stand-ins fail when used."""
    seal = Seal()
    finder = LastFinder((), seal, namespace.__file__)
    sys.meta_path.append(finder)
    try:
        with answering_for(Device(target, seal)):
            yield
    finally:
        sys.meta_path.remove(finder)
        seal.closed = True
        for name in [each for each, module in sys.modules.items() if is_standin(module)]:
            del sys.modules[name]
