"""Jobs that travel: batches, what a worker refuses, and what the build does with what comes back or never does."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from small_projects import SETTINGS, SPEC, make_project, plan

from precast.artifact import UnitResult
from precast.cli import main
from precast.codec import from_json, to_json
from precast.engines import StageFailure
from precast.engines.standin import StandinEngine
from precast.job import Job
from precast.plan import make_job
from precast.reads import Read, ReadKind
from precast.worker.batch import Answer, Answers, Batch, Message, checked, pack_batch, unpack_answer
from precast.worker.cluster import ClusterExecutor, ClusterLost, WorkerGone, batch_size
from precast.worker.connecting import ADDRESS_HINT, find_address_fault
from precast.worker.parcel import reads_alike
from precast.worker.runner import BatchRunner
from precast.worker.walk import run_job

STANDIN = SETTINGS + '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'
KERNEL = """\
import triton
import triton.language as tl
{order}

@triton.jit
def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    pass
"""


def make_jobs(folder: Path, order: str = "", blocks: str = "[128]") -> list[Job]:
    """A job for each unit of a project on the stand-in engine; two data types for each block size and target."""
    spec = SPEC.replace("[128]", blocks)
    kernel = KERNEL.format(order=order)
    make_project(folder, {"pyproject.toml": STANDIN, "kernels/scale.py": kernel, "kernels/scale.toml": spec})
    found = plan(folder)
    project = replace(found.project, folder=folder.resolve())
    return [make_job(each.given, project) for each in found.units]


class Here:
    """The executor of what is not for the cluster: compiles in this process."""

    room = 1

    def __init__(self, begin) -> None:
        self.jobs: list[Job] = []
        self._begin = begin

    def submit(self, job: Job) -> Future:
        self.jobs.append(job)
        self._begin(job)
        future: Future = Future()
        try:
            future.set_result(run_job(job, StandinEngine(), lambda step: None))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, *, cancel: bool = False) -> None:
        pass


class Workers:
    """A cluster of one real runner under several names; `fate` says what becomes of a message before it runs."""

    address = "dask://here:1"

    def __init__(self, runner: BatchRunner, slots: int = 1, fate=lambda worker, message: None, names=("one",)) -> None:
        self.slots = slots
        self.sizes: list[int] = []
        self._runner, self._fate, self._names = runner, fate, names

    def run(self, message: Message, avoid: frozenset[str]) -> tuple[str, Message]:
        left = [each for each in self._names if each not in avoid]
        if not left:
            raise ClusterLost("none of its workers has the tools of this build")
        self.sizes.append(len(from_json(message[0], Batch).jobs))
        return left[0], self._fate(left[0], message) or self._runner.run(message)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def runner() -> Iterator[BatchRunner]:
    made = BatchRunner(1)
    yield made
    made.close()


class Build:
    """An executor on `cluster`, what was told of it, and what it was left to compile here."""

    def __init__(self, cluster: Workers, keep_going: bool = True) -> None:
        self.started: list[str] = []
        self.warnings: list[str] = []
        self._local: list[Here] = []
        self.executor = ClusterExecutor(
            cluster, self._start_local, self._begin, self.warnings.append, keep_going=keep_going
        )

    def _begin(self, job: Job) -> None:
        self.started.append(str(job.unit))

    def _start_local(self, begin) -> Here:
        self._local.append(Here(begin))
        return self._local[-1]

    @property
    def compiled_here(self) -> list[Job]:
        return [job for each in self._local for job in each.jobs]

    def run(self, jobs: list[Job]) -> list:
        """What becomes of each job: its result, or its error."""
        futures = [self.executor.submit(job) for job in jobs]
        ends = [future.exception(300) or future.result() for future in futures]
        self.executor.close()
        return ends


def names_of(jobs: list[Job]) -> list[str]:
    return sorted(str(job.unit) for job in jobs)


def folder_of(job: Job) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(job.output).iterdir()}


def test_a_cluster_makes_what_this_machine_makes(tmp_path, runner):
    jobs, alike = make_jobs(tmp_path / "a"), make_jobs(tmp_path / "b")
    build = Build(Workers(runner))
    results = build.run(jobs)
    assert [result.unit for result in results] == [str(job.unit) for job in jobs]
    assert sorted(build.started) == sorted(result.unit for result in results)
    assert not build.compiled_here and not build.warnings
    for job, same in zip(jobs, alike, strict=True):
        run_job(same, StandinEngine(), lambda step: None)
        made, wanted = folder_of(job), folder_of(same)
        facts = [from_json(each.pop("facts.json"), UnitResult) for each in (made, wanted)]  # times do not compare
        assert facts[0] == facts[1]
        assert made == wanted


@pytest.mark.parametrize(("seconds", "count"), [(0.0, 1), (5.0, 1), (0.4, 2), (0.1, 10), (0.001, 16)])
def test_short_units_travel_together(seconds, count):
    assert batch_size(seconds) == count


def test_batches_are_as_large_as_units_are_short(tmp_path, runner):
    jobs = make_jobs(tmp_path, blocks=str([2**number for number in range(4, 12)]))
    begun, submitted = threading.Semaphore(0), threading.Event()

    def answer(worker: str, message: Message) -> Message:
        begun.release()
        submitted.wait(300)
        text, blobs = runner.run(message)
        units = [each.unit for each in from_json(text, Answers).answers]
        short = [replace(unit, result=replace(unit.result, seconds=0.01)) for unit in units]
        return to_json(Answers(tuple(map(Answer, short)))), blobs

    cluster = Workers(runner, fate=answer)
    build = Build(cluster)
    futures = [build.executor.submit(job) for job in jobs]
    for _ in range(2):  # of which each has one unit, for nobody knows yet what one takes
        assert begun.acquire(timeout=300)
    submitted.set()
    for future in futures:
        future.result(300)
    build.executor.close()
    assert sorted(cluster.sizes) == [1, 1, 1, 2, 4, 8, 15, 16]  # the last ones are small, so that workers end together


def test_a_worker_with_other_tools_gets_no_more_jobs(tmp_path, runner):
    jobs = make_jobs(tmp_path)
    tool, identity = jobs[0].tools[0]

    def refuse(worker: str, message: Message) -> Message | None:
        if worker != "old":
            return None
        jobs = [replace(each, job=replace(each.job, tools=((tool, "another"),))) for each in sent_in(message)]
        return runner.run((to_json(Batch(tuple(jobs))), message[1]))

    build = Build(Workers(runner, fate=refuse, names=("old", "new")))
    results = build.run(jobs)
    assert [result.unit for result in results] == [str(job.unit) for job in jobs] and not build.compiled_here
    refusal = f"dask://here:1: worker old gets no jobs: {tool} is {identity} there and another here"
    assert build.warnings == [refusal]
    build = Build(Workers(runner, fate=refuse, names=("old",)))
    build.run(jobs)
    assert len(build.compiled_here) == len(jobs)
    assert build.warnings == [
        refusal,
        "dask://here:1 is not used from here on: none of its workers has the tools of this build; "
        "the rest is compiled here",
    ]


def sent_in(message: Message) -> tuple:
    return from_json(message[0], Batch).jobs


def test_a_worker_of_another_version_refuses(runner):
    for text in ("{}", '{"jobs":[],"format":99}', '{"jobs":[],"format":1,"more":1}'):
        answers = from_json(runner.run((text, {}))[0], Answers)
        assert (answers.answers, answers.refusal) == ((), "it has another version of Precast")


def test_installed_files_must_be_the_same(tmp_path, runner):
    (job, *_) = make_jobs(tmp_path)
    name = "<installed>/pytest/__init__.py"
    text, _ = runner.run(pack_batch([replace(job, sources=((name, "0" * 64),))]))
    assert from_json(text, Answers).refusal == "pytest/__init__.py is another file there than here"


def test_a_lost_cluster_leaves_the_rest_to_this_machine(tmp_path, runner):
    jobs = make_jobs(tmp_path)
    served = threading.Semaphore(1)

    def lose(worker: str, message: Message) -> None:
        if not served.acquire(blocking=False):
            raise ClusterLost("the connection to its scheduler is lost")

    build = Build(Workers(runner, fate=lose))
    results = build.run(jobs)
    assert [result.unit for result in results] == [str(job.unit) for job in jobs]
    assert len(build.compiled_here) == len(jobs) - 1 and sorted(build.started) == sorted(str(job.unit) for job in jobs)
    assert build.warnings == [
        "dask://here:1 is not used from here on: the connection to its scheduler is lost; the rest is compiled here"
    ]


def test_a_worker_that_is_gone_costs_one_unit_a_second_try(tmp_path, runner):
    jobs = make_jobs(tmp_path)
    bad = str(jobs[2].unit)

    def die(worker: str, message: Message) -> None:
        if bad in [str(each.job.unit) for each in sent_in(message)]:
            raise WorkerGone

    build = Build(Workers(runner, fate=die))
    assert [result.unit for result in build.run(jobs)] == [str(job.unit) for job in jobs]
    assert [str(job.unit) for job in build.compiled_here] == [bad]
    cause = "the worker that had it is gone"
    assert build.warnings == [f"{bad} is compiled here, not at dask://here:1, as all such are: {cause}"]


def test_a_unit_fails_by_this_machine_alone(tmp_path, runner):
    jobs = make_jobs(tmp_path, "# stand-in: fail hsaco")
    build = Build(Workers(runner))
    ends = build.run(jobs)
    failed = [job for job, end in zip(jobs, ends, strict=True) if isinstance(end, Exception)]
    assert names_of(failed) == names_of(build.compiled_here)
    assert failed == [job for job in jobs if job.unit.target.backend == "hip"]
    assert "the stand-in refuses hsaco" in build.warnings[0] and len(build.warnings) == 1


def test_without_keep_going_a_failure_takes_what_waits(tmp_path, runner):
    jobs = make_jobs(tmp_path, "# stand-in: fail ttir")
    submitted = threading.Event()
    build = Build(Workers(runner, fate=lambda *_: submitted.wait(300) and None), keep_going=False)
    futures = [build.executor.submit(job) for job in jobs]
    submitted.set()
    build.executor.close()
    assert all(future.done() for future in futures)
    assert any(future.cancelled() for future in futures)
    assert any(not future.cancelled() and isinstance(future.exception(), StageFailure) for future in futures)


def test_without_keep_going_nothing_starts_after_a_failure(tmp_path, runner):
    first, later, *_ = make_jobs(tmp_path, "# stand-in: fail ttir")
    executor = Build(Workers(runner), keep_going=False).executor
    assert isinstance(executor.submit(first).exception(), StageFailure)
    assert executor.submit(later).cancelled()
    executor.close()


def test_what_is_read_otherwise_there_is_compiled_here(tmp_path, runner):
    jobs = make_jobs(tmp_path, "# stand-in: data table.json")
    (tmp_path / "table.json").write_text("[1]")  # which no import shows, so that no worker has it
    build = Build(Workers(runner))
    results = build.run(jobs)
    assert names_of(build.compiled_here) == names_of(jobs) and all(result.reads for result in results)
    assert build.warnings[0].endswith("as all such are: what its module reads is not the same there")


def test_damage_on_the_way_is_noticed(tmp_path, runner):
    (job, *_) = make_jobs(tmp_path)
    text, blobs = runner.run(pack_batch([job]))
    (answer,) = from_json(text, Answers).answers
    spoilt = checked({digest: blob + b"x" for digest, blob in blobs.items()})
    assert unpack_answer(job, answer, spoilt) == (None, "what came back is damaged")
    assert not Path(job.output).exists()
    assert unpack_answer(job, answer, checked(blobs))[0].unit == str(job.unit)


@pytest.mark.parametrize("key", ["aa/../../../../outside", "../../outside", "A" * 64, ""])
def test_what_comes_back_lands_nowhere_but_in_the_store(tmp_path, runner, key):
    (job, *_) = make_jobs(tmp_path / "p")
    text, blobs = runner.run(pack_batch([job]))
    (answer,) = from_json(text, Answers).answers
    stages = tuple(replace(stage, key=key) for stage in answer.unit.result.stages)
    forged = replace(answer, unit=replace(answer.unit, result=replace(answer.unit.result, stages=stages)))
    before = sorted(tmp_path.rglob("*"))
    unreadable = replace(answer, unit=replace(answer.unit, records=("\ud800",) * len(stages)))
    for each in (forged, unreadable):
        assert unpack_answer(job, each, checked(blobs)) == (None, "what came back is damaged")
    assert sorted(tmp_path.rglob("*")) == before


NO_NAMES = ["a\0b", "\ud800", "", "../" * 2000, "a" * 5000, "**\0", "/dev/zero"]


@pytest.mark.parametrize("name", NO_NAMES, ids=lambda name: ascii(name[:9]))
def test_what_no_file_can_be_called_is_not_read_alike(tmp_path, runner, name):
    (job, *_) = make_jobs(tmp_path)
    text, _ = runner.run(pack_batch([job]))
    result = from_json(text, Answers).answers[0].unit.result
    for kind in ReadKind:
        assert not reads_alike(replace(result, reads=(Read(kind, name, "0" * 64),)), tmp_path), kind


def test_a_message_that_is_dropped_takes_its_jobs_with_it(tmp_path, runner):
    begun = tmp_path / "begun"
    waiting = f"import time\nfrom pathlib import Path\nPath({str(begun)!r}).touch()\ntime.sleep(900)\n"
    slow = make_jobs(tmp_path / "slow", "# stand-in: run wait.py\nimport wait")
    (tmp_path / "slow/kernels/wait.py").write_text(waiting)
    slow = make_jobs(tmp_path / "slow", "# stand-in: run wait.py\nimport wait")
    answers: list[Message] = []
    thread = threading.Thread(target=lambda: answers.append(runner.run(pack_batch(slow), "one")))
    thread.start()
    while not begun.exists():
        time.sleep(0.01)
    runner.drop("another")
    runner.drop("one")
    thread.join(300)
    found = from_json(answers[0][0], Answers).answers
    assert len(found) == len(slow) and not any(each.unit for each in found)
    assert "the build was stopped" in found[0].failure
    runner.drop("one")
    jobs = make_jobs(tmp_path / "quick")
    assert all(each.unit for each in from_json(runner.run(pack_batch(jobs), "one")[0], Answers).answers)


def test_stages_that_turn_out_the_same_are_not_run_again(tmp_path, runner):
    (job, *_) = make_jobs(tmp_path, "# one remark")
    run_job(job, StandinEngine(), lambda step: None)
    (job, *_) = make_jobs(tmp_path, "# another")
    text, _ = runner.run(pack_batch([job]))
    (answer,) = from_json(text, Answers).answers
    assert all(stage.reused for stage in answer.unit.result.stages)


def test_jobs_of_files_elsewhere_stay_here(tmp_path, runner):
    (job, *_) = make_jobs(tmp_path)
    ptxas = replace(job, settings=replace(job.settings, ptxas="/opt/ptxas"))
    beside = replace(job, sources=(*job.sources, ("../beside.py", "0" * 64)))
    cluster = Workers(runner)
    build = Build(cluster)
    build.run([ptxas, beside])
    assert (build.compiled_here, cluster.sizes, build.warnings) == ([ptxas, beside], [], [])


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("dask://host:8786", ""),
        ("ray://[::1]:10001", ""),
        ("dask://host", "it names no host and port"),
        ("dask://host:x", "it names no host and port"),
        ("dask://ann:secret@host:8786", "it names no host and port"),
        ("dask://host:8786/", "it names no host and port"),
        ("ray://a b:1", "it names no host and port"),
        ("ray://host:99999", "there is no port 99999"),
        ("ray://host:0", "there is no port 0"),
        ("tcp://host:8786", "`tcp` is no kind of cluster that Precast knows"),
        ("host", "`host` is no kind of cluster that Precast knows"),
    ],
)
def test_addresses(address, fault):
    assert find_address_fault(address) == fault


WORKERS = {
    "tcp://host:1": "error: `tcp://host:1` is no address of a cluster: `tcp` is no kind of cluster that Precast knows\n"
    f"hint: {ADDRESS_HINT}\n",
    "ray://host:1": "error: Ray starts its workers itself\n"
    "hint: `ray start --address HOST:PORT` makes this machine a node\n",
    "-j0": "error: 0 units at once build nothing\nhint: `-j` takes 1 or more\n",
    "-j=-1": "error: -1 units at once build nothing\nhint: `-j` takes 1 or more\n",
}


@pytest.mark.parametrize(("word", "told"), WORKERS.items())
def test_a_worker_of_nothing_is_told(capsys, word, told):
    assert main(["worker", word]) == 1
    assert capsys.readouterr() == ("", told)
