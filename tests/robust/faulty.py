"""Commands whose file operations are counted, written down, or fail, in the command itself and in its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tree import Tree

SOURCE = Path(__file__).parent / "faults.c"
# Workers get an environment of their own: here it holds what the library that is loaded before others needs.
PROGRAM = """
import os, sys
del sys.path[0]  # the project's folder, in which the installed command looks for no modules
import precast.engines.triton.environment as environment
environment.INHERITED += tuple(name for name in os.environ if name.startswith(("FAULT_", "LD_PRELOAD")))
from precast.cli import main
sys.exit(main())
"""


def make_library(folder: Path) -> Path:
    library = folder / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str
    calls: int  # on files below the project


def run_counted(library: Path, tree: Tree, *words: str, **settings: str) -> Run:
    """`precast` with file operations that are counted, and fail as `settings` say (see `faults.c`)."""
    count = library.parent / "count"
    count.write_bytes(bytes(8))
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_ROOT": str(tree.folder), "FAULT_COUNT": str(count)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=tree.folder,
        env={**environment, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, int.from_bytes(count.read_bytes(), sys.byteorder))


@dataclass(frozen=True)
class Call:
    """A change to a folder or a sync, as it was made. `other`: where from, where to, or the copy of what was synced."""

    what: str
    path: str
    other: str


@contextmanager
def recording(folder: Path) -> Iterator[dict[str, str]]:
    """Settings under which all calls are written down in `folder`."""
    (folder / "copies").mkdir(parents=True)
    (folder / "calls").touch()
    yield {"FAULT_LOG": str(folder / "calls"), "FAULT_COPIES": str(folder / "copies")}


def read_calls(folder: Path) -> list[Call]:
    return [Call(*line.split("\t")) for line in (folder / "calls").read_text().splitlines()]
