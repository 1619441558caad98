"""From candidates to a release that chooses, on a CPU: built, measured, chosen, asked, served."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tuned_project import make_candidates, run

SETTINGS = """
[tool.precast]
name = "shop"
targets = ["cpu:x86-64-v3"]
"""

KERNEL = """
import triton
import triton.language as tl


def note(given):
    print("hook", given["BLOCK"])


@triton.autotune(
    [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, pre_hook=note), triton.Config({"BLOCK": 1024}),
     triton.Config({"BLOCK": 48})],
    key=["n"],
    reset_to_zero=["out"],
)
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + i, inside) + tl.load(y + i, inside)
    if BLOCK == 1024:
        value += tl.where(n < 200, 1.0, 0.0)
    tl.store(out + i, value, inside)
"""

SPEC = """
[kernel.add]
source = "add.py:add"
grid = ["cdiv(n, BLOCK)"]
configs = "source"
ship = 2

[kernel.add.args]
x = "*fp32"
y = "*fp32"
out = "*fp32"
n = "i32"

[[kernel.add.problem]]
n = [100, 2000]
x = "n"
y = "n"
out = "n"
"""

PROGRAM = """
import json
import sys

sys.path[:0] = ["kernels", "generated/shop/current/python"]
import numpy
import shop


class Tensor:
    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    def data_ptr(self):
        return self.array.ctypes.data


x = numpy.arange(5000, dtype=numpy.float32)
out = numpy.zeros_like(x)
for n in (64, 100, 1000, 2000, 5000):
    print(n, *shop.add.choose(x, x, out, n)[0::3], sep="|")
rows = {each["unit"]: each["row"] for each in shop.query()}
print("rows", json.dumps(rows))
from add import add

with shop.serve():
    for n in (100, 2000):
        out[:] = 0
        add[lambda given: (-(-n // given["BLOCK"]),)](Tensor(x), Tensor(x), Tensor(out), n)
        print("served", n, add.best_config.kwargs["BLOCK"], float(out[:n].sum()))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory, sconstruct):
    """A project with candidates of three configs, one of which computes something else for small sizes;
    a fourth does not compile."""
    files = {"pyproject.toml": SETTINGS, "kernels/add.py": KERNEL, "kernels/add.toml": SPEC, "SConstruct": sconstruct}
    return make_candidates(tmp_path_factory.mktemp("tuned"), files)


def test_candidates_hold_every_config_and_are_never_the_current_release(project):
    home = project / "generated/shop"
    assert sorted(each.name for each in home.iterdir()) == ["candidates"]
    table = json.loads((home / "candidates/current/python/shop/tuning.json").read_text())
    about = table["kernels"]["add"]["targets"]["cpu:x86-64-v3"]
    assert [each["BLOCK"] for each in about["configs"]] == [64, 256, 1024, 48]
    units = json.loads((home / "candidates/current/manifest.json").read_text())["units"]
    assert len(units) == 3
    assert [each["sizes"] for each in about["problems"]] == [{"n": 100}, {"n": 2000}]
    assert about["problems"][1]["arguments"]["x"] == {"elements": 2000, "type": "fp32"}


@pytest.fixture(scope="module")
def measured(project):
    """The evidence that a copy of the candidates made by itself, without Precast."""
    copy = project / "copied"
    shutil.copytree(project / "generated/shop/candidates/current", copy)
    (copy / "python/precast.py").write_text("raise ImportError('this machine has no Precast')")
    done = run(copy, "-m", "shop.tune", "--rounds", "2", "-o", "evidence", PYTHONPATH="python")
    return done, Path(copy, done.stdout.strip())


def test_a_copy_measures_itself_and_refuses_a_config_with_another_result(measured):
    done, file = measured
    evidence = json.loads(file.read_text())
    small, large = evidence["problems"]
    assert (small["sizes"], large["sizes"]) == ({"n": 100}, {"n": 2000})
    assert [time is None for time in small["times"]] == [False, False, True, True]
    assert "another result than the author's" in small["faults"]["2"]
    assert all(time > 0 for time in large["times"][:3])
    assert large["faults"] == {"3": small["faults"]["3"]} and "BLOCK" in large["faults"]["3"]
    assert f"add: no time for BLOCK=48: {large['faults']['3']}\n" in done.stderr
    assert evidence["method"] == {"cache": "warm", "rounds": 2, "timer": "clock", "unit": "us"}
    assert "add: 2 of 2 problems" in done.stderr


def test_a_stopped_run_goes_on_where_it_stopped(measured):
    """What an unfinished file says is not measured again: a time that nothing could take stays."""
    _, file = measured
    evidence = json.loads(file.read_text())
    evidence["problems"] = [{**evidence["problems"][0], "times": [1e9, 2e9, None, None]}]
    file.with_name(file.name + ".part").write_text(json.dumps(evidence))
    run(file.parent.parent, "-m", "shop.tune", "--rounds", "2", "-o", "evidence", PYTHONPATH="python")
    again = json.loads(file.read_text())
    assert again["problems"][0]["times"] == [1e9, 2e9, None, None] and again["problems"][1]["times"][0] < 1e9
    assert not file.with_name(file.name + ".part").exists()


@pytest.fixture(scope="module")
def chosen(project, measured):
    """A release by evidence in which the author's config is never the best, and 1024 wins where it may."""
    evidence = json.loads(measured[1].read_text())
    for problem, times in zip(evidence["problems"], ([4.0, 1.0, None, None], [9.0, 8.0, 1.0, None]), strict=True):
        problem["times"] = times
    (project / "tuning").mkdir()
    (project / "tuning/add.here.json").write_text(json.dumps(evidence))
    (project / "program.py").write_text(PROGRAM)
    run(project, "-m", "precast", "build")
    return run(project, "program.py").stdout.splitlines()


def test_only_winners_ship_and_the_table_names_one_for_each_size(project, chosen):
    release = project / "generated/shop/current"
    units = [each["unit"] for each in json.loads((release / "manifest.json").read_text())["units"]]
    assert units == ["add:BLOCK=1024@cpu:x86-64-v3", "add:BLOCK=64@cpu:x86-64-v3"]
    file, small, large = "(tuning/add.here.json)", "add:BLOCK=64@cpu:x86-64-v3", "add:BLOCK=1024@cpu:x86-64-v3"
    assert [line for line in chosen if "|" in line] == [
        f"64|{small}|default {file}",
        f"100|{small}|exact, n == 100 {file}",
        f"1000|{small}|default {file}",  # 1024 would be worse on the smaller of both
        f"2000|{large}|exact, n == 2000 {file}",
        f"5000|{large}|bucket, n >= 2000 {file}",
    ]


def test_query_says_which_row_chose(chosen):
    rows = json.loads(next(line for line in chosen if line.startswith("rows"))[5:])
    assert rows["add:BLOCK=64@cpu:x86-64-v3"] == "default (tuning/add.here.json)"
    assert rows["add:BLOCK=1024@cpu:x86-64-v3"] == "bucket, n >= 2000 (tuning/add.here.json)"


def test_a_served_tuner_takes_what_the_table_names_and_measures_nothing(chosen):
    served = [line for line in chosen if line.startswith(("served", "hook"))]
    assert served == ["served 100 64 9900.0", "served 2000 1024 3998000.0"]


def test_why_says_that_the_selection_changed(project, chosen):
    why = ("-m", "precast", "why", "add:BLOCK=64@cpu:x86-64-v3")
    assert run(project, *why).stdout.splitlines()[1] == "  up to date"
    file = project / "tuning/add.here.json"
    before = file.read_text()
    file.write_text(before.replace("[4.0, 1.0, null, null]", "[0.5, 1.0, null, null]"))
    try:
        assert run(project, *why).stdout.splitlines()[1] == "  selection changed: tuning/add.here.json"
    finally:
        file.write_text(before)


@pytest.mark.all
def test_a_kernel_of_which_no_candidate_compiles_is_an_error(tmp_path):
    (tmp_path / "kernels").mkdir()
    spec = SPEC.replace('configs = "source"', "configs = [{ BLOCK = 48 }, { BLOCK = 80 }]")
    for name, text in {"pyproject.toml": SETTINGS, "kernels/add.py": KERNEL, "kernels/add.toml": spec}.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "precast", "build", "--candidates", "-j1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "0 built, 0 reused, 2 failed" in done.stdout and not (tmp_path / "generated").exists()
    assert done.stderr.count("error: arange's range must be a power of 2") == 1 and "Traceback" not in done.stderr
