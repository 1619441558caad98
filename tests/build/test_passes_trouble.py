"""Ways for a pass to go wrong: each is told as the pass's, at its line, and hurts no other unit."""

import dataclasses
import json

import pytest
from clocks import LIMIT_S, hear_steps, run_ahead
from plugin_tree import HEAD, PluginTree

from precast.errors import CompileError
from precast.worker.pool import WorkerPool

BAD = """
class Bad{number}(Pass):
    name, stage, at = "{name}", "{stage}", {at}

    def run(self, module, context):
        kernel = find_kernel(module)
        block = kernel.regions[0].blocks[0]
{body}
"""
LINE = 8  # of a body's first line, in its class


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
STAGES = {
    "ttgir": ("cuda:90", "ttgir", "start()"),
    "cuda-llir": ("cuda:90", "llir", "start()"),
    "cpu-ttir": ("cpu:x86-64-v3", "ttir", "start()"),
    "loops": ("cpu:x86-64-v3", "loops", "start()"),
    "loops-end": ("cpu:x86-64-v3", "loops", "end()"),
    "cpu-llir": ("cpu:x86-64-v3", "llir", "start()"),
}
PLACES = {name: (stage, at) for name, (_, stage, at) in STAGES.items()}
BODIES = {
    "fine": "pass",
    **{name: body for name, (body, _) in CHANGES.items()},
    **{name: body for name, (body, _, _) in ENDS.items()},
    **dict.fromkeys(STAGES, "kernel.erase()"),
    "prints": "print('looking at', kernel.name)\nraise ValueError('odd')",
    "buffer": "context.add_buffer(module, 4)",
}


def indented(body):
    return "\n".join(f"        {line}" for line in body.splitlines())


def class_of(number, name):
    stage, at = PLACES.get(name, ("ttir", "end()"))
    return BAD.format(number=number, name=name, stage=stage, at=at, body=indented(BODIES[name]))


CLASSES = {name: class_of(number, name) for number, name in enumerate(BODIES)}
TEXT = "from mlir import ir\n" + "".join(CLASSES.values())


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path, ("cuda:90", "cpu:x86-64-v3"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A project with all of the passes in one file, so that a worker which outlives one of them serves the next."""
    tree = PluginTree(tmp_path_factory.mktemp("shared") / "p", ("cuda:90", "cpu:x86-64-v3"))
    tree.plugin(TEXT)
    return tree


def select(tree, name, target="cuda:90"):
    """The pass for one kernel, and for the other one that does nothing."""
    tree.select(f'use = "{name}"\nkernels = "scale"\ntargets = "{target}"', 'use = "fine"\nkernels = "copy"')


def fail(tree, pool, name, target="cuda:90", **limits):
    select(tree, name, target)
    with pytest.raises(CompileError) as caught:
        pool.submit(dataclasses.replace(tree.job("scale", target), **limits)).result()
    assert (caught.value.pass_name, caught.value.stage) == (name, PLACES.get(name, ("ttir",))[0])
    return caught.value


def first_line(name):
    """Where the body of a pass begins in the file."""
    text = HEAD.lstrip("\n") + TEXT
    return text[: text.index(CLASSES[name])].count("\n") + LINE


@pytest.mark.parametrize("name", CHANGES)
def test_a_pass_keeps_the_kernels_parameters(shared, pool, name):
    assert fail(shared, pool, name).message == CHANGES[name][1]


@pytest.mark.parametrize("name", STAGES)
def test_it_keeps_them_in_every_stage(shared, pool, name):
    message = fail(shared, pool, name, STAGES[name][0]).message
    assert message == "it left no public function with a body: the kernel is gone"


def test_a_buffer_that_was_asked_for_is_no_change(shared, pool):
    select(shared, "buffer")
    assert shared.compile(pool).result.facts.buffers[0].bytes_per_program == 4


@pytest.mark.parametrize("name", ENDS)
def test_every_end_is_told_at_the_passes_line(shared, pool, monkeypatch, name):
    _, message, line = ENDS[name]
    steps = hear_steps(monkeypatch)
    run_ahead(monkeypatch, lambda: name == "hang" and any(step.pass_name for step in steps))
    error = fail(shared, pool, name, time_limit_s=LIMIT_S)
    assert message is None or error.message == message
    assert error.message.startswith(("the pass", "it ", "KeyError", "Keyboard", "Recursion", "TypeError"))
    if line is not None:
        assert error.where.file == "plugins/mine.py"
        assert error.where.line == first_line(name) + line
    assert shared.compile(pool, "copy").result.facts.symbol == "copy_kernel"


def test_what_a_pass_printed_is_shown_with_its_failure(shared, pool):
    assert fail(shared, pool, "prints").hint == "it printed: looking at tt.func"


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
