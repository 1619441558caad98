"""Commands for lit without the second that each takes to import compilers: forks of one process that has them.

In: a folder. Out: programs `precast` and `filecheck` in it, which hand their words and streams to `serve` and end as
the fork there ends. What a command prints, and how it fails, is as in a process of its own.
"""

import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

# What lit starts instead: no site folder, four imports.
CLIENT = """#!{python} -SEs
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd()]).encode()
socket.send_fds(server, [words], [0, 1, 2])
answer = server.recv(1)
sys.exit(answer[0] if answer else 134)
"""
PROGRAMS = {"precast": "precast.cli", "filecheck": "filecheck.main"}
WORDS_BYTES = 65536


def write_programs(folder: Path) -> None:
    """Programs whose server listens in `folder`."""
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(CLIENT.format(python=sys.executable, address=str(folder / "socket")))
        (folder / name).chmod(0o755)


def serve(folder: Path) -> None:
    """Answers the programs in `folder` until this process is ended."""
    import mlir.ir  # noqa: F401  (before anything of Triton's that may load a native plugin)

    os.environ["TRITON_DISABLE_LINE_INFO"] = os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    for module in (*PROGRAMS.values(), "precast.engines.triton.opt", "precast.engines.triton.opt_passes"):
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "draft"))
    listener.listen(16)
    (folder / "draft").rename(folder / "socket")  # who sees it may connect
    while True:
        client, _ = listener.accept()
        words, streams, _, _ = socket.recv_fds(client, WORDS_BYTES, 3)
        if os.fork() == 0:
            answer(client, *json.loads(words), streams)
        for descriptor in (*streams, client.detach()):
            os.close(descriptor)


def answer(client: socket.socket, program: str, words: list[str], folder: str, streams: list[int]) -> None:
    """Runs one command in this fork, which ends with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(folder)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.argv = [program, *words]
    try:
        code = importlib.import_module(PROGRAMS[program]).main()
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    client.send(bytes([int(code or 0)]))
    os._exit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
