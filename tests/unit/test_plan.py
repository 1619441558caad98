"""Plans: units, outputs and keys; what changes a key and what does not; and all of it without a compiler."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from small_projects import KERNEL, SETTINGS, SPEC, error_text, make_project, plan

from precast.passes.selection import Anchor, PassUse
from precast.plan import read_key, write_key

ROOT = Path(__file__).parents[2]
LOADING = ROOT / "tests" / "fixtures" / "loading"
BLOCKER = """
import importlib.abc, sys
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "mlir", "llvmlite", "SCons", "numpy", "torch", "jinja2", "zstandard"):
            raise ImportError(f"{name} is not installed here")
sys.meta_path.insert(0, Blocker())
from precast.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Tests that compile in this process set variables of Triton's; plan warns of any that are set."""
    for name in [name for name in os.environ if name.startswith(("TRITON_", "AMDGCN_"))]:
        monkeypatch.delenv(name)


def keys(folder):
    return {str(planned.unit): planned.key for planned in plan(folder).units}


def changed(before, after):
    return {unit for unit in before if before[unit] != after.get(unit)}


def run_without_compilers(*words, cwd, **environment):
    command = [sys.executable, "-c", BLOCKER, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment})


def test_plan_needs_no_compiler(tmp_path):
    shutil.copytree(LOADING, tmp_path / "loading")
    result = run_without_compilers("plan", "--json", cwd=tmp_path / "loading")
    assert (result.returncode, result.stderr) == (0, "")
    units = json.loads(result.stdout)["units"]
    assert len(units) == 26
    tuned = [unit for unit in units if unit["kernel"] == "tuned" and unit["target"] == "cuda:80"]
    assert tuned[0]["unit"] == "tuned:EVEN=true,BLOCK=128,num_warps=4@cuda:80"
    assert tuned[0]["variant"] == "EVEN=true,BLOCK=128,num_warps=4"
    folder = tuned[0]["outputs"][0].rpartition("/")[0]
    assert folder.startswith("build/units/cuda-80/tuned-")
    assert tuned[0]["outputs"] == [
        f"{folder}/{name}"
        for name in ("tuned.cubin", "facts.json", "tuned.ttir", "tuned.ttgir", "tuned.llir", "tuned.ptx")
    ]
    text = run_without_compilers("plan", "--kernel", "tuned", "--kernel", "computed", cwd=tmp_path / "loading")
    assert "autotune: BLOCK=256, num_warps=8, num_stages=2\n" in text.stdout
    assert "autotune: configs that the source computes; not used\n" in text.stdout
    assert "heuristics: EVEN; the spec gives their values\n" in text.stdout
    assert text.stdout.endswith("10 units of 2 kernels for 2 targets\n")


def test_this_repository_plans_at_least_sixty_units_per_gpu_target():
    result = run_without_compilers("plan", "--json", "--project", str(ROOT), cwd=ROOT)
    assert result.returncode == 0, result.stderr
    targets = [unit["target"] for unit in json.loads(result.stdout)["units"]]
    assert targets.count("cuda:90") >= 60
    assert targets.count("hip:gfx942") >= 60


def test_globs_select_kernels_and_targets(tmp_path):
    make_project(tmp_path, {"kernels/other.toml": SPEC.replace("kernel.scale", "kernel.other")})
    found = plan(tmp_path, kernels=("o*",), targets=("cuda:*",))
    assert {(each.unit.kernel, str(each.unit.target)) for each in found.units} == {
        ("other", "cuda:80"),
        ("other", "cuda:90"),
    }


def test_a_target_is_selected_by_what_the_settings_call_it(tmp_path):
    make_project(tmp_path, {"pyproject.toml": '[tool.precast]\nname = "demo"\ntargets = ["cuda:90", "cpu:native"]\n'})
    assert {each.unit.target.backend for each in plan(tmp_path, targets=("cpu:native",)).units} == {"cpu"}


def test_globs_that_select_nothing(tmp_path):
    make_project(tmp_path)
    assert error_text(tmp_path, kernels=("scal",)) == "error: no kernel matches `scal`\nhint: did you mean `scale`?"
    assert error_text(tmp_path, targets=("cuda:9",)) == (
        "error: no target matches `cuda:9`\nhint: did you mean `cuda:90`?"
    )


def test_keys_do_not_depend_on_place_or_hash_seed(tmp_path):
    first = make_project(tmp_path / "a")
    second = make_project(tmp_path / "deeper" / "b")
    assert keys(first) == keys(second)
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_plan import *\n"
    program += f"print(sorted(keys(Path({str(first)!r})).items()))"
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.add(
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment).stdout
        )
    assert len(outputs) == 1
    assert str(sorted(keys(first).items())) in outputs.pop()


def test_a_key_holds_no_path_of_this_machine(tmp_path):
    shutil.copytree(LOADING, tmp_path / "loading")
    for planned in plan(tmp_path / "loading", kernels=("scale", "tuned")).units:
        text = repr(planned.ingredients)
        assert str(tmp_path) not in text
        assert sys.prefix not in text


SOURCES = {
    "kernels/scale.py": KERNEL.replace("import triton\n", "import triton\nfrom helper import f\n"),
    "kernels/helper.py": "import triton\n@triton.jit\ndef f(x): pass\n",
    "kernels/alone.py": KERNEL,
    "kernels/alone.toml": SPEC.replace("kernel.scale", "kernel.alone").replace("scale.py", "alone.py"),
}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("kernels/scale.py", "pass", "pass  # comment", "scale"),
        ("kernels/helper.py", "pass", "return x", "scale"),
        ("kernels/alone.py", "pass", "return", "alone"),
        ("kernels/scale.toml", 'n = "i32"', 'n = "i64"', "scale"),
        (
            "kernels/scale.toml",
            "[kernel.scale.matrix]",
            "[kernel.scale.options]\nnum_warps = 8\n[kernel.scale.matrix]",
            "scale",
        ),
        ("kernels/scale.toml", 'stride = "i64"', 'stride = { type = "i64", align = 4 }', "scale"),
        ("kernels/scale.toml", "cdiv(n, BLOCK)", "n", ""),
        ("kernels/scale.toml", "[kernel.scale]", "# a comment\n[kernel.scale]", ""),
        ("kernels/unrelated.py", "", "x = 1", ""),
        ("pyproject.toml", 'version = "1.0"', 'version = "1.1"', ""),
        ("pyproject.toml", 'version = "1.0"', 'version = "1.0"\nline_info = true', "scale alone"),
        ("pyproject.toml", 'version = "1.0"', 'version = "1.0"\nenvironment.FAST = 1', "scale alone"),
        ("pyproject.toml", 'version = "1.0"', 'version = "1.0"\ntriton = { TRITON_X = 1 }', "scale alone"),
        ("pyproject.toml", 'version = "1.0"', 'version = "1.0"\ntime_limit_s = 5', ""),
    ],
)
def test_what_changes_a_key(tmp_path, file, old, new, expected):
    make_project(tmp_path, SOURCES)
    before = keys(tmp_path)
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new) if path.exists() else new)
    touched = changed(before, keys(tmp_path))
    assert {unit.partition(":")[0] for unit in touched} == set(expected.split())
    assert all(unit in touched for unit in before if unit.partition(":")[0] in expected.split())


def test_an_option_of_one_target_changes_that_target_alone(tmp_path):
    make_project(tmp_path)
    before = keys(tmp_path)
    (tmp_path / "kernels/scale.toml").write_text(SPEC + '[kernel.scale.target."cuda:90"]\nnum_warps = 8\n')
    assert {unit.rpartition("@")[2] for unit in changed(before, keys(tmp_path))} == {"cuda:90"}


def test_a_new_constexpr_value_leaves_the_others_alone(tmp_path):
    make_project(tmp_path)
    before = keys(tmp_path)
    (tmp_path / "kernels/scale.toml").write_text(SPEC.replace("[128]", "[128, 256]"))
    after = keys(tmp_path)
    assert changed(before, after) == set()
    assert len(after) == 2 * len(before)


def test_jobs_are_complete_and_absolute(tmp_path):
    make_project(tmp_path, {"pyproject.toml": SETTINGS + 'pythonpath = ["kernels", ".."]\ntime_limit_s = 5\n'})
    found = plan(tmp_path)
    job = found.job(found.units[0].unit)
    assert (job.project, job.store) == (str(tmp_path), str(tmp_path / "build/store"))
    assert job.python_path == (str(tmp_path / "kernels"), str(tmp_path.parent))
    assert job.output == str(tmp_path / found.units[0].folder)
    assert job.time_limit_s == 5.0


PLUGIN = """\
from dataclasses import dataclass
from precast.passes import Pass, end


@dataclass(frozen=True)
class Nothing(Pass):
    name = "nothing"
    stage = "ttir"
    at = end()
    level: int = 0

    def run(self, module, context):
        return None
"""
SELECTION = '[[tool.precast.pass]]\nuse = "nothing"\nkernels = "alone"\ntargets = "cuda:*"\n'


def test_a_pass_is_in_the_keys_of_the_units_that_it_selects(tmp_path):
    make_project(tmp_path, {**SOURCES, "plugins/nothing.py": PLUGIN})
    before = keys(tmp_path)
    steps = {
        "selected": ("pyproject.toml", SETTINGS + SELECTION),
        "option": ("pyproject.toml", SETTINGS + SELECTION + "options = { level = 2 }\n"),
        "edited": ("plugins/nothing.py", PLUGIN.replace("return None", "return None  # edited")),
    }
    for name, (file, text) in steps.items():
        (tmp_path / file).write_text(text)
        after = keys(tmp_path)
        touched = changed(before, after)
        assert {unit.partition(":")[0] for unit in touched} == {"alone"}, name
        assert {unit.rpartition("@")[2] for unit in touched} == {"cuda:80", "cuda:90"}, name
        assert len(touched) == 4, name
        before = after


def test_selections_that_are_wrong_or_idle(tmp_path):
    make_project(tmp_path, {"plugins/nothing.py": PLUGIN, "pyproject.toml": SETTINGS + SELECTION})
    assert plan(tmp_path).warnings == (f"{tmp_path}/pyproject.toml:6:7: pass `nothing` is selected for no unit",)
    (tmp_path / "pyproject.toml").write_text(SETTINGS + SELECTION.replace('"nothing"', '"nothin"'))
    assert error_text(tmp_path) == (
        "pyproject.toml:6:7: error: there is no pass `nothin`\n"
        '    use = "nothin"\n          ^~~~~~~~\nhint: did you mean `nothing`?'
    )


def test_inputs_are_the_project_s_files(tmp_path):
    make_project(tmp_path, SOURCES)
    inputs = {each.unit.kernel: each.inputs for each in plan(tmp_path).units}
    assert inputs == {"scale": ("kernels/helper.py", "kernels/scale.py"), "alone": ("kernels/alone.py",)}


def test_ingredients_are_kept(tmp_path):
    make_project(tmp_path)
    planned = plan(tmp_path).units[0]
    assert read_key(tmp_path) is None
    write_key(tmp_path, planned.ingredients)
    assert read_key(tmp_path) == planned.ingredients
    assert read_key(tmp_path).key == planned.key
    (tmp_path / "key.json").write_text("{}")
    assert read_key(tmp_path) is None


def test_all_that_a_unit_is_given_counts_in_its_key(tmp_path):
    make_project(tmp_path, {"kernels/scale.toml": SPEC.replace("align = 16", "align = 16, range32 = true")})
    amd = next(each for each in plan(tmp_path).units if each.unit.target.backend == "hip")
    assert dict(amd.ingredients.spec)["argument x"] == "*fp16 align 16 range32"
    given, around = amd.given, amd.given.around
    other = {
        "sources": (*around.sources, ("a", "b")),
        "passes": (PassUse("a", "python", "ttir", Anchor("start")),),
        "settings": replace(around.settings, line_info=True),
        "tools": (*around.tools, ("a", "b")),
    }
    assert set(other) == {field.name for field in fields(around)}
    moved = [replace(given, around=replace(around, **{name: value})) for name, value in other.items()]
    argument = replace(given.unit.arguments[0], range32=False)
    moved.append(replace(given, unit=replace(given.unit, arguments=(argument, *given.unit.arguments[1:]))))
    assert len({each.key for each in (given, *moved)}) == 1 + len(moved)


def test_what_only_launchers_need_does_not_count(tmp_path):
    before = plan(make_project(tmp_path)).units
    spec = tmp_path / "kernels/scale.toml"
    spec.write_text(re.sub(r"grid = .*", 'grid = ["7", "1", "1"]', spec.read_text()))
    after = plan(tmp_path).units
    assert [each.unit.grid for each in after] != [each.unit.grid for each in before]
    assert [each.key for each in after] == [each.key for each in before]


def test_installed_files_count_in_the_key_and_are_no_inputs(tmp_path, monkeypatch):
    shutil.copytree(LOADING, tmp_path / "loading")
    monkeypatch.syspath_prepend(str(tmp_path / "loading" / "installed"))
    planned = plan(tmp_path / "loading", kernels=("installed",)).units[0]
    assert planned.inputs == ("kernels/uses_installed.py",)
    assert [name for name, _ in planned.ingredients.sources] == [
        "<installed>/installed_ops/activations.py",
        "<installed>/installed_ops/constants.py",
        "kernels/uses_installed.py",
    ]


def test_python_path_of_the_environment_is_in_no_key(tmp_path):
    shutil.copytree(LOADING, tmp_path / "loading")
    path = str(tmp_path / "loading" / "installed")
    words = ["-c", "from test_plan import *; print(keys(Path()))"]
    outputs = set()
    for folders in ([str(Path(__file__).parent)], [str(Path(__file__).parent), path]):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path / "loading", env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_file_in_a_package_by_its_path_and_by_its_name(tmp_path):
    shutil.copytree(LOADING, tmp_path / "loading")
    spec = tmp_path / "loading/kernels/loading.toml"
    by_name = plan(tmp_path / "loading", kernels=("scale",)).units[0]
    spec.write_text(spec.read_text().replace('"stack.ops.scale:', '"../src/stack/ops/scale.py:'))
    by_path = plan(tmp_path / "loading", kernels=("scale",)).units[0]
    assert by_path.inputs == by_name.inputs
    assert (by_name.unit.source.text, by_path.unit.source.text) == (
        "stack.ops.scale:scale_kernel",
        "src/stack/ops/scale.py:scale_kernel",
    )


def test_tools_are_those_that_a_target_meets(tmp_path):
    make_project(tmp_path, {"pyproject.toml": SETTINGS.replace('"hip:gfx942"', '"hip:gfx942", "cpu:x86-64-v3"')})
    tools = {str(each.unit.target): dict(each.ingredients.tools) for each in plan(tmp_path).units}
    assert set(tools["cuda:80"]) == set(tools["cuda:90"]) == {"precast", "ptxas", "triton"}
    assert set(tools["hip:gfx942"]) == {"precast", "triton"}
    assert set(tools["cpu:x86-64-v3"]) == {"llvmlite", "mlir", "precast", "precast.cpu", "triton"}
    assert tools["cuda:80"]["ptxas"] != tools["cuda:90"]["ptxas"]
    assert tools["cuda:90"]["triton"] != tools["hip:gfx942"]["triton"]
    assert tools["cpu:x86-64-v3"]["precast.cpu"] != tools["cuda:90"]["precast"]
    assert tools["cuda:90"]["triton"].startswith("3.9.0 ")


def test_a_read_only_project_can_be_planned(tmp_path):
    make_project(tmp_path)
    (tmp_path / "build").write_text("not a folder: nothing can be remembered here")
    assert len(plan(tmp_path).units) == 6


def test_two_configs_of_one_name(tmp_path):
    spec = SPEC.replace("BLOCK = [128]\n", "").replace("grid =", "configs = [{ BLOCK = 1 }, { BLOCK = 1 }]\ngrid =")
    make_project(tmp_path, {"kernels/scale.toml": spec})
    assert error_text(tmp_path).splitlines()[0] == "kernels/scale.toml:3:27: error: this config is there twice"


def test_ignored_variables_are_a_warning(tmp_path, monkeypatch):
    make_project(tmp_path)
    monkeypatch.setenv("TRITON_PTXAS_PATH", "x")
    assert plan(tmp_path).warnings == (
        "TRITON_PTXAS_PATH in the environment: ignored; what may change code is set in [tool.precast.triton]",
    )
