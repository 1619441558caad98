"""Which C compiler makes a release's libraries, and what it is."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from precast.errors import ToolError
from precast.graph import compiler
from precast.graph.compiler_files import find_compiler_files
from precast.launch.flags import COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES
from precast.launch.sources import system_headers

OTHER = "aarch64" if platform.machine() == "x86_64" else "x86_64"


class Environment(dict):
    """What is asked of SCons's environment."""

    def __init__(self, c_compiler, *installed):
        super().__init__(CC=c_compiler, ENV={})
        self.installed = installed

    def WhereIs(self, program):
        return program if program in self.installed else None


def chosen(env, machine, glibc=""):
    compiler.choose_compiler(env, machine, glibc, Path("project"))
    return env["CC"]


def test_this_machines_compiler_is_left_alone():
    assert chosen(Environment("gcc"), platform.machine()) == "gcc"


def test_a_build_scripts_own_compiler_is_left_alone():
    assert chosen(Environment("my-cross-gcc"), OTHER) == "my-cross-gcc"


def test_another_machines_compiler_has_its_usual_name():
    name = f"{OTHER}-linux-gnu-gcc"
    assert chosen(Environment("gcc", name), OTHER) == name


def test_without_a_compiler_for_another_machine_both_ways_to_one_are_told():
    with pytest.raises(ToolError) as caught:
        chosen(Environment("gcc"), OTHER)
    assert caught.value.message == f"there is no C compiler for {OTHER}: `{OTHER}-linux-gnu-gcc` is not here"
    assert caught.value.hint is not None and 'env.Precast(glibc="2.17")' in caught.value.hint


def test_a_glibc_is_for_the_package_that_has_every_one(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find_zig", lambda: tmp_path / "zig")
    env = Environment("gcc")
    assert chosen(env, "aarch64", "2.17") == f"{tmp_path}/zig cc -target aarch64-linux-gnu.2.17"
    assert env["ENV"]["ZIG_GLOBAL_CACHE_DIR"].endswith("project/build/zig")
    with pytest.raises(ToolError, match="`musl` is no version of glibc"):
        chosen(env, "aarch64", "musl")


def test_without_that_package_it_is_named(monkeypatch):
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(ToolError) as caught:
        chosen(Environment("gcc"), "aarch64", "2.17")
    assert caught.value.hint == "install Precast's extra `zig`"


def files_of(folder, *flags, cc="cc", headers=("stdio.h",), link=LINK_FLAGS):
    libraries = [f"-l{each}" for each in LINK_LIBRARIES]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    return find_compiler_files([cc, *flags, *COMPILE_FLAGS], [cc, *link, *libraries], headers, environment, folder)


def test_a_compiler_is_its_programs_headers_and_what_it_links(tmp_path):
    found = files_of(tmp_path, headers=system_headers())
    names = {Path(path).name for path in found.paths}
    assert {"stdio.h", "dlfcn.h", "pthread.h"} <= names  # as the runtime includes them, and what these include
    assert any(name.startswith("libc.so") for name in names) and any(name.startswith("crti") for name in names)
    assert any(name.endswith(("-as", "as")) for name in names) and any("ld" in name for name in names)
    assert all(os.path.isfile(path) and not path.startswith(str(tmp_path)) for path in found.paths)
    assert "-O2" in found.said and str(tmp_path) not in found.said
    assert files_of(tmp_path, headers=system_headers()) == found


def program_of(compiler, name):
    """Where a program lies that a compiler runs; None where there is none."""
    said = subprocess.run([compiler, f"-print-prog-name={name}"], capture_output=True, text=True, check=True)
    return shutil.which(said.stdout.strip())


def test_libraries_that_its_programs_are_loaded_with_count(tmp_path):
    found, expected = files_of(tmp_path), set()
    for program in filter(None, (program_of("cc", name) for name in ("cc1", "as"))):
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        expected.update(os.path.realpath(word) for word in said.split() if word.startswith("/"))
    assert expected <= set(found.paths)


@pytest.mark.parametrize("name", ["gold", "lld", "mold"])
def test_a_linker_that_flags_choose_counts(tmp_path, name):
    program = program_of("cc", f"ld.{name}")
    if program is None:
        pytest.skip(f"it takes the linker {name}")
    found = files_of(tmp_path, link=(*LINK_FLAGS, f"-fuse-ld={name}"))
    assert found is None or os.path.realpath(program) in found.paths


def test_headers_that_flags_bring_count(tmp_path):
    extra = tmp_path / "include" / "extra.h"
    extra.parent.mkdir()
    extra.write_text("#define EXTRA 1\n")
    work = tmp_path / "work"
    work.mkdir()
    found = files_of(work, "-include", str(extra))
    assert str(extra) in found.paths and str(extra) not in files_of(work).paths
    assert "-DX=1" in files_of(work, "-DX=1").said.replace("'", "").replace("-D X", "-DX")


def test_a_compiler_that_cannot_be_told_is_none(tmp_path):
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\nexec cc "$@"\n')
    script.chmod(0o755)
    assert files_of(tmp_path, cc=str(script)) is None
    assert files_of(tmp_path, cc=str(tmp_path / "absent")) is None
    assert files_of(tmp_path, headers=("there/is/no/such.h",)) is None
    assert files_of(tmp_path, link=("-shared", "-lthere_is_no_such")) is None
