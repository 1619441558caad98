"""`precast clean [--keep N]`: removes the build folder, or old releases."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.graph.lock import locked
from precast.project import read_project
from precast.release.clean import remove_folder, remove_releases

HELP = "Remove the build folder (releases stay), or with --keep all but the newest releases (the build folder stays)."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=int, metavar="N", help="keep the N newest releases, remove older ones")
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="folder of pyproject.toml")


def run(arguments: argparse.Namespace) -> int:
    project = read_project(arguments.project)
    build = project.folder / "build"
    if arguments.keep is None and not build.exists():
        return 0
    with locked(build):
        if arguments.keep is None:
            remove_folder(build)
            print(f"removed {build}")
        else:
            for path in remove_releases(project.folder / "generated" / project.name, arguments.keep):
                print(f"removed {path}")
    return 0
