"""Which C compiler makes a release's libraries."""

import platform
from pathlib import Path

import pytest

from precast.errors import ToolError
from precast.graph import compiler

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
