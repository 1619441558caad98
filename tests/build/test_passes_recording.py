"""Recording and replaying Triton's stages: nothing global changes, and what is replayed is what Triton does."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mlir.ir  # noqa: F401  (before anything that might load a native plugin)
import pytest
from triton._C import libtriton
from triton.backends.compiler import Language
from triton.backends.nvidia import compiler as nvidia_compiler

from precast.engines.triton import v3_9
from precast.engines.triton.listings import list_target
from precast.engines.triton.opt_passes import Shelf, choose_steps
from precast.engines.triton.pipeline import builtin_names, find_builtin, list_pipeline, resolve_arguments
from precast.engines.triton.recording import record_backend
from precast.engines.triton.reproducer import parse_passes
from precast.errors import PassError
from precast.passes.pipeline import Step
from precast.target import CUDA_ARCHITECTURES, HIP_ARCHITECTURES, Target

TARGETS = [Target("cuda", arch) for arch in CUDA_ARCHITECTURES] + [Target("hip", arch) for arch in HIP_ARCHITECTURES]


@pytest.fixture(autouse=True)
def fixed_environment(monkeypatch):
    """What a worker's environment says of Triton."""
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def test_listing_changes_nothing_of_tritons_own():
    before = {name: id(value) for name, value in vars(nvidia_compiler).items()}
    methods = {name: id(value) for name, value in vars(nvidia_compiler.CUDABackend).items()}
    list_target(Target("cuda", "90"))
    assert {name: id(value) for name, value in vars(nvidia_compiler).items()} == before
    assert {name: id(value) for name, value in vars(nvidia_compiler.CUDABackend).items()} == methods


def test_a_recorded_backend_answers_as_the_real_one():
    backend = v3_9.make_backend(Target("cuda", "90"))
    rebuilt = record_backend(backend, None)
    assert rebuilt.hash() == backend.hash()
    assert rebuilt.parse_options({"num_warps": 8}) == backend.parse_options({"num_warps": 8})
    assert isinstance(rebuilt, type(backend)) and rebuilt.target == backend.target


def test_listings_on_many_threads_do_not_mix():
    expected = {target: list_target(target) for target in TARGETS[:8]}
    with ThreadPoolExecutor(8) as pool:
        for target, listed in zip(list(expected) * 4, pool.map(list_target, list(expected) * 4), strict=True):
            assert listed == expected[target]


def test_options_stand_by_name_and_resolve_to_their_values():
    backend = v3_9.make_backend(Target("cuda", "90"))
    options = v3_9.parse_options(backend, {"num_warps": 8, "num_stages": 5})
    steps = {step.op: step for step in list_pipeline(backend, options, Language.TRITON, "ttgir").steps}
    assert steps["ttir.convert_to_ttgpuir"].args == ("cuda:90", "$num_warps", 32, "$num_ctas")
    assert resolve_arguments(steps["ttgpuir.pipeline"], options) == (5, False)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_reproducers_pipeline_of_every_stage_maps_back_to_its_steps(target):
    options = v3_9.parse_options(v3_9.make_backend(target), {})
    for pipeline in list_target(target):
        manager = libtriton.ir.pass_manager(libtriton.ir.context())
        expected = []
        for step in pipeline.steps:
            if step.op != "instrument":
                args = resolve_arguments(step, options)
                find_builtin(step.op)(manager, *args)
                expected.append((step.op, args))
        found = [(step.op, step.args) for step in parse_passes(manager.get_pipeline_str())]
        assert [same_pass(*each) for each in found] == [same_pass(*each) for each in expected]


def same_pass(op, args):
    """How MLIR prints the pass: several names of ours may be one pass of MLIR's."""
    manager = libtriton.ir.pass_manager(libtriton.ir.context())
    find_builtin(op)(manager, *args)
    return manager.get_pipeline_str()


def test_a_reproducers_unknown_pass_and_odd_option_are_errors():
    with pytest.raises(PassError, match="Triton offers no pass `tritongpu-coalesced`") as caught:
        parse_passes("builtin.module(tritongpu-coalesced)")
    assert caught.value.hint == "did you mean `tritongpu-coalesce`?"
    with pytest.raises(PassError, match="has options that Triton's own pass cannot be given"):
        parse_passes("builtin.module(cse{depth=3})")


def test_every_builtin_name_finds_its_function():
    for name in builtin_names():
        assert callable(find_builtin(name))
    with pytest.raises(LookupError):
        find_builtin("ttir.loop_unrol")
    with pytest.raises(PassError, match=r"Triton offers no pass `ttir\.loop_unrol`"):
        choose_steps((Step("ttir.loop_unrol"),), Shelf((), (), Path()))


HOOK = """
import importlib.util, inspect, re, textwrap

def inspect_stages_hook(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return "key", "hash"
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("changed", loader=None))
    text = textwrap.dedent(inspect.getsource(self.make_ttir))
    text = re.sub(r"passes\\.(?!common.add_symbol_dce)[\\w.]+\\(pm\\)", "pass", text)
    exec("from triton._C.libtriton import ir, passes, amd\\n" + text, module.__dict__)
    arguments = (options,) if capability is None else (options, capability)
    stages["ttir"] = lambda source, metadata: module.make_ttir(source, metadata, *arguments)
"""

UNDER_TRITON = """
import sys
from pathlib import Path
sys.path += sys.argv[2:]
import triton
from triton import knobs
from precast.engines.triton import v3_9
from precast.engines.triton.opt import Subject, open_workbench
from precast.target import Target
from hook import inspect_stages_hook
from scale import scale_kernel
knobs.runtime.add_stages_inspection_hook = inspect_stages_hook
target = Target.parse(sys.argv[1])
signature = {"out": "*fp32", "x": "*fp32", "n": "i32", "BLOCK": "constexpr"}
attributes = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
source = v3_9.make_source(scale_kernel, signature, {"BLOCK": 128}, attributes)
text = triton.compile(source, target=v3_9.make_gpu_target(target)).asm["ttir"]
print(open_workbench(Subject(text, "x.ttir", "ttir", target)).print())
"""


@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.all)])
def test_a_hook_file_gives_the_ir_that_it_gives_under_triton(tmp_path, target):
    from plugin_tree import PluginTree

    from precast.worker.pool import WorkerPool

    tree = PluginTree(tmp_path / "project", (target,))
    tree.write("hooks/hook.py", HOOK)
    tree.plugin('hook = HookFile("hook", "hooks/hook.py")\n')
    with WorkerPool(1) as pool:
        plain = tree.compile(pool, target=target).text("ttir")
        tree.select("hook")
        ours = tree.compile(pool, target=target).text("ttir")
    folders = [str(tree.folder / name) for name in ("hooks", "kernels")]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", UNDER_TRITON, target, *folders]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert ours.strip() == done.stdout.strip() != plain.strip()
