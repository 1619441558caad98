"""The four examples of Triton's plugin README, in a build: end of stage, arbitrary point, saved pipeline, opt tool."""

import pytest
from forked import run_precast
from plugin_tree import PluginTree

from precast.release.manifest import read_manifest

TARGETS = ("cuda:90", "hip:gfx942", "cpu:x86-64-v3")
FIRST = ["cuda:90", *(pytest.param(each, marks=pytest.mark.all) for each in TARGETS[1:])]
GPUS = TARGETS[:2]
PLUGINS = """
@dataclass(frozen=True)
class Rename(Pass):
    name, stage, at = "rename", "ttir", end()
    to: str = "renamed"

    def run(self, module, context):
        function = find_kernel(module)
        function.attributes["sym_name"] = type(function.attributes["sym_name"]).get(self.to, context=module.context)

@dataclass(frozen=True)
class Ops:
    ops: int

class Count(Pass):
    name, stage, at = "count", "ttir", before("loop_unroll")

    def run(self, module, context):
        return Ops(sum(1 for _ in walk(module)))

native = NativePass("triton:plugins/libTritonPluginsTestLib.so", "plugin", stage="ttgir", at=after("coalesce"))
cuda = Override("saved-cuda", "ttir", "saved/cuda.toml")
hip = Override("saved-hip", "ttir", "saved/hip.toml")
cpu = Override("saved-cpu", "ttir", "saved/cpu.toml")
"""
END = 'use = "rename"\nkernels = "end"'
POINT = (
    'use = "count"\nkernels = "point"',
    'use = "plugin"\nkernels = "point"\ntargets = ["cuda:*", "hip:*"]',
)
SAVED = tuple(f'use = "saved-{kind}"\nkernels = "saved"\ntargets = "{kind}:*"' for kind in ("cuda", "hip", "cpu"))


def precast(tree, *words):
    done = run_precast(tree.folder, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A kernel for each example, and each target's ttir as it is dumped, without its passes for loops and CSE."""
    tree = PluginTree(tmp_path_factory.mktemp("examples") / "project", TARGETS)
    for name in ("end", "point", "saved"):
        tree.add_kernel(name, "value * 1 + (n + n) * (n + n)")
    for name in ("scale", "copy"):
        (tree.folder / f"kernels/{name}.toml").unlink()
    tree.plugin(PLUGINS)
    for target in TARGETS:
        dumped = precast(tree, "passes", "--target", target, "--stage", "ttir", "--toml")
        edited = dumped.replace('    ["common.cse"],\n', "").replace('    ["ttir.loop_unroll"],\n', "")
        assert edited.count("\n") == dumped.count("\n") - 2
        tree.write(f"saved/{target.partition(':')[0]}.toml", edited)
    tree.select(END, *POINT, *SAVED)
    return tree


@pytest.fixture(scope="module")
def units(tree):
    """What was built, by kernel and target."""
    return read_units(tree.build())


def read_units(build):
    units = read_manifest(build.release).units
    return {(unit.kernel, unit.target): unit for unit in units}


def text(tree, kernel, target, stage):
    folder = target.replace(":", "-")
    [found] = tree.folder.glob(f"build/units/{folder}/{kernel}-*/{kernel}.{stage}")
    return found.read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_a_pass_at_an_arbitrary_point(tree, units, target):
    runs = [(run.name, run.kind, run.anchor) for run in units["point", target].passes]
    expected = [("count", "python", "before(loop_unroll)")]
    assert runs == expected + ([("plugin", "native", "after(coalesce)")] if target in GPUS else [])
    assert int(units["point", target].findings[0].data.removeprefix('{"ops":').removesuffix("}")) > 10
    if target in GPUS:
        assert units["point", target].facts.symbol == "foo"
        assert "@point_kernel" in text(tree, "point", target, "ttir") and "@foo" in text(tree, "point", target, "ttgir")


@pytest.mark.parametrize("target", FIRST)
def test_dump_edit_override(tree, units, target):
    assert [(run.kind, run.stage) for run in units["saved", target].passes] == [("override", "ttir")]
    listed = precast(tree, "passes", "--target", target, "--kernel", "saved", "--stage", "ttir")
    assert "common.canonicalizer" in listed and "common.cse" not in listed
    # Without common subexpression elimination `n + n` is computed twice.
    assert text(tree, "saved", target, "ttir").count("arith.addi") > text(tree, "end", target, "ttir").count(
        "arith.addi"
    )


@pytest.mark.parametrize("target", FIRST)
def test_the_opt_tool_on_a_built_unit(tree, units, target):
    unit = units["end", target].unit
    printed = precast(tree, "opt", unit, "--stage", "ttir", "--pass", "rename{to=again}")
    assert printed == text(tree, "end", target, "ttir").replace("@renamed", "@again")


def test_a_pass_at_the_end_of_a_stage_is_on_or_off(tree, units):
    for target in TARGETS:
        assert [run.name for run in units["end", target].passes] == ["rename"]
        assert "@renamed" in text(tree, "end", target, "ttir")
    assert units["end", "cuda:90"].facts.symbol == units["end", "hip:gfx942"].facts.symbol == "renamed"
    tree.select(END + "\nenabled = false", *POINT, *SAVED)
    build = tree.build()
    assert build.compiled == [f"end:dtype=fp32,BLOCK=128@{target}" for target in sorted(TARGETS)]
    for target in TARGETS:
        assert read_units(build)["end", target].passes == ()
        assert "@end_kernel" in text(tree, "end", target, "ttir")
