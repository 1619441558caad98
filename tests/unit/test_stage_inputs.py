"""What a stage is made from is what its job says; what the store has of stages is taken whole, or not at all."""

import dataclasses

import pytest
from small_projects import SETTINGS, make_project, plan

from precast.engines import StageInputs
from precast.engines.standin import StandinEngine
from precast.passes.selection import Anchor, PassUse
from precast.reads import Read, ReadKind, digest_file
from precast.spec.model import CompileSettings
from precast.store import Store
from precast.target import Target
from precast.worker.walk import LUCK_WARNING, find_undeclared, plan_stage, run_job

USE = PassUse("mark", "python", "ttir", Anchor("end"), origin="plugins/mark.py", digest="12ab")
HOOK = dataclasses.replace(USE, kind="hook", stage="ptx")
GPU, CPU = "cuda:90", "cpu:x86-64-v3"


@pytest.fixture
def make_job(tmp_path):
    folder = make_project(tmp_path / "p", {"pyproject.toml": SETTINGS.replace('"hip:gfx942"', f'"{CPU}"')})
    made = plan(folder)
    jobs = {str(each.unit.target): made.job(each.unit) for each in made.units}

    def make(target: str = GPU, options: dict[str, object] | None = None, **changes: object):
        job = dataclasses.replace(jobs[target], **changes)
        unit = dataclasses.replace(job.unit, options=tuple(sorted((options or {}).items())))
        return dataclasses.replace(job, unit=unit)

    return make


def test_a_stage_is_given_what_its_job_says(make_job):
    settings = CompileSettings(line_info=True, environment=(("TRITON_F32_DEFAULT", "ieee"),))
    job = make_job(options={"num_warps": 8}, settings=settings, passes=(USE, HOOK))
    source = dataclasses.replace(job.unit.source, gluon=True)
    job = dataclasses.replace(job, unit=dataclasses.replace(job.unit, source=source))
    inputs = plan_stage(job, "ttir", '{"shared":16}', "34cd")
    assert inputs.facts is not None and inputs.facts.unit == str(job.unit)
    assert inputs == StageInputs(
        stage="ttir",
        target=Target.parse(GPU),
        gluon=True,
        options=(("num_warps", 8),),
        line_info=True,
        environment=settings.environment,
        passes=(USE,),
        facts=inputs.facts,
        tools=inputs.tools,
        carry='{"shared":16}',
        input="34cd",
    )
    assert {name for name, _ in inputs.tools} <= {name for name, _ in job.tools} and inputs.tools


def test_code_is_told_of_its_unit_where_there_is_code(make_job):
    job = make_job(passes=(HOOK,))
    seen = {stage: plan_stage(job, stage, "{}", "") for stage in job.unit.stages}
    assert [stage for stage, inputs in seen.items() if inputs.passes] == ["ptx", "cubin"]
    assert [stage for stage, inputs in seen.items() if inputs.facts] == ["ptx", "cubin"]


def test_an_object_is_keyed_by_its_symbol(make_job):
    job = make_job(CPU)
    assert [plan_stage(job, stage, "{}", "").symbol for stage in job.unit.stages[-2:]] == ["", job.unit.symbol]


@pytest.mark.parametrize("debug", [False, True])
def test_asserts_of_a_cpu_unit_tell_their_place(make_job, debug):
    job = make_job(CPU, options={"debug": debug})
    assert plan_stage(job, "ttir", "{}", "").line_info is debug
    assert not plan_stage(make_job(options={"debug": debug}), "ttir", "{}", "").line_info


class Reading(StandinEngine):
    """Has stages that read a file which nobody declared."""

    def __init__(self, project, stage):
        self._file, self._stage = project / "table.json", stage

    def run_stage(self, inputs, data, project, announce):
        reads = (Read(ReadKind.DATA, "table.json", digest_file(self._file)),) if inputs.stage == self._stage else ()
        return dataclasses.replace(super().run_stage(inputs, data, project, announce), reads=reads)


def stages_reused(job, engine):
    result = run_job(job, engine, lambda step: None)
    assert [stage.stage for stage in result.stages] == list(job.unit.stages)
    return [stage.stage for stage in result.stages if stage.reused]


def test_a_stage_is_taken_only_where_what_it_read_is_as_it_was(make_job, tmp_path):
    job, table = make_job(), tmp_path / "p/table.json"
    engine, others = Reading(tmp_path / "p", "llir"), [stage for stage in job.unit.stages if stage != "llir"]
    table.write_text("1")
    assert stages_reused(job, engine) == []
    assert stages_reused(job, engine) == list(job.unit.stages)
    table.write_text("2")
    assert stages_reused(job, engine) == others  # the others are made of the same text as before
    table.unlink()
    assert stages_reused(job, engine) == others


@pytest.mark.parametrize("lost", ["ptx", "cubin"])
def test_stages_that_run_together_are_taken_together(make_job, lost):
    """A hook may carry anything from one of them to the next."""
    job, engine = make_job(passes=(HOOK,)), StandinEngine()
    assert stages_reused(job, engine) == []
    assert stages_reused(job, engine) == list(job.unit.stages)
    keys = {each.stage: each.key for each in run_job(job, engine, lambda step: None).stages}
    Store(job.store).record_path(keys[lost]).unlink()
    assert stages_reused(job, engine) == ["ttir", "ttgir", "llir"]


def test_what_the_plan_does_not_know_is_undeclared(make_job):
    job = make_job()
    (known, digest), *_ = job.sources
    kinds, names = (ReadKind.SOURCE, ReadKind.DATA), (known, "kernels/other.py")
    reads = [Read(kind, name, digest) for kind in kinds for name in names]
    assert find_undeclared(job, reads) == tuple(sorted(reads[1:]))


class Lucky(StandinEngine):
    """Has one stage whose output rests on addresses."""

    def needs_fixed_addresses(self, inputs, data):
        return inputs.stage == "llir"


@pytest.mark.parametrize("fixed", [True, False])
def test_one_stage_that_was_made_by_luck_makes_its_unit_so(make_job, monkeypatch, fixed):
    def run_fixed(inputs, data, project, engine):
        return StandinEngine().run_stage(inputs, data, project, lambda name, text="": None), fixed

    monkeypatch.setattr("precast.worker.walk.run_fixed", run_fixed)
    result = run_job(make_job(), Lucky(), lambda step: None)
    assert result.facts.reproducible is fixed and result.warnings == (() if fixed else (LUCK_WARNING,))
