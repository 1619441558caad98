"""`precast tune`: measures a candidates release on this machine's device. In: candidates. Out: evidence files."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from precast.cli.arguments import find_project
from precast.errors import ToolError
from precast.layout import CANDIDATES, GENERATED
from precast.release.folder import CURRENT
from precast.release.manifest import read_manifest

HELP = "Measure a candidates release on this machine's device, and write down what was found for `precast build`."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "candidates", type=Path, nargs="?", metavar="CANDIDATES",
        help="the release that `precast build --candidates` made (default: this project's)",
    )  # fmt: skip
    if importlib.util.find_spec("numpy"):
        from precast.tuning import tune

        tune.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if not importlib.util.find_spec("numpy"):
        raise ToolError("tuning needs NumPy, which is not installed", hint="pip install numpy")
    from precast.tuning.devices import DeviceFault
    from precast.tuning.tune import TABLE, run_arguments

    release = find_candidates(arguments.candidates)
    package = release / "python" / read_manifest(release).name
    if not (package / TABLE).is_file():
        raise ToolError(f"{release} is no candidates release", hint="`precast build --candidates` makes one")
    try:
        files = run_arguments(arguments, package)
    except DeviceFault as fault:
        raise ToolError(f"cannot tune here: {fault}") from None
    print("\n".join(map(str, files)))
    return 0


def find_candidates(place: Path | None) -> Path:
    """The release: the one named, in it the newest; or that of the project which the working directory lies in."""
    if place is None:
        from precast.project import read_project

        project = read_project(find_project(Path()))
        place = project.folder / GENERATED / project.name / CANDIDATES
    current = place / CURRENT
    found = current if current.is_dir() else place
    if not found.is_dir():
        raise ToolError(f"{found} is not there", hint="`precast build --candidates` makes it")
    return found
