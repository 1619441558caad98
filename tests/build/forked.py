"""`precast` and `scons` without the half second that each takes to import its modules: forks of one process.

In: words, an environment, a folder. Out: exit code and texts, as of a process of its own; workers are such ones. The
process that has the modules has run none of their functions. There are two, which hash texts otherwise, and take turns;
they are started when first needed, and end with this one.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

MODULES = ("precast.cli.build", "precast.graph.driver", "precast.graph.tool")
REQUEST_BYTES = 1 << 20
COMMAND_SECONDS = 300.0
TURNS = itertools.cycle(("1", "2"))


def run_forked(
    words: list[str], environment: dict[str, str], seconds: float, folder: Path | None = None
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command, whose first word is `precast` or `scons`."""
    ours, theirs = socket.socketpair()
    request = json.dumps([words, os.path.abspath(folder or "."), _read_umask(), environment]).encode()
    with ours, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ours.settimeout(seconds)
        with theirs:
            server = _server(next(TURNS), environment.get("PYTHONPATH", ""))
            socket.send_fds(server, [request], [theirs.fileno(), out.fileno(), err.fileno()])
        answer = ours.recv(4)
        out.seek(0), err.seek(0)
        texts = out.read().decode(), err.read().decode()
    return int.from_bytes(answer, "little", signed=True) if answer else -1, *texts


def run_precast(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`precast WORDS` in a folder, as of a process of its own. What this process has set for Triton does not count."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    code, out, err = run_forked(["precast", *words], {**kept, **variables}, COMMAND_SECONDS, folder)
    return subprocess.CompletedProcess(["precast", *words], code, out, err)


def _read_umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


@functools.cache
def _server(hash_seed: str, path: str) -> socket.socket:
    """A process that has the modules; no child of this one, whose children are counted by tests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.run(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
            check=True,
        )
    return ours


def serve(requests: socket.socket) -> None:
    """Forks for each request until there can be no more."""
    import importlib
    import signal

    del sys.path[0]  # as `python -m precast` does
    for module in MODULES:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 3)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(socket.socket(fileno=descriptors[0]), *descriptors[1:], *json.loads(request))
        for descriptor in descriptors:
            os.close(descriptor)


def answer(client: socket.socket, out: int, err: int, words: list[str], folder: str, umask: int, environment: dict):
    """Runs one command in this fork, which ends with it."""
    import atexit

    import SCons.Script

    from precast.cli import main

    for place, descriptor in ((1, out), (2, err)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.stdout = words, open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    try:
        code = (SCons.Script.main if words[0] == "scons" else main)()
    except SystemExit as ended:
        code = ended.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    client.send(int(code or 0).to_bytes(4, "little", signed=True))
    os._exit(0)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    serve(socket.socket(fileno=int(sys.argv[1])))
