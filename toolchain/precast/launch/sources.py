"""A release's sources: header, launchers, runtime, CMake and pkg-config files, Python package.

In: `ReleaseInterface`. Out: files as text with paths relative to the release; release assembly writes and compiles
them. The only dependence on the machine is where this package lies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from precast.engines import source_digest, source_text
from precast.errors import ToolError
from precast.launch.context import LibraryContext, describe_library
from precast.launch.formats import ReleaseInterface
from precast.launch.package import (
    calls,
    errors,
    fragment,
    hooks,
    layers,
    serve,
    specialization,
    specs,
    torch_ops,
    tuned,
    variants,
)
from precast.spec import names, spelling

if TYPE_CHECKING:  # read and never run here, for they need NumPy; what is named is a part of what makes launchers
    from precast.tuning import buckets, choosing, devices, evidence, gpus, measuring, running, tensors, tune  # noqa: F401

RUNTIME = Path(__file__).parent / "runtime"
TEMPLATES = Path(__file__).parent / "templates"
_SYSTEM_HEADER = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)
# Modules of ours that go into a release's package, where they import one another: else the standard library alone.
PACKAGE_MODULES = {"_serve": serve, "_errors": errors, "_calls": calls, "_variants": variants, "_fragment": fragment,
                   "_hooks": hooks, "_layers": layers, "_specialization": specialization, "_tuned": tuned,
                   "_torch_ops": torch_ops,
                   "_source_digest": source_digest, "_source_text": source_text, "_spelling": spelling,
                   "_names": names, "_specs": specs}  # fmt: skip

# Those that go into a candidates release beside them.
TUNING_MODULES = {"tune": "tune", "_tune_buckets": "buckets", "_tune_choosing": "choosing", "_tune_devices": "devices",
                  "_tune_evidence": "evidence", "_tune_gpus": "gpus", "_tune_measuring": "measuring",
                  "_tune_running": "running", "_tune_tensors": "tensors"}  # fmt: skip
TUNING = "precast.tuning"


@dataclass(frozen=True)
class SourceFile:
    """One generated file; `path` is relative to the release."""

    path: str
    text: str


def render_library(interface: ReleaseInterface, version: str = "0.0.0") -> tuple[SourceFile, ...]:
    """Every source file of a release, sorted by path; `version` is the project's, for CMake and pkg-config.

    The library `lib/lib<name>.so` is made of all `src/**/*.c` with `COMPILE_FLAGS` and
    `-Iinclude -Isrc`, see `library_sources`.
    """
    context = describe_library(interface, version, [path.name for path in sorted(RUNTIME.glob("*.c"))])
    name = interface.name
    rendered = {
        f"include/{name}.h": "header.h.j2",
        f"src/{name}.c": "launchers.c.j2",
        "src/CMakeLists.txt": "CMakeLists.txt.j2",
        f"lib/cmake/{name}/{name}Config.cmake": "config.cmake.j2",
        f"lib/cmake/{name}/{name}ConfigVersion.cmake": "version.cmake.j2",
        f"lib/pkgconfig/{name}.pc": "package.pc.j2",
        f"python/{name}/__init__.py": "package.py.j2",
        f"python/{name}/__init__.pyi": "package.pyi.j2",
    }
    files = [SourceFile(path, _render(template, context)) for path, template in rendered.items()]
    files += [SourceFile(f"src/runtime/{path.name}", path.read_text(encoding="utf-8")) for path in _runtime_files()]
    files.append(SourceFile("include/precast.h", (RUNTIME / "precast.h").read_text(encoding="utf-8")))
    files.append(SourceFile(f"python/{name}/py.typed", ""))
    files += [SourceFile(f"python/{name}/{place}.py", _render_module(name, place)) for place in PACKAGE_MODULES]
    return tuple(sorted(files, key=lambda file: file.path))


def _render_module(package: str, place: str) -> str:
    """A module of ours with its imports of the others by the names that these have in the package."""
    text = Path(str(PACKAGE_MODULES[place].__file__)).read_text(encoding="utf-8")
    for other, module in PACKAGE_MODULES.items():
        text = text.replace(f"from {module.__name__} import", f"from {package}.{other} import")
    return text


def render_tuning(package: str, problems: str) -> tuple[SourceFile, ...]:
    """What a candidates release has besides, so that `python -m <package>.tune` measures it on a device machine."""
    folder = f"python/{package}"
    texts = {place: _render_tuning_module(package, module) for place, module in TUNING_MODULES.items()}
    files = [SourceFile(f"{folder}/{place}.py", text) for place, text in texts.items()]
    return (*files, SourceFile(f"{folder}/tuning.json", problems))


def _render_tuning_module(package: str, module: str) -> str:
    text = (Path(__file__).parents[1] / "tuning" / f"{module}.py").read_text(encoding="utf-8")
    for place, other in TUNING_MODULES.items():
        text = text.replace(f"from {TUNING}.{other} import", f"from {package}.{place} import")
    return text


def _runtime_files() -> list[Path]:
    return [path for path in sorted(RUNTIME.glob("*.[ch]")) if path.name != "precast.h"]


def system_headers() -> frozenset[str]:
    """The headers of the system that a release's C may include."""
    texts = (path.read_text(encoding="utf-8") for path in (*RUNTIME.glob("*.[ch]"), *TEMPLATES.glob("*.[ch].j2")))
    return frozenset(name for text in texts for name in _SYSTEM_HEADER.findall(text))


def library_sources(interface: ReleaseInterface) -> tuple[str, ...]:
    """The C files, relative to the release, that make `lib/lib<name>.so`."""
    runtime = [f"src/runtime/{path.name}" for path in sorted(RUNTIME.glob("*.c"))]
    return (f"src/{interface.name}.c", *runtime)


def find_extension() -> Path:
    """The Python extension, built with this package; it goes to `python/<name>/_launch.abi3.so`.

    `ToolError` when this installation has none.
    """
    spec = find_spec("precast.launch._launch")
    if spec is None or spec.origin is None:
        raise ToolError(
            "the launcher's Python extension is not built", hint="install Precast with a C compiler present"
        )
    return Path(spec.origin)


def _render(template: str, context: LibraryContext) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.get_template(template).render(library=context)
