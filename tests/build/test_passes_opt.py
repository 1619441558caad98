"""`precast opt` on a built unit, saved pipelines with plugins' passes, and IR that lacks what a pass makes."""

import subprocess

import pytest
from forked import run_precast
from plugin_tree import PluginTree
from tiers import tiers

from precast.errors import CompileError

TELL = """
@dataclass(frozen=True)
class Told:
    unit: str
    kernel: str
    warps: int
    constants: str
    arguments: str

@dataclass(frozen=True)
class Tell(Pass):
    name = "tell"
    limit: int = 1

    def run(self, module, context):
        constants, arguments = dict(context.constants), list(context.arguments)
        return Told(context.unit, context.kernel, context.options["num_warps"], str(constants), str(arguments))
"""

ABSOLUTE = """
from mlir import ir
from mlir.dialects import arith, math

class Absolute(Pass):
    name, stage, at = "absolute", "ttir", end()

    def run(self, module, context):
        for op in walk(module):
            if op.name == "tt.store":
                with ir.InsertionPoint(op), op.location:
                    value = math.absf(op.operands[1])
                    kind = ir.FloatAttr.get(ir.F32Type.get(), 2.0)
                    two = arith.constant(value.type, ir.DenseElementsAttr.get_splat(value.type, kind))
                    op.operands[1] = arith.mulf(value, two)
"""


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path, ("cuda:90",))


def opt(tree: PluginTree, *words: str) -> subprocess.CompletedProcess[str]:
    return run_precast(tree.folder, "opt", *words)


def test_a_built_units_passes_hear_what_they_hear_in_the_build(tree, pool):
    tree.edit(
        "kernels/scale.toml", "[kernel.scale.matrix]", "[kernel.scale.options]\nnum_warps = 8\n[kernel.scale.matrix]"
    )
    tree.plugin(TELL)
    tree.select('use = "tell"\nkernels = "scale"')
    built = tree.compile(pool).result
    done = opt(tree, "scale", "--pass", "tell")
    assert done.returncode == 0, done.stderr
    assert f"// finding tell: {built.findings[0].data}\n" in done.stdout
    assert '"warps":8' in done.stdout and "BLOCK" in done.stdout and '"unit":"scale:' in done.stdout


def test_a_pass_makes_ops_of_dialects_that_the_kernel_has_not(tree, pool):
    tree.plugin(ABSOLUTE)
    tree.add_kernel("copy", "value")
    tree.select('use = "absolute"\nkernels = "copy"')
    assert "math.absf" in tree.compile(pool, "copy").text("ttir")


SAVED = """
[[run]]
stage = "ttir"
name = "make_ttir"
steps = [
    ["common.inliner"],
    {step},
    ["common.cse"],
]
"""


def saved(tree: PluginTree, step: str, *uses: str) -> None:
    tree.write("saved.toml", SAVED.format(step=step))
    tree.plugin(TELL + 'short = Override("short", "ttir", "saved.toml")\n'
                'native = NativePass("triton:plugins/libTritonPluginsTestLib.so", "plugin")\n')  # fmt: skip
    tree.select(*uses)


@pytest.mark.parametrize("step, uses, ran", [
    pytest.param('["python.tell"]', ("short", "tell"), ["short", "tell"], marks=pytest.mark.all),
    ('["python.tell", "limit=2"]', ('use = "tell"\noptions = { limit = 2 }', "short"), ["short", "tell"]),
    ('["plugin.plugin"]', ("plugin", "short"), ["short", "plugin"]),
])  # fmt: skip
def test_a_saved_pipeline_says_where_plugins_passes_stand(tree, pool, step, uses, ran):
    saved(tree, step, *uses)
    found = tree.compile(pool)
    assert found.ran == ran
    assert found.result.facts.symbol == ("foo" if "plugin" in ran else "scale_kernel")
    wanted = ("--target", "cuda:90", "--kernel", "scale", "--stage", "ttir")
    dumped = run_precast(tree.folder, "passes", *wanted, "--toml").stdout
    assert step.split(",")[0].strip("[]") in dumped
    tree.write("saved.toml", dumped)
    assert tree.compile(pool).ran == ran
    tree.write("some.ttir", found.text("ttir"))
    done = opt(tree, "some.ttir", "--target", "cuda:90", "--pipeline", "saved.toml")
    assert done.returncode == 0, done.stderr
    assert "finding tell" in done.stdout or "@foo" in done.stdout


WRONG = {
    "not selected": ('["python.tell"]', ("short",), 6,
        "the saved pipeline of `short` names `python.tell`, which is not selected for the unit"),
    "other options": ('["python.tell", "limit=3"]', ("short", "tell"), 6,
        'the saved pipeline has python.tell("limit=3"), and the pass is selected as python.tell("limit=1")'),
    "no such pass": ('["common.csse"]', ("short",), None, "there is no such pass: common.csse"),
    "wrong arguments": ('["common.cse", 3]', ("short",), None, "wrong arguments: it takes ()"),
}  # fmt: skip


@pytest.mark.parametrize("step, uses, line, message", tiers(WRONG, "not selected", "no such pass"))
def test_what_is_wrong_with_a_saved_pipeline_is_told(tree, pool, step, uses, line, message):
    saved(tree, step, *uses)
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.message == message
    if line:
        assert (caught.value.where.file.endswith("saved.toml"), caught.value.where.line) == (True, line)
    else:
        assert caught.value.pass_name == "short"
