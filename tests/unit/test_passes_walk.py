"""`walk` gives every op once, whatever is erased meanwhile. Needs the MLIR bindings."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mlir.ir", reason="the MLIR bindings are not installed: `pip install precast[cpu]`")

from mlir import ir

from precast.passes.ir import walk

TEXT = """
"x.a"() : () -> ()
"x.loop"() ({
  "x.b"() : () -> ()
  "x.inner"() ({ "x.c"() : () -> () }) : () -> ()
  "x.end"() : () -> ()
}) : () -> ()
"x.d"() : () -> ()
"""


def erase_while_walking(at: str, erased: str) -> tuple[list[str], list[str]]:
    """The ops that a walk gives when `erased` goes at the op `at`, and those that are left."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(TEXT, context)
    seen = []
    for op in walk(module):
        seen.append(op.name)
        if op.name == at:
            victim = next(each for each in walk(module) if each.name == erased)
            del op
            victim.erase()
    return seen, [op.name for op in walk(module)]


EVERY = ["x.a", "x.loop", "x.b", "x.inner", "x.c", "x.end", "x.d"]
LESS = ["x.a", "x.loop", "x.b", "x.end", "x.d"]


CASES = [
    ("x.b", "x.b", EVERY, ["x.a", "x.loop", "x.inner", "x.c", "x.end", "x.d"]),
    ("x.loop", "x.loop", ["x.a", "x.loop", "x.d"], ["x.a", "x.d"]),
    ("x.inner", "x.inner", ["x.a", "x.loop", "x.b", "x.inner", "x.end", "x.d"], LESS),
    ("x.c", "x.loop", ["x.a", "x.loop", "x.b", "x.inner", "x.c", "x.d"], ["x.a", "x.d"]),
    ("x.a", "x.d", EVERY[:-1], EVERY[:-1]),
    ("x.a", "x.inner", LESS, LESS),
]


@pytest.mark.parametrize("at, erased, seen, left", CASES)
def test_what_was_erased_is_not_given(at, erased, seen, left):
    assert erase_while_walking(at, erased) == (seen, left)


def test_what_was_erased_is_not_looked_at():
    """With an allocator that overwrites at once what is given back to it."""
    program = "from test_passes_walk import *; assert all(erase_while_walking(*case[:2]) for case in CASES)"
    tunables = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
    environment = {**os.environ, "GLIBC_TUNABLES": tunables, "PYTHONPATH": os.path.dirname(__file__)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
