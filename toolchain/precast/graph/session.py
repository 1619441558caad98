"""One build: what is stale, what happened, what came of it. In: project and request. Out: index, events, summary.

Knows nothing of SCons: the driver asks it whether anything moved, the SCons tool asks it about each step and tells it
when one ran. A step that the index calls fresh is never made again, whoever asks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from precast import collector
from precast.errors import BuildFailed, CompileError, PlanError, PrecastError
from precast.graph.checking import check_units, choose_samples
from precast.graph.index import Index
from precast.graph.order import Cost, longest_first
from precast.graph.places import refuse_misplaced
from precast.graph.request import Request
from precast.graph.steps import Step, Steps, UnitStep, check_launchers, find_toolchain, plan_steps
from precast.job import Job
from precast.layout import BUILD, INDEX_FILE, OBJECTS, SCONSTRUCT
from precast.passes.probes import Probe
from precast.passes.registry import GLOBS, Origin, list_probes
from precast.plan import Plan, plan_project
from precast.progress.events import COMPLETE, FAILED, INTERRUPTED, Reporter, Summary, tell_end
from precast.project import Project
from precast.reads import Read, ReadKind, digest_glob
from precast.release.folder import read_pointer
from precast.scratch import Scratch
from precast.worker.executor import Executor

if TYPE_CHECKING:
    from precast.graph.narrow import Narrow
    from precast.graph.sharing import Sharing


Fetch = Callable[[str], bool]  # brings the stage of a key into the store; whether it is there now


Begin = Callable[[Job], None]  # is told that a job starts
Warn = Callable[[str], None]


def start_executor(request: Request, on_start: Begin, fetch: Fetch | None, warn: Warn) -> Executor:
    """This machine's workers, of which none is started before it is known that a unit must be compiled; or a cluster's,
    with this machine's for what is not for it."""
    from precast.worker.pool import WorkerPool  # not for a build that has nothing to do

    def start_pool(on_start: Begin) -> WorkerPool:
        return WorkerPool(request.jobs, on_start, keep_going=request.goes_on, fetch=fetch)

    if not request.executor:
        return start_pool(on_start)
    from precast.worker.cluster import ClusterExecutor
    from precast.worker.connecting import connect

    cluster = connect(request.executor)
    return ClusterExecutor(cluster, start_pool, on_start, warn, keep_going=request.goes_on)


class Session:
    """State of one build, from the first question to the summary. Its public parts may be used from task threads."""

    def __init__(
        self,
        project: Project,
        request: Request,
        reporter: Reporter,
        start_executor: Callable[[Request, Begin, Fetch | None, Warn], Executor],
        *,
        aloud: bool = False,
        narrow: Narrow | None = None,
    ) -> None:
        """`start_executor` takes what was asked for, whom to tell that a job starts, who may bring a stage, and whom to
        warn.
        `aloud`: nobody reads `failures` afterwards, so the graph prints them when they happen.
        `narrow`: a plan of few kernels, when nothing else moved."""
        self.project = project
        self.request = request
        self.folder = project.folder.resolve()
        self.placed = replace(project, folder=self.folder)  # what holds wherever the process is by then
        self.origin = os.getcwd()  # which the graph leaves
        self.begun = False
        self.interrupted = False
        self.narrow = narrow
        self.made_before: set[str] = set()  # by the steps of a narrow plan
        self.index = Index(self.folder / INDEX_FILE, self.folder, whole=narrow is None)
        if narrow is not None:
            self.index.know(narrow.states)
            records = filter(None, map(self.index.step, (step.name for step in narrow.steps.all)))
            self.made_before = {path for record in records for path in record.outputs}
        self.aloud = aloud
        self.failures: list[PrecastError] = []
        self.left_out: dict[str, CompileError] = {}  # candidates that do not compile
        self.fault: BaseException | None = None  # what ended the build itself: a fault of ours, or a plan's error
        self._reporter = reporter
        self._start_executor = start_executor
        self._executor: Executor | None = None
        self._sharing: Sharing | None = None
        self.taken: set[str] = set()  # steps that the shared cache had, before the graph was declared
        self._lock = threading.RLock()
        self._outcomes: dict[str, str] = {}  # unit text -> built, reused, failed
        self._started: dict[str, float] = {}  # steps that run, by name
        self._checked = 0
        self.plugin_globs: tuple[Read, ...] = ()  # which plugin modules there are, once that is asked
        self._told: set[str] = set()  # files that were read undeclared, once this is asked

    @cached_property
    def plan(self) -> Plan:
        """The plan of what was asked for, or of that part of it that may be stale. Made where the session was, so that
        messages name files as the user does."""
        if self.narrow is not None:
            return replace(self.narrow.plan, project=self.placed)
        before = Path.cwd()
        os.chdir(self.origin)
        try:
            request = self.request
            plan = plan_project(
                self.project,
                kernels=request.kernels,
                targets=request.targets,
                keep_going=request.keep_going,
                candidates=request.candidates,
                without=request.without,
            )
        finally:
            os.chdir(before)
        return replace(plan, project=replace(plan.project, folder=self.folder))

    @cached_property
    def steps(self) -> Steps:
        """The steps of the plan. Planning has made the probes that were not fresh, so these are recorded here."""
        if self.narrow is not None:
            return self.narrow.steps
        plan = self.plan
        probes = [(origin, tuple(file.path for file in probe.files)) for origin, probe in self._seen_probes]
        toolchain = find_toolchain(plan)
        try:
            steps = plan_steps(
                plan.project, plan.units, plan.tools, probes, toolchain, plan.failed, self.request.part, plan.selection,
                plan.problems,
            )  # fmt: skip
        except PlanError:
            check_launchers(self.plan)  # tells all of them, with their places
            raise
        for probe in steps.probes:
            if not self.is_fresh(probe):
                self.index.record(probe.name, self.key_of(probe), {}, probe.outputs)
        return steps

    @cached_property
    def _seen_probes(self) -> tuple[tuple[Origin, Probe], ...]:
        self.plugin_globs = tuple(Read(ReadKind.GLOB, each, digest_glob(self.folder, each)) for each in GLOBS)
        return list_probes(self.folder, self.folder / BUILD)

    @property
    def probes(self) -> Iterator[Probe]:
        """What is known of every plugin module."""
        return (probe for _, probe in self._seen_probes)

    def name_from_here(self, path: str) -> str:
        """A path as the index has it, from how it is seen from the folder in which the plan was made."""
        place, root = os.path.normpath(os.path.join(self.origin, path)), f"{self.folder}/"
        return place.removeprefix(root) or "."

    def build_script_moved(self) -> bool:
        """Whether the SConstruct, or what it builds for plugins, is not as it was: then SCons must look first."""
        if not (self.folder / SCONSTRUCT).exists():
            return False
        record = self.index.step(SCONSTRUCT)
        return record is None or not self.index.is_fresh(SCONSTRUCT, record.key)

    @property
    def _built_for_plugins(self) -> Mapping[str, str]:
        record = self.index.step(SCONSTRUCT)
        return record.outputs if record else {}

    def is_built_for_plugins(self, path: str) -> bool:
        """Whether a file is what the SConstruct last built for plugins."""
        return path in self._built_for_plugins and self.index.digest(path) == self._built_for_plugins[path]

    @property
    def damaged_plugins(self) -> list[str]:
        """What the SConstruct built for plugins and is not as it was."""
        return [path for path in self._built_for_plugins if not self.is_built_for_plugins(path)]

    def record_build_script(self, sources: Iterable[str], made: Iterable[str]) -> None:
        """Keeps what plugins that the SConstruct builds are made of."""
        if (self.folder / SCONSTRUCT).exists():
            self.index.record(SCONSTRUCT, "", self.index.digests([SCONSTRUCT, *sources]), made)

    @cached_property
    def _step_by_output(self) -> Mapping[str, Step]:
        return {path: step for step in self.steps.all for path in step.outputs}

    def step_of(self, path: str) -> Step | None:
        """The step that makes the file `path`, relative to the project; none while plugins are built for the plan."""
        return self._step_by_output.get(path) if self.begun else None

    @cached_property
    def scratch(self) -> Scratch:
        """Where C compilers put what is not to stay."""
        return Scratch()

    @property
    def executor(self) -> Executor:
        """Where units are compiled; made when it is known that one must be."""
        with self._lock:
            if self._executor is None:
                fetch = self.sharing.fetch_stage if self.sharing and self.sharing.cache.reads else None
                self._executor = self._start_executor(
                    self.request, lambda job: self.start(str(job.unit)), fetch, self.warn
                )
                if self.interrupted:
                    self._executor.close(cancel=True)
            return self._executor

    @property
    def sharing(self) -> Sharing | None:
        """The shared cache; None where there is none, or nothing may be done with it."""
        settings = self.request.cache.over(self.project.cache)
        if not settings.url or not (settings.read or settings.write):
            return None
        with self._lock:
            if self._sharing is None:
                from precast.graph.sharing import open_sharing  # not for a build that has nothing to do

                self._sharing = open_sharing(settings, self.placed, self.warn)
            return self._sharing

    def share(self) -> None:
        """Waits until the cache has what it was given."""
        if self._sharing is not None:
            self._sharing.cache.finish()

    def prepare(self) -> None:
        """Has workers get ready for the stale units, if there are any, while the graph is still to be made."""
        first = self.declared_units[: self.request.jobs]
        if first:
            self.executor.prepare([self.plan.job(step.planned.unit) for step in first])

    def is_fresh(self, step: Step) -> bool:
        """Whether the step's outputs are those of its key and inputs as they are now."""
        known = self.index.step(step.name) is not None  # else no file need be read for it
        return known and self.index.is_fresh(step.name, self.key_of(step))

    def may_be_fresh(self, step: Step) -> bool:
        """Whether it is worth asking: not where the step's key is another one by its inputs as they were last seen."""
        record = self.index.step(step.name)
        return record is not None and record.key == step.full_key(self.index.last_digest)

    def key_of(self, step: Step) -> str:
        """The step's key with its inputs as they are now."""
        return step.full_key(self.index.digest)

    def is_damaged(self, path: str) -> bool:
        """Whether a file is recorded as an output and is not what it was. An object file that is not recorded may be
        anything: SCons knows what it was made of, not what it is."""
        recorded = self._recorded_outputs.get(path)
        if recorded is None:
            return path.startswith(f"{OBJECTS}/")
        return self.index.digest(path) != recorded

    @cached_property
    def _recorded_outputs(self) -> Mapping[str, str]:
        records = filter(None, map(self.index.step, self.index.steps))
        return {path: digest for record in records for path, digest in record.outputs.items()}

    @cached_property
    def stale(self) -> tuple[Step, ...]:
        """Every step that must run, as found when first asked: those that are not fresh, and those they feed."""
        with collector.resting():
            return self._find_stale()

    def _find_stale(self) -> tuple[Step, ...]:
        stale: dict[str, Step] = {}
        made_anew: set[str] = set()
        for step in self.steps.all:
            if made_anew.intersection(step.inputs) or not self.is_fresh(step):
                stale[step.name] = step
                made_anew.update(step.outputs)
        return tuple(stale.values())

    @property
    def stale_units(self) -> tuple[UnitStep, ...]:
        """The units that must still be made."""
        return tuple(step for step in self.stale if isinstance(step, UnitStep) and step.name not in self.taken)

    @cached_property
    def _stale_names(self) -> frozenset[str]:
        return frozenset(step.name for step in self.stale)

    def is_declared(self, step: Step) -> bool:
        """Whether the graph must know a step: all for plain `scons`, which may be asked for any; else the stale."""
        return self.aloud or (step.name in self._stale_names and step.name not in self.taken)

    @cached_property
    def _made_anew(self) -> frozenset[str]:
        return frozenset(path for step in self.steps.all if self.is_declared(step) for path in step.outputs)

    def made_anew(self, step: Step) -> list[str]:
        """Those of a step's inputs that steps make which the graph knows."""
        return [path for path in step.inputs if path in self._made_anew]

    @cached_property
    def declared_units(self) -> tuple[UnitStep, ...]:
        """The units that the graph must know, in the order in which they are best compiled."""
        return longest_first(filter(self.is_declared, self.steps.units), self._last_seconds)

    def _last_seconds(self, step: UnitStep) -> float | None:
        cost = self.last_cost(step)
        return cost.seconds if cost else None

    def last_cost(self, step: UnitStep) -> Cost | None:
        """What compiling a unit took when all of it was compiled last."""
        record = self.index.step(step.name)
        return Cost.parse(record.note) if record else None

    def begin(self) -> None:
        """Tells the reporter what is ahead, and what the plan has to say."""
        refuse_misplaced(self.folder, [path for step in self.stale for path in step.outputs])
        self._reporter.begin(len(self.stale))
        self.begun = True
        for warning in self.plan.warnings:
            self.warn(warning)

    def warn(self, message: str) -> None:
        with self._lock:
            self._reporter.warned(message)

    def tell_output(self, line: str, stream: TextIO) -> None:
        """Hands on a line that SCons or a program of its printed."""
        with self._lock:
            self._reporter.said(line, stream)

    @contextmanager
    def running(self, step: Step) -> Iterator[None]:
        """Reports the start of a step and, unless the body raises, its end. A unit starts when a worker has it."""
        if not isinstance(step, UnitStep):
            self.start(step.name)
        yield
        with self._lock:
            seconds = time.monotonic() - self._started[step.name]
            self._reporter.ended(step.name, seconds, self._outcomes.get(step.name) == "reused")

    def start(self, name: str) -> None:
        """Reports that a step starts."""
        with self._lock:
            self._started[name] = time.monotonic()
            self._reporter.started(name)

    def is_news(self, name: str) -> bool:
        """Whether a file that somebody read undeclared was not told of before, in this build or an earlier one."""
        with self._lock:
            if not self._told:
                places = (place for name in self.index.steps for place in self.index.reads(name))
                self._told.update(place.partition(":")[2] for place in places)
            news = name not in self._told
            self._told.add(name)
            return news

    def count(self, step: Step, outcome: str) -> None:
        """Notes whether a step was `built` or `reused`."""
        with self._lock:
            self._outcomes[step.name] = outcome

    def fail(self, name: str, error: PrecastError) -> None:
        """Reports a failed step. What a pass is to blame for stands where the pass does, if no line is known."""
        if isinstance(error, CompileError) and error.where is None:
            error.where = self.plan.pass_places.get(error.pass_name)
        if self.request.candidates and isinstance(error, CompileError) and name not in self.left_out:
            with self._lock:
                self._outcomes[name] = "failed"
                self.left_out[name] = error
            return
        with self._lock:
            self._outcomes[name] = "failed"
            self.failures += error.failures if isinstance(error, BuildFailed) else [error]
            self._reporter.failed(name, error)

    def leave_out(self) -> None:
        """Plans again without the candidates that do not compile. Those of which none is left, of a kernel on a target,
        are failures after all."""
        kept = {_group_of(each) for each in self.steps.units if each.name not in self.left_out}
        for each in self.steps.units:
            if each.name in self.left_out and _group_of(each) not in kept:
                self.fail(each.name, self.left_out[each.name])
        if self.failures:
            return
        for name, error in self.left_out.items():
            self.warn(f"left out of the candidates: {name}: {error.message}")
        self.request = replace(self.request, without=frozenset(self.left_out))
        for name in ("plan", "steps", "stale", "declared_units", "_stale_names", "_made_anew", "_step_by_output",
                     "_recorded_outputs"):  # fmt: skip
            vars(self).pop(name, None)

    def interrupt(self) -> None:
        """Ends running jobs. Called from a signal handler, so another thread does it."""
        self.interrupted = True
        if self._sharing is not None:  # its answers are waited for
            self._sharing.cache.close()
        executor = self._executor
        if executor is not None:
            threading.Thread(target=lambda: executor.close(cancel=True), name="precast-interrupt").start()

    def check(self, percent: float) -> None:
        """Builds samples again from nothing; one that comes out otherwise is a failure of the build."""
        reused = {name for name, outcome in self._outcomes.items() if outcome == "reused"}
        samples = choose_samples(self.steps.units, percent, reused)
        for step, error in check_units(samples, self.placed, self.request.jobs, reused):
            self._checked += 1
            if error is not None:
                self.fail(step.name, error)

    def finish(self) -> Summary:
        """Reports and returns the summary."""
        counts = self._count()
        summary = replace(counts, release=self._release_path() if counts.reason == COMPLETE else "")
        self._reporter.finish(summary)
        return summary

    def give_up(self, error: BaseException) -> None:
        """Reports that `error` ended the build, with what was done until then."""
        counts = self._count() if "steps" in vars(self) else Summary()
        tell_end(self._reporter, error, self.failures, counts)

    def _count(self) -> Summary:
        names = [step.name for step in (*self.steps.units, *self.steps.failed)]
        others = self.narrow.other_units if self.narrow else 0
        outcomes = [self._outcomes.get(name, "") for name in names]
        waiting = (step for step in self.steps.units if step.name not in self._outcomes)
        untouched = sum(1 for step in waiting if step.name not in self._stale_names or self.is_fresh(step))
        reason = INTERRUPTED if self.interrupted else FAILED if self.failures else COMPLETE
        return Summary(
            built=outcomes.count("built"),
            reused=outcomes.count("reused") + untouched + others,
            failed=outcomes.count("failed"),
            units=len(names) + others,
            checked=self._checked,
            reason=reason,
            message=f"{[*self._outcomes.values()].count('failed')} failed" if reason == FAILED else "",
        )

    def _release_path(self) -> str:
        pointer = self.folder / self.steps.release.outputs[0]
        home = self.folder / self.steps.release.given.home
        return str(home / read_pointer(home, str(pointer)).path) if pointer.exists() else ""

    def close(self) -> None:
        """Ends what runs, and closes the index."""
        self.end_workers()
        self.index.close()

    def end_workers(self) -> None:
        """Ends the workers, whatever they do, closes the cache, and leaves no temporary folder."""
        with self._lock:
            executor, self._executor = self._executor, None
        if self._sharing is not None:
            self._sharing.cache.close()
        if executor is not None:  # not under the lock, which a job that starts just now waits for
            executor.close(cancel=True)
        scratch = vars(self).pop("scratch", None)
        if scratch is not None:
            scratch.remove()


def _group_of(step: UnitStep) -> tuple[str, str]:
    """What must have a candidate."""
    return step.planned.unit.kernel, str(step.planned.unit.target)
