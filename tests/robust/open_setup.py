"""Releases for what opens them, as the tests of building and launching make them; the runtime for ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import shutil
import sys
import tempfile
from atexit import register
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "build"), str(TESTS / "launch")]

import launch_release  # noqa: E402
from release_fixture import make_parts  # noqa: E402

from precast.launch.sources import RUNTIME  # noqa: E402
from precast.release.contents import compose_release  # noqa: E402
from precast.release.folder import place_release  # noqa: E402
from precast.release.manifest import MANIFEST  # noqa: E402

IMAGES = {"fp16": b"image one", "fp32": b"image two"}


def make_packaged(folder: Path) -> Path:
    """A release with a Python package, an extension and sources; no compiler is asked."""
    parts = make_parts(folder, IMAGES)
    module, extension = folder / "package.py", folder / "extension"
    module.write_text("name = 'demo'\n")
    extension.write_bytes(b"\x7fELF extension")
    files = {"python/demo/__init__.py": module, "python/demo/_launch.abi3.so": extension, "src/demo.c": module}
    contents, manifest = compose_release(replace(parts, files={**parts.files, **files}))
    return place_release(folder / "generated" / "demo", contents, manifest)


def forge(release: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Changes the manifest's members; its form and its own digest are right, and its folder's name says no other."""
    path = release / MANIFEST
    body = json.loads(path.read_bytes())
    change(body)
    body.pop("content", None)
    compact = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    body["content"] = hashlib.sha256(compact.encode("utf-8", "surrogatepass")).hexdigest()
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
    path.unlink()
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return release.rename(release.parent / "forged")


class PrecastPolicy(ctypes.Structure):
    _fields_ = [("keys", ctypes.c_char_p), ("key_count", ctypes.c_size_t), ("key_ring", ctypes.c_char_p),
                ("name", ctypes.c_char_p), ("minimum_version", ctypes.c_char_p)]  # fmt: skip


@functools.cache
def build_runtime() -> ctypes.CDLL:
    """The runtime with its inner functions exported, compiled once in a process."""
    folder = tempfile.mkdtemp(prefix="precast-test-")
    register(shutil.rmtree, folder, ignore_errors=True)
    library = Path(folder, "libruntime.so")
    sources = map(str, sorted(RUNTIME.glob("*.c")))
    flags = ("-std=c11", "-O0", "-fPIC", "-shared", "-D_GNU_SOURCE")
    launch_release.run(["cc", *flags, *sources, "-o", str(library), "-lpthread", "-ldl"])
    runtime = ctypes.CDLL(str(library))
    runtime.precast_error.restype = ctypes.c_char_p
    runtime.precast_close.argtypes = [ctypes.c_void_p]
    return runtime


def open_with(runtime: ctypes.CDLL, folder: Path, policy: PrecastPolicy) -> str:
    """What the runtime says of opening a release under a policy; empty when it is open (and closed again)."""
    release = ctypes.c_void_p()
    status = runtime.precast_open_with(str(folder).encode(), None, None, ctypes.byref(policy), ctypes.byref(release))
    if status:
        return runtime.precast_error().decode("utf-8", "replace").replace(str(folder), "DIR")
    runtime.precast_close(release)
    return ""
