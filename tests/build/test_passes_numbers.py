"""Passes in a release that runs: device buffers read back from Python and C, checks that report, chosen fast math."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from plugin_tree import PluginTree
from test_passes_plugins import SOFTSIGN

from precast.release.manifest import read_manifest
from precast.worker.pool import WorkerPool

PLUGINS = Path(__file__).parents[2] / "plugins"
NUMBER = """
from mlir import ir
from mlir.dialects import arith

class Number(Pass):
    name, stage, at = "number", "ttir", end()

    def run(self, module, context):
        pointer = context.add_buffer(module, 12)
        finish = next(op for op in walk(module) if op.name == "tt.return")
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint(finish), finish.location:
            for axis in range(3):
                place = arith.constant(i32, axis)
                own = ir.Operation.create("tt.addptr", [pointer.type], [pointer, place]).results[0]
                attributes = {"axis": ir.IntegerAttr.get(i32, axis)}
                program = ir.Operation.create("tt.get_program_id", [i32], [], attributes).results[0]
                ir.Operation.create("tt.store", [], [own, program])
"""
LENGTHS = '"x=n, out=n"'
SELECTIONS = (
    'use = "number"\nkernels = "copy"',
    f'use = "bounds-check"\nkernels = ["right", "wrong"]\noptions = {{ lengths = {LENGTHS}, stop = false }}',
    f'use = "bounds-check"\nkernels = "stops"\noptions = {{ lengths = {LENGTHS} }}',
    'use = "fast-math-cpu"\nkernels = "fast"',
    'use = "softsign"\nkernels = "soft"',
)
PYTHON = """
import sys
import numpy
import demo

kernel, n, grid = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
x = numpy.linspace(1, 2, 1024, dtype=numpy.float32)
out = numpy.full_like(x, -1)

def read(unit, name, data, each, programs):
    print(unit, name, each, programs, numpy.frombuffer(data, numpy.int32).tolist())

demo.set_buffer_reader(read)
try:
    launch = getattr(demo, kernel)
    (launch[grid] if grid else launch)(out, x, n)
    numpy.save(sys.argv[4], out)
except demo.LaunchError as error:
    print(error)
"""
C = """
#include <stdio.h>
#include "demo.h"

static float x[1024], out[1024];

static void read_counts(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                        int64_t programs) {
    const int *counts = data;
    printf("%s %s %zu %d:", unit, pass_name, each, (int)programs);
    for (int i = 0; i < programs * (int)each / 4; i++) printf(" %d", counts[i]);
    *(int *)context += 1;
}

int main(void) {
    demo *k;
    int calls = 0;
    if (demo_open(NULL, &k) || demo_set_buffer_reader(k, read_counts, &calls)) return 1;
    if (demo_wrong(k, PRECAST_CPU, (demo_wrong_axes){.BLOCK = 128}, out, x, 300)) return puts(demo_error()), 1;
    printf(" (%d call)\\n", calls);
    demo_close(k);
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Kernels, right and with an index that is one too large, each with its pass."""
    tree = PluginTree(tmp_path_factory.mktemp("numbers") / "project", ("cpu:x86-64-v2",), ("kernels", "plugins"))
    for name in ("right", "wrong", "stops"):
        tree.add_kernel(name, "value + 1")
    for name in ("wrong", "stops"):
        tree.edit(f"kernels/{name}.py", "offsets < n", "offsets <= n")
    for name in ("fast", "exact"):
        tree.add_kernel(name, "value / 3.0")
    tree.write("plugins/softsign.py", SOFTSIGN)
    tree.add_kernel("soft", "softsign(value)", "from softsign import softsign")
    tree.plugin(NUMBER)
    for name in ("bounds_check", "fast_math"):
        shutil.copy(PLUGINS / f"{name}.py", tree.folder / "plugins")
    tree.select(*SELECTIONS)
    return tree


@pytest.fixture(scope="module")
def release(tree):
    return tree.build().release


@pytest.fixture
def launch(release, tmp_path):
    """Launches a kernel from Python: what the reader was given or the error was, and the output."""

    def run(kernel, n, grid=None):
        environment = {**os.environ, "PYTHONPATH": str(release / "python")}
        command = [sys.executable, "-c", PYTHON, kernel, str(n), str(grid), str(tmp_path / "out.npy")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout, numpy.load(tmp_path / "out.npy") if (tmp_path / "out.npy").exists() else None

    return run


X = numpy.linspace(1, 2, 1024, dtype=numpy.float32)


def test_each_program_of_a_grid_has_its_own_bytes(launch):
    said, _ = launch("copy", 100, (3, 2, 2))
    programs = [number for z in range(2) for y in range(2) for x in range(3) for number in (x, y, z)]
    assert said == f"copy:dtype=fp32,BLOCK=128@cpu:x86-64-v2 number 12 12 {programs}\n"


def test_a_right_kernel_reports_nothing(launch):
    said, out = launch("right", 300)
    assert said == f"right:dtype=fp32,BLOCK=128@cpu:x86-64-v2 bounds-check 8 3 {[0] * 6}\n"
    assert (out[:300] == X[:300] + 1).all() and (out[300:] == -1).all()


def test_an_index_out_of_bounds_is_counted_by_program_and_access_and_not_written(launch):
    said, out = launch("wrong", 300)
    assert said.endswith(f" 8 3 {[0, 0, 0, 0, 1, 1]}\n")
    assert (out[:300] == X[:300] + 1).all() and (out[300:] == -1).all()


def test_or_stops_the_program(launch):
    said, out = launch("stops", 300)
    told = "a device assertion failed in stops:dtype=fp32,BLOCK=128@cpu:x86-64-v2"
    assert said == f"{told}: load outside of its buffer, in program (2, 0, 0)\n" and out is None


def test_a_c_program_reads_the_buffer(release, tmp_path):
    (tmp_path / "use.c").write_text(C)
    flags = [f"-I{release}/include", f"-L{release}/lib", "-ldemo", f"-Wl,-rpath,{release}/lib"]
    subprocess.run(["cc", "use.c", "-o", "use", *flags], cwd=tmp_path, check=True)
    done = subprocess.run([str(tmp_path / "use")], capture_output=True, text=True)
    assert done.stdout == "wrong:dtype=fp32,BLOCK=128@cpu:x86-64-v2 bounds-check 8 3: 0 0 0 0 1 1 (1 call)\n"


def test_the_manifest_lists_buffers_and_what_is_checked(release):
    units = {unit.unit.partition(":")[0]: unit for unit in read_manifest(release).units}
    buffers = {name: [(each.pass_name, each.bytes_per_program) for each in units[name].facts.buffers] for name in units}
    assert buffers["copy"] == [("number", 12)] and buffers["wrong"] == [("bounds-check", 8)]
    assert buffers["stops"] == buffers["fast"] == []
    assert [found.data for found in units["stops"].findings] == ['{"accesses":["load x","store out"]}']


def test_fast_math_changes_its_kernel_by_a_rounding_and_no_other(tree, release, launch):
    _, exact = launch("exact", 1024)
    _, fast = launch("fast", 1024)
    assert (exact == X / numpy.float32(3)).all()
    assert (fast != exact).any() and numpy.allclose(fast, exact, rtol=2e-7, atol=0)
    images = {unit.unit.partition(":")[0]: unit.digest for unit in read_manifest(release).units}
    tree.select()
    with WorkerPool(1) as pool:
        assert tree.compile(pool, "exact", "cpu:*").result.image_digest == images["exact"]
        assert tree.compile(pool, "fast", "cpu:*").result.image_digest != images["fast"]


def test_a_declared_op_computes_what_it_says(launch):
    _, soft = launch("soft", 1024)
    assert numpy.allclose(soft, X / (1 + X), rtol=1e-6, atol=0)


@pytest.mark.all
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_on_gpus_the_buffer_is_a_parameter(target, tmp_path):
    tree = PluginTree(tmp_path, (target,))
    shutil.copytree(PLUGINS, tree.folder / "plugins", ignore=shutil.ignore_patterns("__pycache__"))
    tree.select(f'use = "bounds-check"\noptions = {{ lengths = {LENGTHS}, stop = false }}')
    with WorkerPool(1) as pool:
        found = tree.compile(pool, target=target)
    assert [each.kind for each in found.result.facts.parameters].index("buffer") == 3
    assert found.text("ttgir").count("tt.atomic_rmw add") == 2
