"""What a native plugin library says about itself, read before Triton loads it.

In: a library's path. Out: its passes, dialects and ops by name, or one sentence that says why there is no using it.
The structures are those of `triton/Tools/PluginUtils.h`, in the include folder of Triton's wheel (plugin API 2).
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import triton

from precast.errors import PluginError

API_VERSION = 2
ENTRY = "tritonGetPluginInfo"
MOST_ENTRIES = 10_000
SYSTEM_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


@dataclass(frozen=True)
class PluginInfo:
    """A library's own names: passes and ops can be used by them."""

    name: str
    version: str
    triton_version: str
    passes: tuple[str, ...]
    dialects: tuple[str, ...]
    ops: tuple[str, ...]


class _PassInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("add", ctypes.c_void_p),
        ("register", ctypes.c_void_p),
    )


class _DialectInfo(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("version", ctypes.c_char_p), ("register", ctypes.c_void_p))


class _OpInfo(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("add", ctypes.c_void_p))


class _PluginInfo(ctypes.Structure):
    _fields_ = (
        ("api_version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("passes", ctypes.POINTER(_PassInfo)),
        ("num_passes", ctypes.c_size_t),
        ("dialects", ctypes.POINTER(_DialectInfo)),
        ("num_dialects", ctypes.c_size_t),
        ("ops", ctypes.POINTER(_OpInfo)),
        ("num_ops", ctypes.c_size_t),
        ("triton_version", ctypes.c_char_p),
    )


def read_plugin_info(path: Path) -> PluginInfo:
    """Opens the library and asks it. `PluginError` in one sentence; a library can also end the process."""
    try:
        library = ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
    except OSError as error:
        raise PluginError(explain_load_error(path, str(error))) from None
    entry = getattr(library, ENTRY, None)
    if entry is None:
        raise PluginError(f"library `{path.name}` is no Triton plugin: it does not export {ENTRY}")
    entry.restype = ctypes.POINTER(_PluginInfo)
    pointer = entry()
    if not pointer or pointer.contents.api_version != API_VERSION:
        theirs = pointer.contents.api_version if pointer else "none"
        raise PluginError(
            f"plugin library `{path.name}` has plugin API {theirs}, and Triton {triton.__version__} has {API_VERSION}"
        )
    return _convert(path, pointer.contents)


def _check_tables(path: Path, raw: _PluginInfo) -> None:
    """A table that is said to have entries is there."""
    for what, table, count in (
        ("passes", raw.passes, raw.num_passes),
        ("dialects", raw.dialects, raw.num_dialects),
        ("ops", raw.ops, raw.num_ops),
    ):
        if count > MOST_ENTRIES or (count and not table):
            raise PluginError(f"plugin library `{path.name}` says that it has {count} {what}, and they are not there")


def _convert(path: Path, raw: _PluginInfo) -> PluginInfo:
    _check_tables(path, raw)
    info = PluginInfo(
        _text(raw.name),
        _text(raw.version),
        _text(raw.triton_version),
        tuple(_text(raw.passes[index].name) for index in range(raw.num_passes)),
        tuple(_text(raw.dialects[index].name) for index in range(raw.num_dialects)),
        tuple(_text(raw.ops[index].name) for index in range(raw.num_ops)),
    )
    if info.triton_version != triton.__version__:
        raise PluginError(
            f"plugin library `{path.name}` was built for Triton {info.triton_version or '(unknown)'}, "
            f"and this is {triton.__version__}"
        )
    _check_callbacks(path, raw, info)
    return info


def _check_callbacks(path: Path, raw: _PluginInfo, info: PluginInfo) -> None:
    """Triton skips a pass or op without code silently; here it is a fault."""
    for index, name in enumerate(info.passes):
        if not raw.passes[index].add:
            raise PluginError(f"plugin library `{path.name}` lists pass `{name}` but has no code for it")
    for index, name in enumerate(info.ops):
        if not raw.ops[index].add:
            raise PluginError(f"plugin library `{path.name}` lists op `{name}` but has no code for it")


def _text(value: bytes | None) -> str:
    return value.decode(errors="replace") if value else ""


def explain_load_error(path: Path, message: str) -> str:
    """One sentence for a library that does not load."""
    text = " ".join(message.split())
    if "undefined symbol" in text:
        symbol = text.rpartition("undefined symbol:")[2].strip()
        return f"plugin library `{path.name}` was built for another Triton: this one lacks the symbol {symbol}"
    return f"plugin library `{path.name}` does not load: {text.removeprefix(f'{path}: ')}"


def loaded_libraries() -> set[str]:
    """The shared libraries that lie in this process's memory, by path."""
    lines = Path("/proc/self/maps").read_text(errors="surrogateescape", encoding="utf-8").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return {path for path in paths if path.startswith("/") and ".so" in os.path.basename(path)}


def is_system_library(path: str) -> bool:
    """Whether a library belongs to the machine, as the C library does, and not to a project or a package."""
    return any(Path(path).is_relative_to(folder) for folder in SYSTEM_FOLDERS)


def describe_library(path: Path) -> dict[str, object]:
    """A library's information, with the libraries of projects and packages that came into memory with it."""
    before = loaded_libraries()
    info = read_plugin_info(path)
    needs = loaded_libraries() - before - {str(path), os.path.realpath(path)}
    return {**dataclasses.asdict(info), "needs": sorted(each for each in needs if not is_system_library(each))}


def main() -> int:
    """`python -m precast.engines.triton.plugin_info LIBRARY OUT`: writes its information as JSON, or a message.

    To a file: a library may print what it likes when it is loaded, and when the process ends.
    """
    path, out = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        if not path.is_file():
            raise PluginError(f"there is no plugin library `{path.name}`")
        answer = describe_library(path)
    except PluginError as error:
        answer = {"message": error.message}
    partial = out.with_name(f".{out.name}")
    partial.write_text(json.dumps(answer), encoding="utf-8")
    partial.replace(out)
    return int("message" in answer)


if __name__ == "__main__":
    sys.exit(main())
