"""The way through the upstream bindings loses nothing: a pass that does nothing changes no byte of any image."""

import dataclasses

import pytest
from compiling import ROOT, first_of_each_kernel, plan_jobs

from precast.passes.anchors import end
from precast.passes.digest import digest_files
from precast.passes.selection import PassUse
from precast.worker.pool import WorkerPool

FILE = "tests/fixtures/passes/identity.py"
TARGETS = ("cuda:90", "hip:gfx942", "cpu:x86-64-v3")
EVERY_GPU = ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:103", "cuda:120",
             "hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1151", "hip:gfx1201")  # fmt: skip


def jobs_for(target, folder):
    """The jobs of the repository's kernels for one target; with a GPU in the plan, CPU units take GPU options too."""
    return [
        job for job in plan_jobs(ROOT, folder, dict.fromkeys(("cuda:90", target))) if str(job.unit.target) == target
    ]


def with_identity(job):
    """The same job with a pass at the end of each stage that takes one."""
    digest = digest_files(ROOT, (FILE,))
    stages = [stage for stage in ("ttir", "ttgir", "loops") if stage in job.unit.stages]
    uses = tuple(PassUse(f"identity-{stage}", "python", stage, end(), (), FILE, digest, (FILE,)) for stage in stages)
    return dataclasses.replace(job, passes=uses, output=f"{job.output}-identity")


def check_identity(jobs, workers=1):
    """Compiles each job twice and compares images and facts. What both share comes from the store."""
    with WorkerPool(workers) as pool:
        pairs = [(job, pool.submit(job), pool.submit(with_identity(job))) for job in jobs]
        for job, plain, passed in pairs:
            plain, passed = plain.result(), passed.result()
            assert [run.name for run in passed.passes] == [use.name for use in with_identity(job).passes]
            assert passed.image_digest == plain.image_digest, job.unit
            assert passed.facts == plain.facts, job.unit
    assert pairs


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.all)], ids=["few", "others"])
@pytest.mark.parametrize("target", TARGETS)
def test_identity_passes_change_no_byte_of_any_kernel(target, few, tmp_path):
    """Some of the kernels for each target, and others for the next one; the rest in the second tier."""
    kernels = sorted({job.unit.kernel for job in plan_jobs(ROOT, tmp_path, TARGETS)})
    chosen = kernels[TARGETS.index(target) * 2 :: 6]
    jobs = first_of_each_kernel(jobs_for(target, tmp_path))
    check_identity([job for job in jobs if (job.unit.kernel in chosen) == few])


def test_identity_passes_change_no_byte_with_line_info(tmp_path):
    jobs = plan_jobs(ROOT, tmp_path, TARGETS[:2], ["softmax", "swiglu"])
    settings = dataclasses.replace(jobs[0].settings, line_info=True)
    check_identity([dataclasses.replace(job, settings=settings) for job in first_of_each_kernel(jobs)])


@pytest.mark.soak
@pytest.mark.parametrize("target", (*EVERY_GPU, "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"))
def test_identity_passes_change_no_byte_of_any_unit(target, tmp_path):
    check_identity(jobs_for(target, tmp_path), workers=2)
