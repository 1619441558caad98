"""Releases for another machine and an older glibc, by the compiler of `ziglang`; the former run by an emulator."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tree import Tree

EMULATOR = shutil.which("qemu-aarch64")
LIBRARIES = Path("/usr/aarch64-linux-gnu")
SCRIPT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
env.Precast(glibc="2.17")
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


def compile_c(words, target, caches):
    environment = {"ZIG_LOCAL_CACHE_DIR": str(caches), "ZIG_GLOBAL_CACHE_DIR": str(caches)}
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *map(str, words)]
    subprocess.run(command, env=environment, check=True)


def make_project(folder, target):
    tree = Tree(folder, targets=(target,))
    tree.write("SConstruct", SCRIPT)
    tree.add_kernel("half", "value * 0.5")
    return tree


def machine_of(library):
    return int.from_bytes(library.read_bytes()[18:20], "little")


@pytest.mark.all
@pytest.mark.skipif(not EMULATOR or not LIBRARIES.is_dir(), reason="it takes qemu-user and libc6-arm64-cross of Debian")
def test_a_release_for_aarch64_runs(tmp_path):
    tree = make_project(tmp_path / "project", "cpu:aarch64")
    release = tree.build().release
    assert {machine_of(each) for each in (release / "lib").glob("*.so")} == {183}
    (tmp_path / "main.c").write_text(PROGRAM)
    words = [tmp_path / "main.c", f"-I{release}/include", f"-L{release}/lib", "-ldemo", f"-Wl,-rpath,{release}/lib"]
    compile_c([*words, "-o", tmp_path / "main"], "aarch64-linux-gnu.2.17", tmp_path / "zig")
    ran = subprocess.run([EMULATOR, "-L", LIBRARIES, tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "right\n"), ran.stdout + ran.stderr
    packed = subprocess.run([sys.executable, "-m", "precast", "package", release, "--out", tmp_path / "dist"],
                            capture_output=True, text=True, check=True)  # fmt: skip
    assert [Path(line).suffix for line in packed.stdout.splitlines()] == [".zst"]
    assert tree.build().summary["built"] == 0


@pytest.mark.all
@pytest.mark.parametrize("target", ["cpu:aarch64", "cpu:x86-64-v3"])
def test_the_manifest_says_the_lowest_glibc(target, tmp_path):
    release = make_project(tmp_path, target).build().release
    manifest = json.loads((release / "manifest.json").read_text())
    assert tuple(map(int, manifest["glibc"].split("."))) <= (2, 17)


@pytest.mark.all
def test_a_glibc_that_is_none_is_refused(tmp_path):
    tree = make_project(tmp_path, "cpu:x86-64-v3")
    tree.edit("SConstruct", "2.17", "musl")
    said = tree.build()
    assert said.code == 1
    assert said.err.endswith('error: `musl` is no version of glibc\nhint: write `env.Precast(glibc="2.17")`\n')
