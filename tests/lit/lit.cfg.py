"""How lit runs these files: each RUN line is a shell command; `%s` is the file, `%project` this repository."""

import os
import sys
from pathlib import Path

import lit.formats

settings = globals()["config"]  # lit puts it there
here = Path(__file__).parent
settings.name = "precast"
settings.test_format = lit.formats.ShTest(execute_external=False)
settings.suffixes = [".ttir", ".ttgir", ".mlir", ".test"]
settings.excludes = ["inputs"]
settings.test_source_root = str(here)
settings.test_exec_root = os.environ.get("PRECAST_LIT_OUTPUT", str(here / "Output"))
programs = os.environ.get("PRECAST_LIT_PROGRAMS", "")  # made by forking.py; without, those that are installed
folders = [programs, str(Path(sys.executable).parent), os.environ["PATH"]]
settings.environment["PATH"] = os.pathsep.join(filter(None, folders))
settings.substitutions += [
    ("%project", str(here.parents[1])),
    ("%opt", f"precast opt --project {here.parents[1]}"),
    ("%triton", str(Path(__import__("triton").__file__).parent)),
]
