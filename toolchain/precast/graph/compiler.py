"""Which C compiler makes a release's libraries. In: an SCons environment, the machine that they are for, a glibc.

Out: the environment with that compiler. An SConstruct's own choice stands; without one a compiler for another machine
is called by the name that distributions give it. With a glibc it is the one of the package `ziglang`, which has every
glibc's symbols for every machine, so that what it links runs wherever that glibc or a later one is.
"""

from __future__ import annotations

import platform
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from precast.errors import ToolError
from precast.layout import BUILD

_DEFAULTS = ("gcc", "cc", "clang")  # what SCons finds by itself
_CACHES = ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR")


def choose_compiler(env: Any, machine: str, glibc: str, folder: Path) -> None:
    """Sets `CC` for libraries of `machine`, as `uname -m` says it; `glibc` is the lowest they must run with, or ""."""
    if glibc:
        env["CC"] = f"{find_zig()} cc -target {machine}-linux-gnu.{_checked(glibc)}"
        env["ENV"].update(dict.fromkeys(_CACHES, str(folder.absolute() / BUILD / "zig")))
    elif machine != platform.machine() and env.get("CC") in _DEFAULTS:
        env["CC"] = f"{machine}-linux-gnu-gcc"
        if not env.WhereIs(env["CC"]):
            hint = 'install it, or write `env.Precast(glibc="2.17")` in the SConstruct: Precast\'s extra `zig` has one'
            raise ToolError(f"there is no C compiler for {machine}: `{env['CC']}` is not here", hint=hint)


def find_zig() -> Path:
    """The compiler of the package `ziglang`; `ToolError` where it is not installed."""
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise ToolError("a glibc is asked for and `ziglang` is not installed", hint="install Precast's extra `zig`")
    return Path(spec.submodule_search_locations[0]) / "zig"


def _checked(glibc: str) -> str:
    if not re.fullmatch(r"2\.\d{1,2}", glibc):
        raise ToolError(f"`{glibc}` is no version of glibc", hint='write `env.Precast(glibc="2.17")`')
    return glibc
