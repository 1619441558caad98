"""Servers that answer 2,000 requests while the release under them is exchanged: none is refused, none is wrong.

A release is exchanged by moving a link, as a deployment does. A request that was sent after the move is answered by the
new release, one that was answered before it by the old one, and one in between by either, as that one computes.
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from precast.cli.init import make_project

HERE = Path(__file__).parent
CLIENTS, REQUESTS = 8, 2000
Ask = Callable[[int, float], tuple[str, float]]  # n and alpha to the release that answered, and what it says

pytestmark = pytest.mark.all


@dataclass(frozen=True)
class Releases:
    """Two releases of one interface: the second adds 1 to what the first computes."""

    first: Path
    second: Path


def run(*words: object, folder: Path, **environment: str) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(project: Path) -> Path:
    run(sys.executable, "-m", "precast", "build", "--target", "cpu:*", folder=project)
    return (project / "generated/shop/current").resolve()


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    project = tmp_path_factory.mktemp("servers") / "shop"
    make_project(project)
    settings = project / "pyproject.toml"
    first = build(project)
    kernel = project / "kernels/scale_add.py"
    kernel.write_text(kernel.read_text().replace("tl.store(out + offsets, ", "tl.store(out + offsets, 1 + "))
    settings.write_text(settings.read_text().replace("0.1.0", "0.2.0"))
    found = Releases(first, build(project))
    assert found.first != found.second
    return found


@dataclass
class Answer:
    begun_after: bool  # when it was sent, the link had been moved
    ended_before: bool  # when it was answered, nobody had begun to move it
    folder: str
    right: bool


class Deployment:
    """The link to the current release, which moves once 1,000 requests are answered and while 500 more may be on their
    way; and what was answered when."""

    def __init__(self, folder: Path, releases: Releases) -> None:
        self.link = folder / "current"
        self.link.symlink_to(releases.first)
        self.answers: list[Answer] = []
        self._releases = releases
        self._lock = threading.Lock()
        self._half = threading.Event()  # 1,000 are answered
        self._moving, self._moved = threading.Event(), threading.Event()

    def move(self) -> None:
        assert self._half.wait(300)
        self._moving.set()
        new = self.link.with_name("next")
        new.symlink_to(self._releases.second)
        new.rename(self.link)
        self._moved.set()

    def ask(self, ask: Ask, number: int) -> None:
        if number >= REQUESTS * 3 // 4:
            assert self._moved.wait(300)
        n, alpha = 1 + number % 3000, 1 + number % 7
        after = self._moved.is_set()
        folder, last = ask(n, float(alpha))
        before = not self._moving.is_set()
        expected = alpha * (n - 1) + 1 + (folder == str(self._releases.second))
        with self._lock:
            self.answers.append(Answer(after, before, folder, last == expected))
            if len(self.answers) == REQUESTS // 2:
                self._half.set()

    def check(self) -> None:
        assert len(self.answers) == REQUESTS
        assert all(answer.right for answer in self.answers)
        known = {str(self._releases.first), str(self._releases.second)}
        assert {answer.folder for answer in self.answers} == known
        late = {answer.folder for answer in self.answers if answer.begun_after}
        early = {answer.folder for answer in self.answers if answer.ended_before}
        assert late <= {str(self._releases.second)} and early <= {str(self._releases.first)}


def ask_all(deployment: Deployment, connect: Callable[[], Ask]) -> None:
    """Eight clients ask, each over a connection of its own."""

    def work(client: int) -> None:
        ask = connect()
        for number in range(client, REQUESTS, CLIENTS):
            deployment.ask(ask, number)

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        moving = pool.submit(deployment.move)
        for done in [pool.submit(work, client) for client in range(CLIENTS)]:
            done.result()
        moving.result()


@contextmanager
def running(*words: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [str(word) for word in words]
    server = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    try:
        yield server
    finally:
        server.terminate()
        server.communicate()


def test_fastapi_with_two_workers(releases: Releases, tmp_path: Path) -> None:
    import httpx  # an environment of the first tier may be without it

    deployment, place = Deployment(tmp_path, releases), tmp_path / "socket"
    words = (sys.executable, "-m", "uvicorn", "app:app", "--app-dir", HERE, "--workers", "2", "--uds", place)
    folders = {"0.1.0": str(releases.first), "0.2.0": str(releases.second)}
    workers: set[int] = set()

    def connect() -> Ask:
        client = httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), base_url="http://server", timeout=120)

        def ask(n: int, alpha: float) -> tuple[str, float]:
            said = client.get("/scale", params={"n": n, "alpha": alpha}).raise_for_status().json()
            workers.add(said["worker"])
            return folders[said["version"]], said["last"]

        return ask

    with running(*words, "--log-level", "warning", CURRENT=str(deployment.link)) as server:
        while len(workers) < 2:  # until it listens, and each of its workers has answered
            assert server.poll() is None
            with suppress(httpx.ConnectError):
                connect()(1, 1.0)
        ask_all(deployment, connect)
    deployment.check()


def test_cpp_with_eight_threads(releases: Releases, tmp_path: Path) -> None:
    """Built against a release that is then moved: what was linked is found where it is now."""
    place = Path(shutil.copytree(releases.first, tmp_path / "first", symlinks=True))
    run("cmake", "-S", HERE, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={place}", folder=tmp_path)
    run("cmake", "--build", tmp_path / "build", folder=tmp_path)
    moved = place.rename(tmp_path / "elsewhere")
    deployment, path = Deployment(tmp_path, releases), tmp_path / "socket"

    def connect() -> Ask:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        stream = connection.makefile("rw")

        def ask(n: int, alpha: float) -> tuple[str, float]:
            stream.write(f"{n} {alpha}\n")
            stream.flush()
            folder, last = stream.readline().rsplit(" ", 1)
            return folder, float(last)

        return ask

    words = (tmp_path / "build/server", path, deployment.link)
    with running(*words, LD_LIBRARY_PATH=str(moved / "lib")) as server:
        assert server.stdout and server.stdout.readline() == "listening\n"
        ask_all(deployment, connect)
    deployment.check()
