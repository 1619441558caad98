"""Passes from outside in real compilations: where they stand, what they leave, what goes wrong."""

import json

import pytest
from forked import run_precast
from plugin_tree import PluginTree
from tiers import tiers

from precast.errors import CompileError, PlanFailed

RENAME = """
@dataclass(frozen=True)
class Rename(Pass):
    name, stage, at = "rename", "{stage}", {at}
    to: str = "renamed"

    def run(self, module, context):
        function = find_kernel(module)
        function.attributes["sym_name"] = type(function.attributes["sym_name"]).get(self.to, context=module.context)
"""


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path)


@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.all)])
def test_a_pass_at_the_end_of_a_stage_is_on_or_off(tree, pool, target):
    tree.plugin(RENAME.format(stage="ttgir", at="end()"))
    tree.select('use = "rename"\noptions = { to = "other" }\ntargets = ["cuda:*", "hip:*"]')
    on = tree.compile(pool, target=target)
    assert on.ran == ["rename"]
    assert on.result.facts.symbol == "other"
    assert "@other" in on.text("ttgir") and "@scale_kernel" in on.text("ttir")
    assert dict(on.result.passes[0].options) == {"to": "other"}

    tree.select('use = "rename"\nenabled = false\ntargets = ["cuda:*", "hip:*"]')
    off = tree.compile(pool, target=target)
    assert off.ran == [] and off.result.facts.symbol == "scale_kernel"


@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.all)])
def test_a_pass_at_an_arbitrary_point_sees_the_ir_of_that_point(tree, pool, target):
    tree.plugin("""
@dataclass(frozen=True)
class Seen:
    ops: int

@dataclass(frozen=True)
class CountOps(Pass):
    name, stage, at = "count", "ttir", start()

    def run(self, module, context):
        return Seen(sum(1 for _ in walk(find_kernel(module))))
""")
    counts = []
    for anchor in ("start", "before(inliner)", "after(common.cse)", "end"):
        tree.select(f'use = "count"\nat = "{anchor}"\ntargets = ["cuda:*", "hip:*"]')
        found = tree.compile(pool, target=target).result
        assert found.passes[0].anchor == anchor
        counts.append(json.loads(found.findings[0].data)["ops"])
    assert counts[0] == counts[1] > counts[2] >= counts[3]


def test_dump_edit_override(tree, pool):
    """The listing that `precast passes --toml` writes, edited, runs instead of the stage's own pipeline."""
    tree.write(
        "saved.toml",
        """
[[run]]
stage = "ttir"
name = "make_ttir"
steps = [["common.symbol_dce"]]
""",
    )
    tree.plugin('short = Override("short", "ttir", "saved.toml")\n')
    before = tree.compile(pool)
    tree.select('use = "short"\ntargets = "cuda:*"')
    after = tree.compile(pool)
    assert after.ran == ["short"] and after.result.passes[0].kind == "override"
    assert len(after.text("ttir").splitlines()) > len(before.text("ttir").splitlines())


def test_edits_of_the_pipeline_change_what_runs(tree, pool):
    tree.plugin("""
drop = Drop("no-cse", "ttir", "cse")
canonicalize = BuiltinPass("common.canonicalizer", stage="ttir", alias="again")
replace = Replace("combine-by-cse", "ttir", "combine", by=BuiltinPass("common.cse"))
""")
    tree.select(*(f'use = "{name}"\ntargets = "cuda:*"' for name in ("no-cse", "again", "combine-by-cse")))
    found = tree.compile(pool)
    assert sorted(found.ran) == ["again", "combine-by-cse", "no-cse"]
    assert [run.kind for run in found.result.passes] == ["drop", "replace", "builtin"]


def test_adjacent_passes_run_in_order_and_each_is_listed(tree, pool):
    tree.plugin("""
class Append(Pass):
    stage, at = "ttir", end()

    def run(self, module, context):
        function = find_kernel(module)
        name = function.attributes["sym_name"]
        function.attributes["sym_name"] = type(name).get(name.value + self.suffix, context=module.context)

class First(Append):
    name, suffix = "first", "_1"

class Second(Append):
    name, suffix = "second", "_2"
""")
    tree.select("second", "first")
    found = tree.compile(pool)
    assert found.result.facts.symbol == "scale_kernel_2_1"
    assert found.ran == ["second", "first"]


def test_the_bindings_own_pattern_rewriter_works(tree, pool):
    tree.plugin("""
from mlir import ir
from mlir.dialects import arith
from mlir.rewrite import RewritePatternSet, walk_and_apply_patterns

@dataclass(frozen=True)
class SubtractInstead(Pass):
    name, stage, at = "subtract", "ttir", end()

    def run(self, module, context):
        def rewrite(op, rewriter):
            with rewriter.ip, op.location:
                rewriter.replace_op(op, [arith.subf(op.operands[0], op.operands[1])])

        patterns = RewritePatternSet()
        patterns.add(arith.AddFOp, rewrite)
        walk_and_apply_patterns(module.operation, patterns.freeze())
""")
    tree.select("subtract")
    text = tree.compile(pool).text("ttir")
    assert "arith.subf" in text and "arith.addf" not in text


def test_selection_by_globs_leaves_the_other_units_alone(tree):
    tree.plugin(RENAME.format(stage="ttir", at="end()"))
    without = {str(each.unit): each.key for each in tree.plan().units}
    tree.select('use = "rename"\nkernels = "sc*"\nvariants = "*BLOCK=128*"\ntargets = "cuda:*"')
    units = tree.plan().units
    assert [str(each.unit) for each in units if each.passes] == ["scale:dtype=fp32,BLOCK=128@cuda:90"]
    changed = [str(each.unit) for each in units if each.key != without[str(each.unit)]]
    assert changed == ["scale:dtype=fp32,BLOCK=128@cuda:90"]


def test_an_edit_of_a_file_concerns_every_pass_in_it(tree):
    tree.plugin(RENAME.format(stage="ttir", at="end()") + 'again = BuiltinPass("common.cse", alias="again")\n')
    tree.select('use = "rename"\nkernels = "scale"', 'use = "again"\nkernels = "copy"\ntargets = "cuda:*"')
    before = {str(each.unit): each.key for each in tree.plan().units}
    tree.edit("plugins/mine.py", '"renamed"', '"other"')
    after = {str(each.unit): each.key for each in tree.plan().units}
    changed = [unit for unit in after if after[unit] != before[unit]]
    assert sorted(changed) == [
        "copy:dtype=fp32,BLOCK=128@cuda:90",
        *(f"scale:dtype=fp32,BLOCK=128@{target}" for target in ("cpu:x86-64-v3", "cuda:90", "hip:gfx942")),
    ]


def test_a_pass_that_leaves_no_trace_stops_at_its_stage(tree, pool):
    tree.plugin("""
class Look(Pass):
    name, stage, at = "look", "ttir", end()

    def run(self, module, context):
        find_kernel(module)
""")
    first = tree.compile(pool)
    tree.select("look")
    second = tree.compile(pool)
    assert second.ran == ["look"]
    assert [stage for stage in second.reused if stage != "ttir"] == ["ttgir", "llir", "ptx", "cubin"]
    assert second.result.image_digest == first.result.image_digest


FAULTS = {
    "raises": ("raise KeyError('no such thing')", "KeyError: 'no such thing'"),
    "refuses": ("context.refuse(find_kernel(module), 'not this kernel')", "not this kernel"),
    "returns": ("return 7", "TypeError: `run` returned a int: return None or a frozen dataclass of findings"),
    "misspells": (
        "TritonOp(next(op for op in walk(module) if op.name == 'tt.load')).set_attribute('cachePolcy', 1)",
        "AttributeError: `tt.load` has no attribute `cachePolcy`: did you mean `cachePolicy`?",
    ),
    "leaves invalid IR": (
        "TritonOp(next(op for op in walk(module) if op.name == 'tt.make_range')).set_attribute('end', 3)",
        "the IR it left is not valid: ",
    ),
}


@pytest.mark.parametrize("body, message", tiers(FAULTS, "raises", "leaves invalid IR"))
def test_a_pass_that_fails_fails_its_unit_and_is_named(tree, pool, body, message):
    tree.plugin(f"""
class Bad(Pass):
    name, stage, at = "bad", "ttir", end()

    def run(self, module, context):
        {body}
""")
    tree.select('use = "bad"\nkernels = "scale"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert message in caught.value.message
    assert (caught.value.pass_name, caught.value.stage) == ("bad", "ttir")
    assert caught.value.unit == "scale:dtype=fp32,BLOCK=128@cuda:90"


def test_an_exception_names_the_plugins_own_line(tree, pool):
    tree.plugin("""
class Bad(Pass):
    name, stage, at = "bad", "ttir", end()

    def run(self, module, context):
        helper()

def helper():
    raise ValueError("deep")
""")
    tree.select("bad")
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert str(caught.value.where).endswith("plugins/mine.py:14:1")


def test_a_refusal_names_the_kernels_own_line(tree, pool):
    tree.plugin("""
class Refuse(Pass):
    name, stage, at = "refuse", "ttgir", end()

    def run(self, module, context):
        context.refuse(next(op for op in walk(module) if op.name == "tt.store"), "no stores here")
""")
    tree.select('use = "refuse"\ntargets = "cuda:*"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert str(caught.value) == "kernels/scale.py:10:5: no stores here"


def test_a_crash_of_a_pass_fails_that_unit_alone_with_the_ir_before_it(tree, pool):
    tree.plugin("""
import os, signal

class Crash(Pass):
    name, stage, at = "crash", "ttir", end()

    def run(self, module, context):
        os.kill(os.getpid(), signal.SIGSEGV)
""")
    tree.select('use = "crash"\nkernels = "scale"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.pass_name == "crash"
    files = {path.name: path for path in tree.folder.glob(f"{caught.value.reproducer}/**/*")}
    assert any("tt.func" in path.read_text(errors="replace") for path in files.values() if path.is_file())
    assert tree.compile(pool, "copy").ran == []


def test_an_absent_anchor_lists_the_passes_that_are_there(tree, pool):
    tree.plugin(RENAME.format(stage="ttir", at='before("loop_unrol")'))
    tree.select('use = "rename"\ntargets = "cuda:*"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert "stage `ttir` of cuda:90 has no pass `loop_unrol`" in caught.value.message
    assert "ttir.loop_unroll" in str(caught.value.hint)


def test_a_python_pass_inside_llir_is_warned_of_once(tree):
    tree.plugin(RENAME.format(stage="llir", at="end()"))
    select = 'use = "rename"\ntargets = ["cuda:*", "hip:*"]'
    tree.select(select)
    assert tree.plan().warnings == (
        "pass `rename` is Python and stands inside llir, at end: "
        "the way there and back takes up to seconds for each unit; `start` is cheap",
    )
    tree.select(select + '\nat = "start"')
    assert tree.plan().warnings == ()


def test_a_pass_in_a_stage_that_a_unit_lacks_is_an_error(tree):
    tree.plugin(RENAME.format(stage="ttgir", at="end()"))
    tree.select("rename")
    with pytest.raises(PlanFailed) as caught:
        tree.plan()
    errors = {error.message: error.hint for error in caught.value.failures}
    assert errors["pass `rename` stands in stage `ttgir`, which `scale` does not have on cpu:x86-64-v3"] == (
        "its stages are ttir, loops, llir, obj; narrow `kernels` or `targets`"
    )


def test_a_device_buffer_becomes_a_parameter_between_the_users_and_the_hidden_ones(tree, pool):
    tree.plugin("""
class Buffer(Pass):
    name, stage, at = "buffer", "ttir", end()

    def run(self, module, context):
        context.add_buffer(module, 64)
""")
    tree.select("buffer")
    found = tree.compile(pool).result
    assert [(buffer.pass_name, buffer.bytes_per_program) for buffer in found.facts.buffers] == [("buffer", 64)]
    kinds = [parameter.kind for parameter in found.facts.parameters]
    assert kinds == ["argument", "argument", "argument", "buffer", "global_scratch", "profile_scratch"]


COUNT_LOOPS = """
@dataclass(frozen=True)
class Seen:
    dialects: tuple

class Look(Pass):
    name, stage, at = "look", "loops", end()

    def run(self, module, context):
        return Seen(tuple(sorted({op.name.partition(".")[0] for op in walk(module)})))
"""


@pytest.mark.parametrize(
    "at, dialect", [("start", "tt"), ("end", "func"), ("before(lower-ttir)", "tt"), ("after(cpu.lower-ttir)", "func")]
)
def test_passes_stand_before_and_after_the_cpu_engines_loops(tree, pool, at, dialect):
    tree.plugin(COUNT_LOOPS)
    tree.select(f'use = "look"\nat = "{at}"\ntargets = "cpu:*"')
    found = tree.compile(pool, target="cpu:x86-64-v3").result
    assert found.passes[0].stage == "loops"
    assert dialect in json.loads(found.findings[0].data)["dialects"]


def test_a_pass_on_the_cpu_engines_loops_changes_the_image(tree, pool):
    tree.plugin("""
from mlir import ir

class Double(Pass):
    name, stage, at = "double", "loops", end()

    def run(self, module, context):
        for op in walk(module):
            if op.name == "arith.addf":
                op.operands[1] = op.operands[0]
""")
    plain = tree.compile(pool, target="cpu:x86-64-v3").result
    tree.select('use = "double"\ntargets = "cpu:*"')
    changed = tree.compile(pool, target="cpu:x86-64-v3").result
    assert changed.image_digest != plain.image_digest


def test_the_cpu_engines_own_steps_run_as_a_whole(tree, pool):
    tree.plugin('drop = Drop("no-cse", "llir", "cpu.cse")\n')
    tree.select('use = "no-cse"\ntargets = "cpu:*"')
    with pytest.raises(CompileError, match="stage `llir` of cpu:x86-64-v3 cannot be edited"):
        tree.compile(pool, target="cpu:x86-64-v3")


def test_invalid_loops_name_the_pass(tree, pool):
    tree.plugin("""
class Bad(Pass):
    name, stage, at = "bad", "loops", end()

    def run(self, module, context):
        for op in walk(module):
            if op.name == "func.return":
                op.erase()
                return
""")
    tree.select('use = "bad"\ntargets = "cpu:*"')
    with pytest.raises(CompileError, match="the IR it left is not valid") as caught:
        tree.compile(pool, target="cpu:x86-64-v3")
    assert (caught.value.pass_name, caught.value.stage) == ("bad", "loops")


def test_opt_starts_from_a_built_units_ir(tree, pool):
    tree.compile(pool)
    tree.plugin(RENAME.format(stage="ttir", at="end()"))
    words = ("--stage", "ttir", "--pass", "rename{to=again}")
    done = run_precast(tree.folder, "opt", "scale", *words)
    assert done.returncode == 0, done.stderr
    assert "tt.func public @again(" in done.stdout and "tt.store" in done.stdout
    done = run_precast(tree.folder, "opt", "scael", *words)
    assert done.returncode == 1 and "no built unit matches `scael`" in done.stderr
