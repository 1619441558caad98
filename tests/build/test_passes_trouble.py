"""Ways for a pass to go wrong: each is told as the pass's, at its line, and hurts no other unit."""

import dataclasses
import json

import pytest
from clocks import LIMIT_S, hear_steps, run_ahead
from plugin_tree import PluginTree

from precast.errors import CompileError
from precast.worker.pool import WorkerPool

BAD = """
from mlir import ir

class Bad(Pass):
    name, stage, at = "bad", "{stage}", {at}

    def run(self, module, context):
        kernel = find_kernel(module)
        block = kernel.regions[0].blocks[0]
{body}
"""
LINE = 15  # of a body's first line


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as pool:
        yield pool


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path, ("cuda:90", "cpu:x86-64-v3"))


def fail(tree, pool, body, stage="ttir", at="end()", target="cuda:90", **limits):
    tree.plugin(BAD.format(stage=stage, at=at, body="\n".join(f"        {line}" for line in body.splitlines())))
    tree.select(f'use = "bad"\nkernels = "scale"\ntargets = "{target}"')
    with pytest.raises(CompileError) as caught:
        pool.submit(dataclasses.replace(tree.job("scale", target), **limits)).result()
    assert (caught.value.pass_name, caught.value.stage) == ("bad", stage)
    return caught.value


PARAMETERS = "(!tt.ptr<f32>, !tt.ptr<f32>, i32)"
ADD = "block.add_argument(ir.IntegerType.get_signless(32), kernel.location)"
DROP = """
from mlir.dialects import arith
from precast.passes.ir import parse_attribute
with ir.InsertionPoint(block.operations[0]), kernel.location:
    block.arguments[2].replace_all_uses_with(arith.constant(block.arguments[2].type, 1))
block.erase_argument(2)
kernel.attributes["function_type"] = parse_attribute(kernel, "(!tt.ptr<f32>, !tt.ptr<f32>) -> ()")
kernel.attributes["arg_attrs"] = parse_attribute(kernel, "[{}, {}]")
"""
TWO = 'with ir.InsertionPoint(module.body):\n    kernel.clone().attributes["sym_name"] = ir.StringAttr.get("second")'
NAME = 'kernel.attributes["sym_name"] = ir.StringAttr.get("bad name")'
CHANGES = {
    "dropped": (DROP, f"it changed the kernel's parameters from {PARAMETERS} to (!tt.ptr<f32>, !tt.ptr<f32>)"),
    "added": (ADD, f"it changed the kernel's parameters from {PARAMETERS} to {PARAMETERS[:-1]}, i32)"),
    "erased": ("kernel.erase()", "it left no public function with a body: the kernel is gone"),
    "doubled": (TWO, "it left 2 public functions: scale_kernel, second; a kernel has one"),
    "named": (NAME, "it named the kernel `bad name`, which cannot be a symbol"),
}


@pytest.mark.parametrize("body, message", CHANGES.values(), ids=CHANGES)
def test_a_pass_keeps_the_kernels_parameters(tree, pool, body, message):
    assert fail(tree, pool, body).message == message


@pytest.mark.parametrize("target, stage, at", [
    ("cuda:90", "ttgir", "start()"), ("cuda:90", "llir", "start()"), ("cpu:x86-64-v3", "ttir", "start()"),
    ("cpu:x86-64-v3", "loops", "start()"), ("cpu:x86-64-v3", "loops", "end()"), ("cpu:x86-64-v3", "llir", "start()"),
])  # fmt: skip
def test_it_keeps_them_in_every_stage(tree, pool, target, stage, at):
    message = fail(tree, pool, "kernel.erase()", stage, at, target).message
    assert message == "it left no public function with a body: the kernel is gone"


def test_a_buffer_that_was_asked_for_is_no_change(tree, pool):
    tree.plugin(BAD.format(stage="ttir", at="end()", body="        context.add_buffer(module, 4)"))
    tree.select('use = "bad"\nkernels = "scale"\ntargets = "cuda:*"')
    assert tree.compile(pool).result.facts.buffers[0].bytes_per_program == 4


ENDS = {
    "exception": ('raise KeyError("missing")', "KeyError: 'missing'", 0),
    "exit": ("import sys\nsys.exit(0)", "it called `sys.exit(0)`", 1),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt", 0),
    "depth": ("def deeper(n):\n    return deeper(n + 1)\ndeeper(0)",
              "RecursionError: maximum recursion depth exceeded", 1),
    "memory": ("raise MemoryError", "it ran out of memory", 0),
    "process": ("import os\nos._exit(3)", "the pass ended the process with code 3", None),
    "crash": ("import ctypes\nctypes.string_at(0)", "the pass crashed (SIGSEGV)", 1),
    "abort": ("block.operations[3].operation.erase()", None, 0),
    "hang": ("import time\ntime.sleep(1000)", "the pass did not end within 900 s", None),
    "thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), name='late').start()",
               "it left a thread running: late", None),
    "returns": ("return {}", "TypeError: `run` returned a dict: return None or a frozen dataclass of findings", None),
}  # fmt: skip


@pytest.mark.parametrize("body, message, line", ENDS.values(), ids=ENDS)
def test_every_end_is_told_at_the_passes_line(tree, pool, monkeypatch, body, message, line):
    steps = hear_steps(monkeypatch)
    run_ahead(monkeypatch, lambda: "1000)" in body and any(step.pass_name for step in steps))
    error = fail(tree, pool, body, time_limit_s=LIMIT_S)
    assert message is None or error.message == message
    assert error.message.startswith(("the pass", "it ", "KeyError", "Keyboard", "Recursion", "TypeError"))
    if line is not None:
        assert error.where.file == "plugins/mine.py"
        assert error.where.line == LINE + line
    assert tree.compile(pool, "copy").result.facts.symbol == "copy_kernel"


def test_what_a_pass_printed_is_shown_with_its_failure(tree, pool):
    assert fail(tree, pool, "print('looking at', kernel.name)\nraise ValueError('odd')").hint == (
        "it printed: looking at tt.func"
    )


LEAK = """
import os, sys
os.environ["AT_THE_TOP"] = "1"

class Leak(Pass):
    name, stage, at = "leak", "ttir", end()

    def run(self, module, context):
        from triton import knobs

        knobs.nvidia.disable_ptxas_opt = True
        os.environ["DISABLE_PTXAS_OPT"] = "1"
        os.chdir("/")
        sys.setrecursionlimit(60)
"""


def test_what_a_pass_leaves_in_its_process_reaches_no_later_stage_and_no_other_unit(tree):
    with WorkerPool(1) as pool:
        plain = tree.compile(pool).result.image_digest, tree.compile(pool, "copy").result.image_digest
    tree.plugin(LEAK)
    tree.select('use = "leak"\nkernels = "scale"\ntargets = "cuda:*"')
    with WorkerPool(1) as pool:
        leaked = tree.compile(pool).result.image_digest, tree.compile(pool, "copy").result.image_digest
    assert leaked == plain


SEEN = """
import os, sys
from triton import knobs

@dataclass(frozen=True)
class Seen:
    text: str

class Look(Pass):
    name, stage, at = "look", "ttir", end()

    def run(self, module, context):
        variables = [os.environ.get(name) for name in ("AT_THE_TOP", "DISABLE_PTXAS_OPT")]
        return Seen(f"{variables} {knobs.nvidia.disable_ptxas_opt} {sys.getrecursionlimit() > 60} {os.getcwd() != '/'}")
"""


def test_passes_of_one_unit_do_not_see_what_others_leave(tree, pool):
    tree.plugin(LEAK)
    tree.plugin(SEEN, "plugins/look.py")
    tree.select('use = "leak"\ntargets = "cuda:*"', 'use = "look"\ntargets = "cuda:*"')
    found = json.loads(tree.compile(pool).result.findings[0].data)
    assert found == {"text": "[None, None] False True True"}
