"""Native libraries, hook files, and ops of one's own, in real compilations."""

import shutil
from pathlib import Path

import pytest
import triton
from plugin_tree import HEAD, PluginTree

from precast.errors import CompileError, PluginError

LIBRARIES = Path(triton.__file__).parent / "plugins"
GPUS = ["cuda:90", "hip:gfx942"]
FIRST_GPU = ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.all)]


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path)


def on_gpus(name: str, more: str = "") -> str:
    return f'use = "{name}"\ntargets = ["cuda:*", "hip:*"]\n{more}'


@pytest.mark.parametrize("target", FIRST_GPU)
@pytest.mark.parametrize("stage, at", [("ttir", "before(cse)"), ("ttgir", "end"), ("llir", "start")])
def test_a_native_pass_runs_where_it_is_put(tree, pool, target, stage, at):
    tree.plugin(f'rename = NativePass("triton:plugins/libTritonPluginsTestLib.so", "plugin", stage="{stage}")\n')
    tree.select(on_gpus("plugin", f'at = "{at}"'))
    found = tree.compile(pool, target=target)
    assert [(run.name, run.kind, run.anchor) for run in found.result.passes] == [("plugin", "native", at)]
    assert found.result.facts.symbol == "foo"


def test_units_without_a_native_pass_run_in_a_process_without_its_library(tree, pool):
    tree.plugin('rename = NativePass("triton:plugins/libTritonPluginsTestLib.so", "plugin")\n')
    tree.select('use = "plugin"\nkernels = "scale"')
    assert tree.compile(pool).result.facts.symbol == "foo"
    assert tree.compile(pool, "copy").result.facts.symbol == "copy_kernel"


def test_rebuilding_a_library_at_the_same_path_is_noticed(tree, pool):
    shutil.copy(LIBRARIES / "libTritonPluginsTestLib.so", tree.folder / "mine.so")
    tree.plugin('rename = NativePass("mine.so", "plugin")\n')
    tree.select(on_gpus("plugin"))
    first, key = tree.compile(pool), tree.plan("scale", "cuda:*").units[0].key
    with (tree.folder / "mine.so").open("ab") as file:
        file.write(b"\0" * 16)  # another build of the same code
    assert tree.plan("scale", "cuda:*").units[0].key != key
    second = tree.compile(pool)
    assert "ttir" not in second.reused
    assert second.result.passes[0].digest != first.result.passes[0].digest
    assert second.result.image_digest == first.result.image_digest


CUSTOM_OP = """
import triton
import triton.language as tl
from triton.language import core


@core.builtin
def twice(a, b, _semantic=None):
    return tl.tensor(_semantic.builder.create_custom_op([a.handle, b.handle]), a.type)


@triton.jit
def scale_kernel(out, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside)
    tl.store(out + offsets, twice(value, value), mask=inside)
"""


@pytest.mark.parametrize("target", FIRST_GPU)
def test_a_kernel_uses_an_op_of_a_native_dialect_and_its_lowering_runs(tree, pool, target):
    tree.write("kernels/scale.py", CUSTOM_OP)
    tree.plugin('lower = NativePass("triton:plugins/libMLIRDialectPlugin.so", "plugingpu_conversion", stage="ttgir")\n')
    tree.select(on_gpus("plugingpu_conversion"))
    found = tree.compile(pool, target=target)
    assert found.ran == ["plugingpu_conversion"]
    assert "arith.addf" in found.text("ttir")


SOFTSIGN = """
from precast.passes import ElementwiseOp

MLIR = '''
func.func @softsign(%x: {type}) -> {type} {
  %one = arith.constant 1.0 : {type}
  %size = math.absf %x : {type}
  %sum = arith.addf %size, %one : {type}
  %result = arith.divf %x, %sum : {type}
  return %result : {type}
}
'''

softsign = ElementwiseOp("softsign", types=("fp32", "fp16"), lowering={"*": MLIR})
"""


@pytest.mark.parametrize("target", [*GPUS, "cpu:x86-64-v3"])
def test_an_elementwise_op_is_declared_in_python_and_used_as_a_function(tmp_path, pool, target):
    tree = PluginTree(tmp_path, (target,), ("kernels", "plugins"))
    tree.write("plugins/softsign.py", SOFTSIGN)
    tree.add_kernel("scale", "softsign(value)", "from softsign import softsign", dtypes='["fp32", "fp16"]')
    tree.select('use = "softsign"\nkernels = "scale"')
    found = tree.compile(pool, target=target)
    assert [(run.name, run.kind) for run in found.result.passes] == [("softsign", "op")]
    assert "math.absf" in found.text("ttir") and "extern_elementwise" not in found.text("ttir")


def test_an_op_that_nobody_selected_is_named(tmp_path, pool):
    tree = PluginTree(tmp_path, ("cuda:90",), ("kernels", "plugins"))
    tree.write("plugins/softsign.py", SOFTSIGN)
    tree.add_kernel("scale", "softsign(value)", "from softsign import softsign")
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.message == "the kernel calls op `softsign`, which is not selected for it"
    assert caught.value.hint == 'select it in pyproject.toml: [[tool.precast.pass]] use = "softsign"'


# A file as people write them for Triton's own stages hook: it patches the text of a stage function.
HOOK = """
import importlib.util
import inspect
import pathlib
import textwrap

EXTRA = pathlib.Path("extra.txt").read_text().strip()


def inspect_stages_hook(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return "key", "hash"
    spec = importlib.util.spec_from_loader("changed_stage", loader=None)
    module = importlib.util.module_from_spec(spec)
    text = textwrap.dedent(inspect.getsource(self.make_ttir))
    text = text.replace("passes.ttir.add_loop_unroll(pm)", EXTRA)
    exec("from triton._C.libtriton import ir, passes, amd\\n" + text, module.__dict__)
    arguments = (options,) if capability is None else (options, capability)
    stages["ttir"] = lambda source, metadata: module.make_ttir(source, metadata, *arguments)
"""


@pytest.mark.parametrize("target", FIRST_GPU)
def test_a_stages_hook_file_runs_unmodified(tree, pool, target):
    tree.write("hooks/hook.py", HOOK)
    tree.write("hooks/extra.txt", 'ir.module.set_attr(mod, "ttg.hooked", ir.builder(mod.context).get_int32_attr(7))')
    tree.plugin('hook = HookFile("hook", "hooks/hook.py", reads=("hooks/extra.txt",))\n')
    tree.select(on_gpus("hook"))
    found = tree.compile(pool, target=target)
    assert [(run.name, run.kind, run.opaque) for run in found.result.passes] == [("hook", "hook", True)]
    assert "ttg.hooked = 7" in found.text("ttir")


def test_what_a_hook_reads_is_in_its_key(tree):
    tree.write("hooks/hook.py", HOOK)
    tree.write("hooks/extra.txt", "pass")
    tree.plugin('hook = HookFile("hook", "hooks/hook.py", reads=("hooks/extra.txt",))\n')
    tree.select(on_gpus("hook"))
    key = tree.plan("scale", "cuda:*").units[0].key
    tree.write("hooks/extra.txt", "pass  # another")
    assert tree.plan("scale", "cuda:*").units[0].key != key


def test_a_hook_that_changes_nothing_did_not_run(tree, pool):
    tree.write("hooks/hook.py", "def inspect_stages_hook(*arguments, **named):\n    return '', ''\n")
    tree.plugin('hook = HookFile("hook", "hooks/hook.py")\n')
    tree.select(on_gpus("hook"))
    with pytest.raises(CompileError, match="pass `hook` was selected for stage `ttir` and did not run"):
        tree.compile(pool)


BROKEN = {
    "missing": ("absent.so", "there is no plugin library `absent.so`"),
    "no library": ("plugins/mine.py", "plugin library `mine.py` does not load: invalid ELF header"),
    "no plugin": ("triton:_C/libtriton.so", "library `libtriton.so` is no Triton plugin"),
    "cut off": ("cut.so", "plugin library `cut.so` "),
}


@pytest.mark.parametrize("library, message", BROKEN.values(), ids=BROKEN)
def test_a_broken_library_is_told_by_the_probe_before_any_unit(tree, library, message):
    (tree.folder / "cut.so").write_bytes((LIBRARIES / "libTritonPluginsTestLib.so").read_bytes()[:20000])
    tree.plugin(f'broken = NativePass("{library}", "plugin")\n')
    tree.select("plugin")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message.startswith(f"plugin module `plugins/mine.py`: {message}")


def test_a_pass_that_the_library_lacks_is_told_by_the_probe(tree):
    tree.plugin('wrong = NativePass("triton:plugins/libTritonPluginsTestLib.so", "plugn")\n')
    tree.select("plugn")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message == (
        "plugin module `plugins/mine.py`: "
        "plugin library `libTritonPluginsTestLib.so` holds no pass `plugn`: it holds plugin"
    )


def test_a_duplicate_name_names_both_owners(tree):
    tree.plugin('one = BuiltinPass("common.cse")\n')
    tree.plugin('two = BuiltinPass("common.cse")\n', "plugins/other.py", HEAD)
    tree.select("common.cse")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message == (
        "two plugins are named `common.cse`: one in plugins/mine.py, one in plugins/other.py"
    )
