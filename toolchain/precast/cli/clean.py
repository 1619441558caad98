"""`precast clean [--keep N]`: removes old releases, and what the build folder holds for no unit any more."""

from __future__ import annotations

import argparse

from precast.cli.arguments import add_project
from precast.errors import BugError
from precast.graph.collect import collect_leftovers, prune_store, remove_unfinished
from precast.graph.lock import LOCK_FILE, locked, remove_locked
from precast.graph.request import Request
from precast.graph.session import Begin, Fetch, Session, Warn
from precast.graph.unfinished import end_writing
from precast.layout import BUILD, GENERATED
from precast.progress.events import SilentReporter
from precast.project import Project, read_project
from precast.release.clean import empty_folder, remove_releases
from precast.scratch import remove_abandoned
from precast.worker.executor import Executor

HELP = "Remove old releases, and what the build folder holds for no unit any more."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=int, default=1, metavar="N", help="releases to keep, newest first (default: 1)")
    parser.add_argument("--all", action="store_true", help="remove the whole build folder and every release")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    project = read_project(arguments.project)
    build = project.folder / BUILD
    with locked(build):
        remove_abandoned()
        remove_unfinished(project.folder)
        removed = remove_releases(project.folder / GENERATED / project.name, 0 if arguments.all else arguments.keep)
        for path in removed:
            print(f"removed {path}")
        if arguments.all:
            empty_folder(build, keep=LOCK_FILE)
            remove_locked(build)
            print(f"removed {build}")
        else:
            print(f"removed {clean_build(project)} unused entries of the store")
            end_writing(project.folder)
    return 0


def clean_build(project: Project) -> int:
    """Collects leftovers in the build folder; returns how many entries of the store went."""
    session = Session(project, Request(), SilentReporter(), _refuse)
    try:
        collect_leftovers(session)
        return prune_store(session)
    finally:
        session.close()


def _refuse(request: Request, on_start: Begin, fetch: Fetch | None, warn: Warn) -> Executor:
    raise BugError("cleaning compiled a unit")
