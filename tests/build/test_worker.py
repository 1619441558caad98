"""Workers when compilers crash, hang, eat memory, or the world around them goes away."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clocks import LIMIT_S, hear_steps, run_ahead
from compiling import ROOT, plan_jobs
from test_triton_engine import KERNEL, make_project

from precast.cli import main
from precast.codec import from_json
from precast.engines import StageFailure
from precast.errors import CompileError, ToolError
from precast.job import Job
from precast.store import Store
from precast.target import Target
from precast.worker.descendants import children_of as workers_of
from precast.worker.descendants import is_running, tree_of
from precast.worker.fixed import run_fixed
from precast.worker.memory import default_worker_count, tree_bytes
from precast.worker.pool import WorkerPool
from precast.worker.walk import plan_stage

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'


@pytest.fixture
def standin(tmp_path):
    """Jobs of the stand-in engine, each with orders of its own."""

    def make(*orders: str, **changes: object) -> Job:
        place = tmp_path / f"project{len(list(tmp_path.iterdir()))}"
        text = "".join(f"# stand-in: {order}\n" for order in orders)
        [job] = make_project(place, text + KERNEL.format(value=1), more=STANDIN)
        return dataclasses.replace(job, **changes)

    return make


def failure(pool: WorkerPool, job: Job) -> CompileError:
    with pytest.raises(CompileError) as caught:
        pool.submit(job).result()
    return caught.value


def wait_until(condition, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_unit_folder_holds_image_stages_and_facts(standin):
    job = standin()
    with WorkerPool(1) as pool:
        result = pool.submit(job).result()
    names = sorted(path.name for path in Path(job.output).iterdir())
    assert names == ["facts.json", "one.cubin", "one.llir", "one.ptx", "one.ttgir", "one.ttir"]
    written = from_json(Path(job.output, "facts.json").read_bytes(), type(result))
    assert written == result
    assert Store(job.store).get(result.image_digest) == Path(job.output, "one.cubin").read_bytes()


def test_only_the_image_is_linked_when_asked(standin):
    job = standin(keep_stages=False)
    with WorkerPool(1) as pool:
        pool.submit(job).result()
    assert sorted(path.name for path in Path(job.output).iterdir()) == ["facts.json", "one.cubin"]


def test_a_rebuilt_unit_takes_the_place_of_the_old_one(standin):
    job = standin()
    with WorkerPool(1) as pool:
        pool.submit(job).result()
        Path(job.output, "left.over").write_text("")
        pool.submit(job).result()
    assert not Path(job.output, "left.over").exists()
    assert [path.name for path in Path(job.output).parent.iterdir()] == [Path(job.output).name]


def test_a_crash_fails_its_unit_alone_and_leaves_a_reproducer(standin, capsys):
    crashing, good = standin("crash llir"), standin()
    with WorkerPool(1) as pool:
        first, second = pool.submit(crashing), pool.submit(good)
        with pytest.raises(CompileError) as caught:
            first.result()
        error = caught.value
        assert second.result().unit == "one@cuda:80"
    assert error.message == "the compiler crashed (SIGABRT): LLVM ERROR: the stand-in was told to crash"
    assert (error.unit, error.stage) == ("one@cuda:80", "llir")
    assert not Path(crashing.output).exists()
    folder = Path(crashing.project, error.reproducer)
    assert sorted(path.name for path in folder.iterdir()) == ["README", "files", "input.ttgir", "job.json"]
    assert main(["repro", str(folder)]) == 1
    printed = capsys.readouterr()
    assert printed.out == "LLVM ERROR: the stand-in was told to crash\n"
    assert "error: the compiler crashed (SIGABRT)" in printed.err and "llir" in printed.err


def test_a_reproducer_of_what_is_mended_says_so(standin, capsys):
    job = standin("crash llir")
    with WorkerPool(1) as pool:
        error = failure(pool, job)
    source = Path(job.project, error.reproducer, "input.ttgir")
    source.write_text(source.read_text().replace("crash", "sleep").replace("llir", "0.01"))
    assert main(["repro", str(source.parent)]) == 0
    assert capsys.readouterr().out == "one@cuda:80: stage llir runs without failure\n"


def carry_off(job, error, place):
    """The reproducer's folder moved elsewhere, and nothing left of where it was."""
    moved = place / "artifact"
    Path(job.project, error.reproducer).rename(moved)
    shutil.rmtree(job.project)
    texts = [path.read_text() for path in moved.rglob("*") if path.is_file()]
    assert not any(job.project in text for text in texts)
    return moved


def test_a_reproducer_runs_anywhere(standin, tmp_path, capsys):
    job = standin("crash llir")
    with WorkerPool(1) as pool:
        error = failure(pool, job)
    moved = carry_off(job, error, tmp_path)
    assert main(["repro", str(moved)]) == 1
    assert "stage: llir" in capsys.readouterr().err


def test_a_reproducer_of_the_front_end_has_the_kernel_s_sources(tmp_path, capsys):
    [job] = make_project(tmp_path / "p", "import os\nos.abort()\n" + KERNEL.format(value=1))
    with WorkerPool(1) as pool:
        error = failure(pool, job)
    assert main(["repro", str(carry_off(job, error, tmp_path))]) == 1
    assert "the compiler crashed (SIGABRT)" in capsys.readouterr().err


def test_a_real_compiler_abort_is_told_with_its_last_words(tmp_path):
    job = plan_jobs(ROOT, tmp_path, ["cuda:100"], ["matmul"])[0]
    job = dataclasses.replace(job, unit=dataclasses.replace(job.unit, target=Target("cuda", "101")))
    with WorkerPool(1, reproducers=tmp_path / "repro") as pool:
        error = failure(pool, job)
    assert error.message == (
        "the compiler crashed (SIGABRT): LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.tcgen05.wait.st"
    )
    assert (error.stage, error.reproducer) == ("ptx", f"{tmp_path}/repro/{job.unit.slug}-1")
    assert main(["repro", error.reproducer]) == 1


def test_a_hang_ends_at_the_time_limit(standin, monkeypatch):
    steps = hear_steps(monkeypatch)
    run_ahead(monkeypatch, lambda: any(step.stage == "ttgir" for step in steps))
    with WorkerPool(1) as pool:
        error = failure(pool, standin("hang ttgir", time_limit_s=LIMIT_S))
        assert pool.submit(standin()).result()
    assert (error.message, error.stage) == ("the compiler did not end within 900 s", "ttgir")


def test_a_module_that_hangs_when_imported_ends_at_the_time_limit(tmp_path, monkeypatch):
    steps = hear_steps(monkeypatch)
    run_ahead(monkeypatch, lambda: bool(steps))
    [job] = make_project(tmp_path / "p", "import time\ntime.sleep(1000)\n" + KERNEL.format(value=1))
    with WorkerPool(1) as pool:
        error = failure(pool, dataclasses.replace(job, time_limit_s=LIMIT_S))
    assert (error.message, error.stage) == ("the compiler did not end within 900 s", "ttir")
    assert Path(job.project, error.reproducer, "job.json").exists()


def test_too_much_memory_ends_the_unit(standin):
    with WorkerPool(1) as pool:
        error = failure(pool, standin("grow ptx", memory_limit_mb=300))
    assert (error.message, error.stage) == ("the compiler needed more than its 300 MB of memory", "ptx")


def test_a_refusal_is_the_users_with_place_and_stage(standin):
    job = standin("fail ttgir")
    with WorkerPool(1) as pool:
        error = failure(pool, job)
    assert str(error) == "kernels/one.py:1:1: the stand-in refuses ttgir"
    assert error.stage == "ttgir" and error.reproducer.startswith("build/repro/")


def test_a_project_that_cannot_be_written_still_tells_the_failure(standin, monkeypatch):
    job = standin("fail ttgir")
    with WorkerPool(1, reproducers=Path("/proc/no")) as pool:
        assert failure(pool, job).reproducer == ""


def test_a_full_disk_is_told(tmp_path, standin):
    job = standin()
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root in its own mount namespace")
    try:
        Path(small, "filler").write_bytes(b"x" * 60_000)
        with WorkerPool(1) as pool, pytest.raises(ToolError) as caught:
            pool.submit(dataclasses.replace(job, store=str(small / "store"))).result()
        assert caught.value.message.startswith("no space left to write ")
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_kernel_whose_file_is_gone_is_an_error_of_ours_or_the_users_not_a_hang(standin):
    job = standin()
    Path(job.project, "kernels/one.py").unlink()
    with WorkerPool(1) as pool:
        error = pool.submit(job).exception()
    assert error is not None and "one.py" in str(error)


def test_workers_are_recycled(standin):
    processes = []
    with WorkerPool(
        1, jobs_per_worker=2, on_start=lambda job: processes.append(tuple(workers_of(os.getpid())))
    ) as pool:
        for future in [pool.submit(standin()) for _ in range(5)]:
            future.result()
        processes.append(tuple(workers_of(os.getpid())))
    assert len({each for each in processes if each}) == 3


def test_settings_start_another_worker(standin):
    job = standin()
    other = dataclasses.replace(job, settings=dataclasses.replace(job.settings, line_info=True))
    seen, submitted = [], threading.Event()

    def begin(job: Job) -> None:
        seen.append(job.settings)
        submitted.wait()

    with WorkerPool(1, on_start=begin) as pool:
        futures = [pool.submit(each) for each in (standin(), other, job, other)]
        submitted.set()
        assert all(future.result() for future in futures)
    assert [each.line_info for each in seen] == [False, False, True, True]


def test_a_pool_that_knows_what_comes_has_no_more_workers_than_jobs(standin):
    jobs = [standin(), standin()]
    with WorkerPool(3) as pool:
        pool.prepare(jobs)
        wait_until(lambda: len(workers_of(os.getpid())) == 2)
        ready = workers_of(os.getpid())
        pool.prepare(jobs)
        assert all(future.result() for future in [pool.submit(job) for job in jobs[:1]])
        assert set(ready) <= set(workers_of(os.getpid()))
    assert not workers_of(os.getpid())


def test_a_worker_that_waits_has_its_engine(tmp_path):
    [job] = make_project(tmp_path, KERNEL.format(value=1))
    with WorkerPool(1) as pool:
        pool.prepare([job])
        wait_until(lambda: workers_of(os.getpid()))
        [keeper] = workers_of(os.getpid())
        wait_until(lambda: workers_of(keeper))
        [worker] = workers_of(keeper)
        wait_until(lambda: "libtriton" in Path(f"/proc/{worker}/maps").read_text())
        assert pool.submit(job).result()
        assert workers_of(os.getpid()) == [keeper] and workers_of(keeper) == [worker]


def test_a_worker_that_cannot_get_ready_is_told_by_its_job(standin, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    job = standin()
    with WorkerPool(1) as pool:
        pool.prepare([job])
        with pytest.raises(ToolError, match="a worker does not start: it said nothing"):
            pool.submit(job).result()


def test_a_failure_takes_what_waits_or_comes_later_with_it_when_asked(standin):
    failing, good = standin("sleep 0.1", "fail llir"), standin()
    with WorkerPool(1, keep_going=False) as pool:
        first, waiting = pool.submit(failing), pool.submit(good)
        assert isinstance(first.exception(), CompileError)
        assert waiting.cancelled()
        assert pool.submit(standin()).cancelled()


def test_closing_with_cancel_ends_what_runs(standin, monkeypatch):
    pool, steps = WorkerPool(1), hear_steps(monkeypatch)
    running, waiting = pool.submit(standin("hang ttgir")), pool.submit(standin())
    wait_until(lambda: any(step.stage == "ttgir" for step in steps))
    pool.close(cancel=True)
    assert waiting.cancelled()
    assert str(running.exception()) == "the build was stopped before this unit was done"
    assert not workers_of(os.getpid())


def test_no_file_of_a_worker_is_left(standin, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with WorkerPool(2) as pool:
        pool.submit(standin()).result()
        assert failure(pool, standin("crash ttir"))
    assert list(scratch.iterdir()) == []


PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from precast.codec import from_json
from precast.job import Job
from precast.worker.pool import WorkerPool
pool = WorkerPool(1)
pool.submit(from_json(Path(sys.argv[2]).read_text(), Job)).result()
"""


def test_workers_die_with_their_parent(standin, tmp_path):
    from precast.codec import to_json

    (tmp_path / "job.json").write_text(to_json(standin("hang ttgir")))
    command = [sys.executable, "-c", PARENT, str(ROOT / "tests/build"), str(tmp_path / "job.json")]
    parent = subprocess.Popen(command)
    try:
        wait_until(lambda: len(list(tree_of(parent.pid))) == 3)
        _, *workers = tree_of(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_until(lambda: not any(map(is_running, workers)))
    finally:
        parent.kill()
        parent.wait()


def test_the_environment_of_the_user_is_not_heard(tmp_path, monkeypatch):
    [job] = make_project(tmp_path, KERNEL.format(value=1.0))
    with WorkerPool(1) as pool:
        plain = pool.submit(job).result()
    monkeypatch.setenv("TRITON_F32_DEFAULT", "tf32x3")
    monkeypatch.setenv("DISABLE_PTXAS_OPT", "1")
    monkeypatch.setenv("PTXAS_OPTIONS", "-O0")
    fresh = dataclasses.replace(job, store=f"{job.store}2", output=f"{job.output}2")
    with WorkerPool(1) as pool:
        assert pool.submit(fresh).result() == plain


def test_worker_count_respects_memory(monkeypatch):
    assert 1 <= default_worker_count() <= os.cpu_count()
    monkeypatch.setattr("precast.worker.memory.available_cores", lambda: 64)
    monkeypatch.setattr("precast.worker.memory.available_bytes", lambda: 3 << 30)
    assert default_worker_count() == 4
    assert tree_bytes(os.getpid()) > 10 << 20


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("crash ttgir", "the compiler crashed (SIGABRT): LLVM ERROR: the stand-in was told to crash"),
        ("fail ttgir", "the stand-in refuses ttgir"),
    ],
)
def test_a_stage_in_its_own_process_fails_like_any_other(standin, order, message):
    with pytest.raises(StageFailure) as caught:
        job = standin()
        inputs = plan_stage(job, "ttgir", "{}", "")
        run_fixed(inputs, f"# stand-in: {order}\n".encode(), Path(job.project), "stand-in")
    assert caught.value.message == message


def test_a_worker_that_does_not_start_is_told(standin, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with WorkerPool(1) as pool, pytest.raises(ToolError, match="a worker does not start: it said nothing"):
        pool.submit(standin()).result()
