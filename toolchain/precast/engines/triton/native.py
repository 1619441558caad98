"""Native plugin libraries in this process: loaded once, before any context is made, checked for what they hold.

In: library paths. Out: their passes callable through Triton, their dialects in every context made from then on, their
ops on the builder that kernels use. Code cannot be unloaded: a worker process keeps to one plugin set
(`precast.passes.selection.plugin_set`).
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Upstream bindings first: once a plugin is loaded, importing them would end the process.
import mlir.ir  # noqa: F401
from triton._C import libtriton

from precast.bounded import digest_bounded
from precast.engines.triton.plugin_info import explain_load_error, read_plugin_info
from precast.errors import PluginError


@dataclass(frozen=True)
class LoadedLibrary:
    """A plugin library of this process: the bytes it was loaded from, and the passes that it brought."""

    digest: str
    passes: tuple[str, ...]


def load_library(path: Path) -> LoadedLibrary:
    """Loads a plugin library, unless this process has it already.

    `PluginError` in one sentence when it is missing, broken, built for another Triton, holds a pass that a library
    loaded before holds too, or has other bytes than when this process loaded it.
    """
    if not path.is_file():
        raise PluginError(f"there is no plugin library `{path}`")
    loaded = _load(path.resolve())
    if loaded.digest != digest_bounded(path):
        raise PluginError(f"plugin library `{path.name}` changed after this process had loaded it", hint="build again")
    return loaded


@functools.cache
def _load(path: Path) -> LoadedLibrary:
    status = path.stat()
    digest = digest_bounded(path)
    info = read_plugin_info(path)
    taken = sorted(set(info.passes) & set(_loaded_passes()))
    if taken:
        raise PluginError(
            f"plugin library `{path.name}` holds pass `{taken[0]}`, which another loaded library holds too"
        )
    try:
        libtriton.passes.plugin.extend_with(str(path))
        libtriton.ir.extend_dialects_with(str(path))
        libtriton.ir.builder.extend_with(str(path))
    except RuntimeError as error:
        raise PluginError(explain_load_error(path, str(error))) from None
    if _mark_of(path.stat()) != _mark_of(status):  # nobody knows which bytes were loaded
        raise PluginError(f"plugin library `{path.name}` changed while this process loaded it", hint="build again")
    missing = sorted(set(info.passes) - set(_loaded_passes()))
    if missing:
        raise PluginError(f"plugin library `{path.name}` lists pass `{missing[0]}` but has no code for it")
    return LoadedLibrary(digest, info.passes)


def _mark_of(status: os.stat_result) -> tuple[int, int]:
    """What no file has again that took another's place, or was written."""
    return status.st_ino, status.st_ctime_ns


def _loaded_passes() -> list[str]:
    return [name[4:] for name in dir(libtriton.passes.plugin) if name.startswith("add_")]


def find_native(op: str) -> Any:
    """The function that adds the native pass `op`, looked up now: one fetched before a later load would crash."""
    adder = getattr(libtriton.passes.plugin, f"add_{op}", None)
    if adder is None:
        known = ", ".join(_loaded_passes()) or "none"
        raise LookupError(f"the loaded libraries hold no pass `{op}`; they hold: {known}")
    return adder
