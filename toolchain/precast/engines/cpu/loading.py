"""An object file of the engine's in this process's memory, ready to be called: LLVM links it, no file is written.

In: an object and its entry's name. Out: the entry's address. Functions of the C library come from this process.
Threads may load at once: an object that one of them has loaded is what the others get, as long as any of them has it.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

_NUMBERS = itertools.count()  # LLVM wants a name for each linked object, once
_TURN = threading.Lock()  # one linker for all threads: the code of another would go with it


@dataclass(frozen=True)
class LoadedObject:
    """A linked object: its memory lasts as long as this value."""

    entry: int  # address
    memory: Any


# Triton may load a kernel in two threads at once and forget what the first got, which may be running.
_LOADED: weakref.WeakValueDictionary[tuple[bytes, str], LoadedObject] = weakref.WeakValueDictionary()


@functools.cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.load_library_permanently("libm.so.6")
    return llvm.create_lljit_compiler()


def load_object(image: bytes, symbol: str) -> LoadedObject:
    """Links `image`, whose entry is `symbol`; `RuntimeError` in LLVM's words where that cannot be."""
    with _TURN:
        loaded = _LOADED.get((image, symbol))
        if loaded is None:
            loaded = _LOADED[image, symbol] = _link(image, symbol)
        return loaded


def _link(image: bytes, symbol: str) -> LoadedObject:
    library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process().export_symbol(symbol)
    tracker = library.link(_linker(), f"precast-{next(_NUMBERS)}")
    return LoadedObject(int(tracker[symbol]), tracker)
