"""Files for Triton's own stages hook, as its documentation has them: they run as they stand, for their units alone."""

import inspect

import pytest
from plugin_tree import PluginTree
from tiers import tiers
from triton.backends.nvidia.compiler import CUDABackend

from precast.errors import CompileError
from precast.worker.pool import WorkerPool

TOP = """
import torch
import hashlib
import os
import pathlib

import triton
import triton.language as tl
from triton import knobs
from triton._C.libtriton import ir, passes

DEVICE = triton.runtime.driver.active.get_active_torch_device()
ON_CUDA = torch.cuda.is_available()


@triton.jit
def kernel(BLOCK_SIZE: tl.constexpr):
    return


def get_key():
    return pathlib.Path(__file__).read_text()


def get_hash():
    return hashlib.sha256(get_key().encode("utf-8")).hexdigest()
"""

RENAMING = """
def {name}(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return get_key(), get_hash()

    def make_ttir(module, metadata, opt, capability):
        module = self.make_ttir(module, metadata, opt, capability)
        manager = ir.pass_manager(module.context)
        manager.enable_debug()
        passes.plugin.add_plugin(manager)
        manager.run(module, "make_ttir_plugin")
        return module

    stages["ttir"] = lambda source, metadata: make_ttir(source, metadata, options, capability)
    return get_key(), get_hash()
"""

BOTTOM = """
if __name__ == "__main__":
    kernel[(1,)](BLOCK_SIZE=1024)
"""
LIBRARY = 'library="triton:plugins/libTritonPluginsTestLib.so"'
CUDA = 'targets = "cuda:*"'


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path, ("cuda:90",))


def select(tree: PluginTree, text: str, more: str = "", **files: str) -> None:
    tree.write("hooks/hook.py", text)
    tree.plugin(f'hook = HookFile("hook", "hooks/hook.py"{more})\n')
    tree.select(f'use = "hook"\nkernels = "scale"\n{CUDA}')


@pytest.mark.parametrize("name, end", [
    pytest.param("inspect_stages_hook", BOTTOM, marks=pytest.mark.all),
    pytest.param("any_name_at_all", BOTTOM, marks=pytest.mark.all),
    ("set_by_the_file", "knobs.runtime.add_stages_inspection_hook = set_by_the_file\n"),
])  # fmt: skip
def test_an_example_of_tritons_documentation_runs_as_it_stands(tree, pool, name, end):
    select(tree, TOP + RENAMING.format(name=name) + end, f", {LIBRARY}")
    found = tree.compile(pool)
    assert found.ran == ["hook"] and found.result.facts.symbol == "foo"
    assert tree.compile(pool, "copy").result.facts.symbol == "copy_kernel"


OVERRIDE = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

from triton.backends.compiler import Language


def dump(self=None, stages=None, options=None, language=None, capability=None):
    return get_key(), get_hash()


def override(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return get_key(), get_hash()
    if language != Language.TRITON:
        return
    print("overriding")
    spec = spec_from_file_location("override_stages", "stages_of_mine.py")
    module = module_from_spec(spec)
    sys.modules["override_stages"] = module
    spec.loader.exec_module(module)
    stages["ttir"] = lambda source, metadata: module.Stages.make_ttir(source, metadata, options, capability)
"""


def test_one_of_two_hooks_that_a_file_holds_is_named(tree, pool):
    step = "passes.ttir.add_loop_unroll(pm)"
    stages = inspect.getsource(CUDABackend.make_ttir)
    stages = stages.replace(step, f"{step}\n        passes.plugin.add_plugin(pm)")
    head = "from triton._C.libtriton import ir, passes, llvm, amd, nvidia\nclass Stages:\n"
    tree.write("hooks/stages_of_mine.py", head + stages)
    more = f', {LIBRARY}, reads=("hooks/stages_of_mine.py",)'
    select(tree, TOP + OVERRIDE, more)
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.message == "hook file `hooks/hook.py` has 2 functions that may be the hook: `dump`, `override`"
    select(tree, TOP + OVERRIDE, f'{more}, function="override"')
    assert tree.compile(pool).result.facts.symbol == "foo"


KNOBS = """
import os
from triton import knobs
knobs.nvidia.disable_ptxas_opt = True
os.chdir("/")
os.environ["LEFT"] = "behind"

def inspect_stages_hook(self=None, stages=None, options=None, language=None, capability=None):
    if stages is None:
        return "k", "k"
    make = stages["ttir"]
    stages["ttir"] = lambda source, metadata: make(source, metadata)
"""


def test_what_a_hook_sets_holds_in_its_units_stages_and_nowhere_else(tree):
    with WorkerPool(1) as pool:
        plain = tree.compile(pool), tree.compile(pool, "copy")
    select(tree, KNOBS)
    with WorkerPool(1) as pool:
        hooked, other = tree.compile(pool), tree.compile(pool, "copy")
    assert hooked.result.image_digest != plain[0].result.image_digest  # ptxas did not optimise
    assert other.result.image_digest == plain[1].result.image_digest


REFUSED = {
    "no hook": ("X = 1\n", "hook file `hooks/hook.py` defines no function `inspect_stages_hook`, and sets no "
                "knobs.runtime.add_stages_inspection_hook"),
    "raises": ("def inspect_stages_hook(*given):\n    raise ValueError('odd')\n", "ValueError: odd"),
    "exits": ("import sys\nsys.exit(2)\n", "it called `sys.exit(2)`"),
    "uses torch": ("import torch\ndef inspect_stages_hook(*given):\n    return torch.zeros(3) + 1\n", None),
}  # fmt: skip


@pytest.mark.parametrize("text, message", tiers(REFUSED, "raises", "uses torch"))
def test_what_is_wrong_with_a_hook_is_told_at_its_line(tree, pool, text, message):
    select(tree, text)
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.message == message or (message is None and "torch" in caught.value.message)
    assert caught.value.pass_name == "hook" or (message and "defines no function" in message)
    if "defines no" not in caught.value.message:
        assert (caught.value.where.file, caught.value.where.line) == ("hooks/hook.py", text.count("\n"))


@pytest.mark.parametrize("body, message", [
    ("import os\n    os.abort()", "the pass crashed (SIGABRT)"),
    ("raise KeyError('odd')", "KeyError: 'odd'"),
])  # fmt: skip
def test_a_hooks_end_in_a_stage_is_told_at_its_line(tree, pool, body, message):
    select(tree, f"def change(text):\n    {body}\n" + DROPPING.format(stage="ptx"), ', stage="ptx"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert (caught.value.message, caught.value.pass_name, caught.value.stage) == (message, "hook", "ptx")
    assert (caught.value.where.file, caught.value.where.line) == ("hooks/hook.py", 2 + body.count("\n"))


def test_a_hook_imports_its_siblings_and_they_are_in_its_key(tree, pool):
    tree.write("hooks/near.py", "NAME = 'one'\n")
    tree.write("kernels/near.py", "NAME = 'kernels'\n")
    text = """
from near import NAME

def inspect_stages_hook(self=None, stages=None, options=None, language=None, capability=None):
    if stages is None:
        return "k", "k"
    from near import NAME as late
    make = stages["ptx"]
    stages["ptx"] = lambda source, metadata: make(source, metadata) + f"// {NAME} {late}"
"""
    select(tree, text, ', stage="ptx"')
    assert tree.compile(pool).text("ptx").endswith("// one one")
    tree.write("hooks/near.py", "NAME = 'two'\n")
    assert tree.compile(pool).text("ptx").endswith("// two two")


DROPPING = """
def inspect_stages_hook(self=None, stages=None, options=None, language=None, capability=None):
    if stages is None:
        return "k", "k"
    make = stages["{stage}"]
    stages["{stage}"] = lambda source, metadata: change(make(source, metadata))
"""
CHANGES = {
    "llir": 'def change(text):\n    import re\n    return re.sub(r", i32 (inreg )?%2", "", text, 1)\n',
    "ptx": 'def change(text):\n    import re\n    return re.sub(r"\\s*\\.param \\.u32 \\w+,", "", text, 1)\n',
}  # fmt: skip


@pytest.mark.parametrize("stage", ["llir", "ptx"])
def test_a_hook_keeps_the_kernels_parameters(tree, pool, stage):
    select(tree, CHANGES[stage] + DROPPING.format(stage=stage), f', stage="{stage}"')
    with pytest.raises(CompileError) as caught:
        tree.compile(pool)
    assert caught.value.message == "it changed the kernel's parameters: 5 of them were to come, and it left 4"
    assert (caught.value.pass_name, caught.value.stage) == ("hook", stage)
