"""`precast worker [URL]`: says who this machine's tools are; with the address of a Dask scheduler, works for it.

In: the address. Out: a table of identities; then this process is Dask's worker. A build gives jobs only to workers
that have the tools that it was planned for.
"""

from __future__ import annotations

import argparse
import os
import sys

from precast.cli.build import check_jobs
from precast.errors import SpecError, ToolError
from precast.identity import Tools, merge_tools
from precast.target import Target
from precast.worker.connecting import ADDRESS_HINT, find_address_fault
from precast.worker.memory import default_worker_count
from precast.worker.runner import read_identities

HELP = "Say which tools this machine has; work for a cluster with them."
TARGETS = ("cuda:80", "cuda:90", "hip:gfx942", "cpu:x86-64-v3")  # between them, every tool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", metavar="URL", help="dask://HOST:PORT: work for that scheduler")
    parser.add_argument(
        "-j", "--jobs", type=int, metavar="N", help="units at once (default: what cores and memory allow)"
    )


def run(arguments: argparse.Namespace) -> int:
    if refusal := check_jobs(arguments.jobs):
        raise refusal
    command = find_command(arguments.address, arguments.jobs or default_worker_count()) if arguments.address else []
    for name, identity in find_tools():
        print(f"{name:24} {identity}", flush=True)
    if command:
        os.execve(command[0], command, {**os.environ, "PYTHONSAFEPATH": "1"})  # no module of the working directory
    return 0


def find_tools() -> Tools:
    """Every tool of this machine; where targets need different ones, each says for which."""
    identities = read_identities()
    return merge_tools({text: identities.tools(Target.parse(text)) for text in TARGETS})


def find_command(address: str, jobs: int) -> list[str]:
    """The command that works for the cluster at an address."""
    if fault := find_address_fault(address):
        raise SpecError(f"`{address}` is no address of a cluster: {fault}", hint=ADDRESS_HINT)
    kind, _, place = address.partition("://")
    if kind == "ray":
        raise SpecError(
            "Ray starts its workers itself", hint="`ray start --address HOST:PORT` makes this machine a node"
        )
    try:
        import distributed  # noqa: F401  # what the command is made of
    except ImportError as error:
        raise ToolError(f"Dask is not installed: {error}", hint="pip install 'precast[dask]'") from None
    words = ["--nthreads", str(jobs), "--nworkers", "1", "--no-dashboard"]
    return [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{place}", *words]
