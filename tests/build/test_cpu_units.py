"""CPU units through real workers: symbols, facts, keys, and where refusals are told."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import LOADING, plan_jobs
from test_triton_engine import build, make_project, refuse
from tree import Tree

from precast.artifact import Parameter
from precast.errors import Place
from precast.store import Store
from precast.target import Target

LEVEL = "cpu:x86-64-v3"
REFUSED = """import triton
import triton.language as tl


@triton.jit
def helper(value):
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [value], tl.float32, True, 1)


@triton.jit
def one(x):
    columns = tl.arange(0, 128)
    tl.store(x + columns, helper(tl.load(x + columns)))
"""
ROUNDED = """import triton
import triton.language as tl


@triton.jit
def one(x):
    columns = tl.arange(0, 128)
    tl.store(x + columns, tl.load(x + columns).to(tl.float8e4b15).to(tl.float32))
"""


def test_an_object_has_the_units_symbol_and_facts(tmp_path):
    [job] = plan_jobs(LOADING, tmp_path, [LEVEL], ["scale"])
    result = build([job])[str(job.unit)]
    assert [each.stage for each in result.stages] == ["ttir", "loops", "llir", "obj"]
    assert result.facts.symbol == job.unit.slug.replace("-", "_")
    assert result.facts.parameters == (
        Parameter("argument", "x_ptr", "*fp32"),
        Parameter("argument", "out_ptr", "*fp32", written=True),
        Parameter("argument", "n", "i32"),
        Parameter("argument", "factor", "fp32"),
    )
    assert 0 < result.facts.code_bytes < 20_000
    listed = subprocess.run(
        ["nm", "--defined-only", "--extern-only", Path(job.output, "scale.obj")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [line.split()[-1] for line in listed.stdout.splitlines()] == [result.facts.symbol]


def test_two_units_of_one_code_share_all_but_the_object(tmp_path):
    [job] = plan_jobs(LOADING, tmp_path, [LEVEL], ["square"])
    first = build([job])[str(job.unit)]
    other = dataclasses.replace(job.unit, variant=dataclasses.replace(job.unit.variant, kernel="renamed"))
    second = build([dataclasses.replace(job, unit=other, output=f"{job.output}-2")])[str(other)]
    assert [each.reused for each in second.stages] == [True, True, True, False]
    assert second.facts.symbol != first.facts.symbol


def test_each_stage_may_be_the_first_of_its_process(tmp_path):
    [job] = plan_jobs(LOADING, tmp_path, [LEVEL], ["sibling"])
    first = build([job])[str(job.unit)]
    for stage in first.stages[1:]:
        Store(job.store).record_path(stage.key).unlink()
        again = build([job])[str(job.unit)]
        assert [each.stage for each in again.stages if not each.reused] == [stage.stage]
        assert again.image_digest == first.image_digest


def test_what_the_cpu_engine_refuses_is_told_at_the_users_line(tmp_path):
    [job] = make_project(tmp_path, REFUSED)
    error = refuse(dataclasses.replace(job, unit=dataclasses.replace(job.unit, target=Target.parse(LEVEL))))
    assert error.message.startswith("the CPU engine cannot lower `tt.elementwise_inline_asm`")
    assert error.stage == "loops"
    assert error.where is not None and error.where.file == "kernels/one.py" and error.where.line in (7, 13)
    assert isinstance(error.where, Place)


def test_a_float_that_gpus_convert_in_assembly_is_converted(tmp_path):
    [job] = make_project(tmp_path, ROUNDED)
    job = dataclasses.replace(job, unit=dataclasses.replace(job.unit, target=Target.parse(LEVEL)))
    assert build([job])[str(job.unit)].facts.code_bytes > 0


CHECKED = """
@triton.jit
def checked_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + i) < n, "100% too big")
"""
CHECKED_SPEC = """
[kernel.checked]
source = "checked.py:checked_kernel"
grid = ["1"]
args = { x = "*i32", n = "i32" }
matrix = { BLOCK = [8] }
options = { debug = true }
"""
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
import demo, numpy
x = numpy.arange(8, dtype=numpy.int32)
demo.checked(x, 8)
try:
    demo.checked(x, 5)
except demo.LaunchError as error:
    print(error.status, error)
"""


@pytest.mark.all
def test_a_failed_assert_reaches_the_caller_with_its_line(tmp_path):
    tree = Tree(tmp_path, targets=(LEVEL,))
    tree.write("kernels/checked.py", f"import triton\nimport triton.language as tl\n{CHECKED}")
    tree.write("kernels/checked.toml", CHECKED_SPEC)
    package = str(tree.build().release / "python")
    said = subprocess.run([sys.executable, "-c", CALL, package], capture_output=True, text=True, check=True)
    assert said.stdout == (
        f"11 a device assertion failed in checked:BLOCK=8@{LEVEL}: kernels/checked.py:7: 100% too big, "
        "in program (0, 0, 0)\n"
    )
    tree.write("kernels/checked.py", f"# moved\n\nimport triton\nimport triton.language as tl\n{CHECKED}")
    package = str(tree.build().release / "python")
    said = subprocess.run([sys.executable, "-c", CALL, package], capture_output=True, text=True, check=True)
    assert ": kernels/checked.py:9: " in said.stdout
