"""Releases for another machine, run by an emulator, and for an older glibc, by the compiler of `ziglang`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tree import Tree

from precast.release.contents import find_glibc_floor

EMULATOR = shutil.which("qemu-aarch64")
COMPILER = shutil.which("aarch64-linux-gnu-gcc")
LIBRARIES = Path("/usr/aarch64-linux-gnu")
SCRIPT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
env.Precast({arguments})
"""
PROGRAM = """
#include <stdio.h>
#include "demo.h"

int main(void) {
    _Alignas(16) static float x[300], out[300];
    demo *k;
    for (int i = 0; i < 300; i++)
        x[i] = (float)i, out[i] = -1;
    if (demo_open(NULL, &k) || demo_half(k, PRECAST_CPU, (demo_half_axes){.BLOCK = 128}, out, x, 299))
        return puts(demo_error()), 1;
    for (int i = 0; i < 300; i++)
        if (out[i] != (i < 299 ? x[i] / 2 : -1))
            return printf("out[%d] is %f\\n", i, out[i]), 2;
    demo_close(k);
    return puts("right"), 0;
}
"""


def make_project(folder, target, arguments=""):
    tree = Tree(folder, targets=(target,))
    tree.write("SConstruct", SCRIPT.format(arguments=arguments))
    tree.add_kernel("half", "value * 0.5")
    return tree


@pytest.mark.all
@pytest.mark.skipif(not EMULATOR or not COMPILER, reason="it takes qemu-user and gcc-aarch64-linux-gnu of Debian")
def test_a_release_for_aarch64_runs(tmp_path):
    tree = make_project(tmp_path / "project", "cpu:aarch64")
    release = tree.build().release
    for library in (release / "lib").glob("*.so"):
        assert int.from_bytes(library.read_bytes()[18:20], "little") == 183  # ELF's e_machine of AArch64
    (tmp_path / "main.c").write_text(PROGRAM)
    words = [tmp_path / "main.c", f"-I{release}/include", f"-L{release}/lib", "-ldemo", f"-Wl,-rpath,{release}/lib"]
    subprocess.run([COMPILER, *words, "-o", tmp_path / "main"], check=True)
    ran = subprocess.run([EMULATOR, "-L", LIBRARIES, tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "right\n"), ran.stdout + ran.stderr
    packed = subprocess.run([sys.executable, "-m", "precast", "package", release, "--out", tmp_path / "dist"],
                            capture_output=True, text=True, check=True)  # fmt: skip
    assert [Path(line).suffix for line in packed.stdout.splitlines()] == [".zst"]
    assert tree.build().summary["built"] == 0


@pytest.mark.all
def test_libraries_for_an_older_glibc(tmp_path):
    pytest.importorskip("ziglang", reason="it takes the extra `zig`")
    tree = make_project(tmp_path, "cpu:x86-64-v3", 'glibc="2.17"')
    release = tree.build().release
    libraries = sorted((release / "lib").glob("*.so"))
    assert len(libraries) == 2
    assert tuple(map(int, find_glibc_floor(libraries).split("."))) <= (2, 17)
    call = (
        "import demo, numpy; x = numpy.ones(300, 'f4'); out = x * 0; demo.half(out, x, 300); print(set(out.tolist()))"
    )
    environment = {"PYTHONPATH": str(release / "python")}
    ran = subprocess.run([sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "{0.5}\n"
