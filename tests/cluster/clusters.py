"""Clusters on this machine, in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_SECONDS = 300.0


class Processes:
    """Processes that end together; what they say is kept in a file."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "cluster.log"
        self._running: list[subprocess.Popen] = []

    def start(self, *command: str, **variables: str) -> subprocess.Popen:
        with open(self.log, "a") as log:
            environment = {**os.environ, **variables}
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self._running.append(process)
        return process

    def wait_for(self, ready, process: subprocess.Popen) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            assert process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait(300)


class DaskCluster(Processes):
    """A scheduler, and workers that `precast worker` starts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        file = folder / "scheduler.json"
        words = ["--no-dashboard", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        self.scheduler = self.start(sys.executable, "-m", "distributed.cli.dask_scheduler", *words)
        self.wait_for(lambda: file.exists() and file.read_text().strip().endswith("}"), self.scheduler)
        self.url = json.loads(file.read_text())["address"].replace("tcp://", "dask://")

    def add_worker(self, jobs: int = 1, **variables: str) -> subprocess.Popen:
        """A worker that the scheduler knows."""
        before = self.log.read_text().count("Registered to:")
        worker = self.start(sys.executable, "-m", "precast", "worker", self.url, f"-j{jobs}", **variables)
        self.wait_for(lambda: self.log.read_text().count("Registered to:") > before, worker)
        return worker


class RayCluster(Processes):
    """A head with two processors."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._scratch = tempfile.mkdtemp(prefix="ray-")  # names of sockets are short
        port, client = free_port(), free_port()
        words = ["--head", "--block", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
        words += [f"--port={port}", f"--ray-client-server-port={client}", f"--temp-dir={self._scratch}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--node-ip-address=127.0.0.1", *words]
        patience = {"RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "60"}  # for each of a build's tries
        self.head = self.start(*command, **patience)
        self.wait_for(lambda: answers(client), self.head)
        self.url = f"ray://127.0.0.1:{client}"

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._scratch, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
