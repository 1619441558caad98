"""What a change of plugins rebuilds: exactly the units that run them, and no stage whose text stays the same."""

import json
import shutil
from pathlib import Path

import pytest
import triton
from plugin_tree import HEAD, PluginTree

from precast.artifact import UnitResult
from precast.codec import from_json
from precast.release.manifest import read_manifest

KERNELS = [f"k{number:02}" for number in range(8)]
LIBRARY = Path(triton.__file__).parent / "plugins/libTritonPluginsTestLib.so"
RENAME = """
@dataclass(frozen=True)
class Rename(Pass):
    stage, at = "ttir", end()
    suffix: str = "_a"

    def run(self, module, context):
        function = find_kernel(module)
        name = function.attributes["sym_name"]
        function.attributes["sym_name"] = type(name).get(name.value + self.suffix, context=module.context)

@dataclass(frozen=True)
class RenameA(Rename):
    name = "rename-a"
"""
RENAME_B = RENAME.replace("_a", "_b").replace("RenameA", "RenameB").replace("rename-a", "rename-b")
SELECT_A = 'use = "rename-a"\nkernels = ["k03", "k04"]'
SELECT_B = 'use = "rename-b"\nkernels = ["k04", "k05"]'


def units(*kernels):
    return [f"{kernel}:dtype=fp32,BLOCK=128@cuda:90" for kernel in kernels]


def make(folder):
    tree = PluginTree(folder, ("cuda:90",))
    for name in ("scale", "copy"):
        (folder / f"kernels/{name}.toml").unlink()
        (folder / f"kernels/{name}.py").unlink()
    for kernel in KERNELS:
        tree.add_kernel(kernel, f"value + {int(kernel[1:])}")
    tree.plugin(RENAME)
    tree.plugin(RENAME_B, "plugins/other.py", HEAD)
    tree.select(SELECT_A, SELECT_B)
    return tree


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Eight kernels, two passes on two kernels each; built once, and each test works on a copy."""
    tree = make(tmp_path_factory.mktemp("built") / "project")
    build = tree.build()
    assert build.code == 0, build.out + build.err
    return tree


@pytest.fixture
def tree(built, tmp_path):
    copy = make(tmp_path / "project")
    shutil.rmtree(copy.folder)
    shutil.copytree(built.folder, copy.folder, symlinks=True)
    return copy


def results(tree):
    paths = tree.folder.glob("build/units/cuda-90/*/facts.json")
    found = [from_json(path.read_bytes(), UnitResult) for path in paths]
    return {result.unit.partition(":")[0]: result for result in found}


def symbols(tree):
    return {kernel: result.facts.symbol for kernel, result in results(tree).items()}


def ran(build):
    """Units that ran at all, whether or not later stages came from the store."""
    return [step for step in build.steps if "@" in step]


def test_a_plugins_edit_runs_exactly_its_kernels(tree):
    assert tree.build().steps == []
    tree.edit("plugins/mine.py", '"_a"', '"_z"')
    build = tree.build()
    assert ran(build) == build.compiled == units("k03", "k04")
    assert (symbols(tree)["k03"], symbols(tree)["k04"]) == ("k03_kernel_z", "k04_kernel_z_b")
    assert tree.build().steps == []


def test_a_comment_in_a_plugin_compiles_no_later_stage(tree):
    tree.edit(
        "plugins/mine.py",
        "\n@dataclass(frozen=True)\nclass Rename(",
        "\n# Renames.\n@dataclass(frozen=True)\nclass Rename(",
    )
    build = tree.build()
    assert ran(build) == units("k03", "k04")
    for kernel in ("k03", "k04"):
        stages = {stage.stage: stage.reused for stage in results(tree)[kernel].stages}
        assert stages["ttgir"] and stages["llir"] and stages["ptx"] and stages["cubin"]
    assert tree.build().steps == []


def test_removing_and_adding_a_selection_is_exact(tree):
    tree.select(SELECT_B)
    assert tree.build().compiled == units("k03", "k04")
    assert (symbols(tree)["k03"], symbols(tree)["k04"]) == ("k03_kernel", "k04_kernel_b")
    tree.select(SELECT_A, SELECT_B)
    build = tree.build()
    assert ran(build) == units("k03", "k04") and build.compiled == []  # the store still has them
    assert symbols(tree)["k04"] == "k04_kernel_a_b"


@pytest.mark.all
def test_a_disabled_pass_is_as_none(tree):
    tree.select(SELECT_A + "\nenabled = false", SELECT_B)
    assert tree.build().compiled == units("k03", "k04")
    assert symbols(tree)["k04"] == "k04_kernel_b"


@pytest.mark.all
def test_reordering_runs_the_units_that_have_both(tree):
    tree.select(SELECT_B, SELECT_A)
    assert tree.build().compiled == units("k04")
    assert symbols(tree)["k04"] == "k04_kernel_b_a"


@pytest.mark.all
def test_another_option_runs_its_units(tree):
    tree.select(SELECT_A, SELECT_B + '\noptions = { suffix = "_c" }')
    assert tree.build().compiled == units("k04", "k05")
    assert symbols(tree)["k05"] == "k05_kernel_c"


@pytest.mark.all
def test_an_unused_plugin_rebuilds_nothing(tree):
    tree.write("plugins/unused.py", HEAD + 'again = BuiltinPass("common.cse")\n')
    assert ran(tree.build()) == []
    tree.edit("plugins/unused.py", "common.cse", "common.sccp")
    assert ran(tree.build()) == []


@pytest.mark.all
def test_a_native_library_rebuilt_in_place_is_noticed(tree):
    shutil.copy(LIBRARY, tree.folder / "mine.so")
    tree.write("plugins/native.py", HEAD + 'native = NativePass("mine.so", "plugin")\n')
    select = 'use = "plugin"\nkernels = "k07"'
    tree.select(SELECT_A, SELECT_B, select)
    assert tree.build().compiled == units("k07")
    assert symbols(tree)["k07"] == "foo"
    assert tree.build().steps == []
    with (tree.folder / "mine.so").open("ab") as file:
        file.write(b"\0" * 16)
    assert ran(tree.build()) == units("k07")


def test_scons_and_precast_build_agree_about_plugins(tree):
    tree.edit("plugins/mine.py", '"_a"', '"_z"')
    assert ran(tree.build()) == units("k03", "k04")
    assert ran(tree.scons()) == []
    tree.edit("plugins/other.py", '"_b"', '"_y"')
    assert ran(tree.scons()) == units("k04", "k05")
    assert tree.build().steps == []


@pytest.mark.all
def test_the_manifest_lists_what_ran_in_order_with_digests_and_findings(tree):
    tree.write(
        "plugins/count.py",
        HEAD
        + """
@dataclass(frozen=True)
class Loads:
    loads: int

class CountLoads(Pass):
    name, stage, at = "count-loads", "ttir", end()

    def run(self, module, context):
        return Loads(sum(op.name == "tt.load" for op in walk(module)))
""",
    )
    tree.select(SELECT_A, SELECT_B, 'use = "count-loads"\nkernels = "k04"')
    build = tree.build()
    assert ran(build) == units("k04")
    unit = next(unit for unit in read_manifest(build.release).units if unit.unit == units("k04")[0])
    assert [run.name for run in unit.passes] == ["rename-a", "rename-b", "count-loads"]
    assert all(len(run.digest) == 64 for run in unit.passes)
    assert [(found.pass_name, json.loads(found.data)) for found in unit.findings] == [("count-loads", {"loads": 1})]
