"""Units do not touch each other, whatever code from outside does to the process, to its pipe and to other processes."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builds import STAND_IN, Tree
from clocks import run_ahead
from tiers import tiers

from precast.errors import CompileError
from precast.job import Job
from precast.plan import plan_project
from precast.project import read_project
from precast.worker.descendants import is_running, tree_of
from precast.worker.pool import WorkerPool, worker_kind


@pytest.fixture
def make_job(tmp_path):
    """Jobs of the stand-in engine; each runs `code` in its worker, at the start of every stage."""
    numbers = iter(range(1000))

    def make(code: str = "", **changes: object) -> Job:
        tree = Tree(tmp_path / f"p{next(numbers)}", targets=("cuda:90",), more=STAND_IN)
        tree.add_kernel("k", imports="# stand-in: run mischief.py" if code else "")
        tree.write("kernels/mischief.py", code)
        plan = plan_project(read_project(tree.folder))
        return dataclasses.replace(plan.job(plan.units[0].unit), **changes)

    return make


def wait_until(condition, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


LOOK = """
import json, math, os, pathlib, signal, sys
state = [sorted(set(os.environ) - {"PRECAST"}), os.getcwd() == os.environ["HOME"], sys.getrecursionlimit(), math.pi,
         os.listdir(), *(len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task")),
         signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL]
with open(PLACE, "a") as file:
    file.write(json.dumps([os.getpid(), state]) + "\\n")
"""
SPOIL = {
    "nothing": "",
    "environment": "os.environ['TRITON_F32_DEFAULT'] = 'ieee'",
    "folder": "os.chdir('/')",
    "limit": "sys.setrecursionlimit(3000)",
    "descriptor": "os.dup(0)",
    "signal": "signal.signal(signal.SIGUSR1, print)",
    "constant": "import math; math.pi = 3.0",
    "file": "open('left', 'w').close()",
    "watchdog": "import faulthandler; faulthandler.dump_traceback_later(10000, exit=True)",
    "orphan": "if not os.fork():\n    os.fork() or signal.pause()\n    os._exit(0)\nos.wait()",
}


def test_a_unit_finds_its_process_as_every_other_does(make_job, tmp_path):
    place = tmp_path / "seen"
    look = LOOK.replace("PLACE", repr(str(place)))
    with WorkerPool(1) as pool:
        for spoil in SPOIL.values():
            for code in (look, f"import os, signal, sys\n{spoil}\n"):
                assert pool.submit(make_job(code)).result()
    seen = [json.loads(line) for line in place.read_text().splitlines()]
    processes = list(dict.fromkeys(process for process, _ in seen))
    assert all(state == seen[0][1] for _, state in seen), seen
    assert len(processes) == len(SPOIL) - 2  # one for each that was spoilt; a good one goes on, as one without watchdog


def test_a_process_serves_one_set_of_plugins(make_job):
    from precast.passes.selection import Anchor, PassUse

    use = PassUse("count", "python", "ttir", Anchor("end"), origin="plugins/count.py", digest="1")
    job = make_job()
    kinds = {
        worker_kind(dataclasses.replace(job, passes=passes))
        for passes in ((), (use,), (dataclasses.replace(use, digest="2"),), (dataclasses.replace(use, origin="other"),))
    }
    assert len(kinds) == 4
    assert worker_kind(job) in kinds and worker_kind(dataclasses.replace(job, passes=(use, use))) in kinds


FORGED = {
    "without a token": r"""line = b'{"kind":"done","result":null}\n'""",
    "with another": r"""line = b'{"kind":"failed","failure":{"kind":"tool","message":"forged"},"token":"00"}\n'""",
    "without an end": "line = b'{'",
    "no JSON": r"line = b'\xff\n' * 1000",
    "no event": r"""line = b'[1]\n{"kind":3,"step":7}\n'""",
}


@pytest.mark.parametrize("line", tiers(FORGED, "with another", "without an end"))
def test_words_of_others_on_the_pipe_are_no_events(make_job, line):
    speak = """
import os
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2: os.write(int(name), line)
    except OSError: pass
"""
    with WorkerPool(1) as pool:
        job = make_job(line + speak)
        result = pool.submit(job).result()
    assert result.unit == str(job.unit) and Path(job.output, "facts.json").exists()


FLOOD = r"""
def flood(descriptor):
    while True:
        os.write(descriptor, words)
import os, threading
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2: os.write(int(name), b"\n")
    except OSError: continue
    threading.Thread(target=flood, args=(int(name),), daemon=True).start()
threading.Event().wait()
"""


FLOODS = {
    "events": """words = b'{"kind":"step","step":{"stage":"ttir"}}\\n' * 1000""",
    "nothing": r"words = b'\n' * 1000",
    "half a word": "words = b'{'",
}


@pytest.mark.parametrize("words", tiers(FLOODS, "events"))
def test_a_job_that_floods_its_pipe_has_its_time_limit(make_job, words):
    with WorkerPool(1) as pool:
        error = pool.submit(make_job(words + FLOOD, time_limit_s=1.0)).exception(timeout=300)
        assert isinstance(error, CompileError) and error.message == "the compiler did not end within 1 s"


def test_all_that_a_worker_says_of_its_job_is_events(make_job, monkeypatch):
    from precast.worker import process

    said, parse = [], process.from_json
    monkeypatch.setattr(process, "from_json", lambda line, kind: said.append(parse(line, kind)) or said[-1])
    with WorkerPool(1) as pool:
        job = make_job()
        result = pool.submit(job).result()
    assert [each.kind for each in said] == ["ready", *["step"] * (len(result.stages) + 1), "done"]


def test_a_fork_that_goes_on_like_the_worker_is_not_heard(make_job, tmp_path):
    code = f"""
import os, pathlib
if os.fork() == 0:
    raise RuntimeError("from the fork")
os.wait()
pathlib.Path({str(tmp_path / "forked")!r}).touch()
"""
    with WorkerPool(1) as pool:
        job = make_job(code)
        assert pool.submit(job).result().unit == str(job.unit)
    assert (tmp_path / "forked").exists()


CLOSED = {
    "closed": "import os; os.closerange(3, 4096)",
    "taken": "import os; os.closerange(3, 4096); kept = [os.open('/dev/null', os.O_RDWR) for _ in range(200)]",
    "and stays": "import os, time; os.closerange(3, 4096); time.sleep(1000)",
}


@pytest.mark.parametrize("code", tiers(CLOSED, "closed"))
def test_a_process_that_closes_its_pipe_fails_its_unit_soon(make_job, code):
    with WorkerPool(1) as pool:
        with pytest.raises(CompileError) as caught:
            pool.submit(make_job(code)).result()
        assert pool.submit(make_job()).result()
    assert caught.value.message in (
        "the process closed the pipe to its build", "the compiler ended the process with code 1"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["on_start", "write_reproducer"])
def test_a_fault_in_a_thread_of_the_pool_ends_its_future(make_job, monkeypatch, name):
    def fail(*_: object) -> None:
        raise BrokenPipeError("the reader is gone")

    if name == "write_reproducer":
        monkeypatch.setattr("precast.worker.pool.write_reproducer", fail)
    with WorkerPool(1, on_start=fail if name == "on_start" else None) as pool:
        future = pool.submit(make_job("raise SystemExit(3)"))
        assert isinstance(future.exception(timeout=300), BrokenPipeError)


DAEMON = """
import os, sys, time
os.setsid()
os.fork() and os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
time.sleep(1000)
"""
STRAY = """
import os, subprocess, sys, time
for turn in range(2):
    subprocess.run([sys.executable, "-c", DAEMON, PLACE], env={})
while len(open(PLACE).read().split()) < 2:
    time.sleep(0.01)
"""


@pytest.fixture
def stray(make_job, tmp_path):
    """A job that starts daemons, in sessions of their own, with nothing of the worker's about them; and their ids."""
    place = tmp_path / "strays"
    place.touch()

    def read() -> list[int]:
        return [int(line) for line in place.read_text().split()]

    def make(more: str = "", **changes: object) -> Job:
        return make_job(STRAY.replace("PLACE", repr(str(place))).replace("DAEMON", repr(DAEMON)) + more, **changes)

    yield make, read
    for process in read():
        if is_running(process):
            os.kill(process, signal.SIGKILL)


WAYS = {"well": "", "crash": "os.abort()", "exit": "os._exit(0)", "hang": "time.sleep(1000)"}


@pytest.mark.parametrize("more", tiers(WAYS, "well", "crash"))
def test_what_a_worker_started_ends_with_it(stray, more, monkeypatch):
    make, read = stray
    run_ahead(monkeypatch, lambda: "sleep" in more and len(read()) >= 2)
    with WorkerPool(1) as pool:
        pool.submit(make(more)).exception()
        assert len(read()) >= 2
    assert not [process for process in read() if is_running(process)]


PARENT = """
import sys
from pathlib import Path
from precast.codec import from_json
from precast.job import Job
from precast.worker.pool import WorkerPool
WorkerPool(1).submit(from_json(Path(sys.argv[1]).read_text(), Job)).result()
"""


SIGNALS = {"killed": signal.SIGKILL, "ended": signal.SIGTERM, "hung up": signal.SIGHUP}


@pytest.mark.parametrize("number", tiers(SIGNALS, "killed"))
def test_what_a_worker_started_ends_with_the_build_too(stray, tmp_path, number):
    from precast.codec import to_json

    (make, read), begun = stray, tmp_path / "begun"
    (tmp_path / "job.json").write_text(to_json(make(f"open({str(begun)!r}, 'w')\ntime.sleep(1000)")))
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "job.json")]) as parent:
        wait_until(begun.exists)
        _, *started = tree_of(parent.pid)
        assert set(read()) <= set(started)  # they went to the worker's keeper
        parent.send_signal(number)
    wait_until(lambda: not any(map(is_running, started)))


def test_memory_of_all_that_a_worker_started_counts(make_job):
    eat = "held = [os.urandom(1 << 20) * 400]; time.sleep(1000)"
    code = f"""
import os, subprocess, sys, time
for turn in range(3):
    subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); {eat}"])
time.sleep(1000)
"""
    with WorkerPool(1) as pool, pytest.raises(CompileError) as caught:
        pool.submit(make_job(code, memory_limit_mb=800)).result()
    assert caught.value.message == "the compiler needed more than its 800 MB of memory"


def test_temporary_folders_of_a_killed_build_go_with_the_next(make_job, tmp_path, monkeypatch):
    from precast.codec import to_json
    from precast.scratch import Scratch, remove_abandoned

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    mine = Scratch()
    begun = tmp_path / "begun"
    code = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(1000)"
    (tmp_path / "job.json").write_text(to_json(make_job(code)))
    command = [sys.executable, "-c", PARENT, str(tmp_path / "job.json")]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(scratch)}) as parent:
        wait_until(begun.exists)  # so its folder is whole, and locked
        remove_abandoned()
        assert len(list(scratch.iterdir())) == 2  # both belong to somebody
        parent.kill()
    remove_abandoned()
    assert [str(path) for path in scratch.iterdir()] == [mine.name]
    mine.remove()
    assert not list(scratch.iterdir())
