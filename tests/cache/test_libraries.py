"""A release's library is compiled on one machine and taken by another with the same compiler, and no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import STAND_IN, Tree, build_clean, read_release
from strict_server import StrictServer

COMPILER = """
#include <unistd.h>

int main(int count, char **words) {
    (void)count;
    words[0] = KEPT;
    return execvp(words[0], words);
}
"""


@pytest.fixture(scope="module")
def server():
    made = StrictServer()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Path:
    """A program, for of a script nobody can say what it runs. It keeps its objects, as that of all tests does."""
    folder = tmp_path_factory.mktemp("compiler")
    (folder / "cc.c").write_text(COMPILER)
    kept = os.environ["PRECAST_TEST_CC"]
    subprocess.run(["cc", f'-DKEPT="{kept}"', folder / "cc.c", "-o", folder / "cc"], check=True)
    return folder / "cc"


@pytest.fixture
def machine(compiler, tmp_path):
    def make(name: str) -> Tree:
        tree = Tree(tmp_path / name / "p", targets=("cuda:90",), more=STAND_IN, compiler=str(compiler))
        tree.add_kernel("k0")
        return tree

    return make


def reused(build) -> set[str]:
    assert build.code == 0, build.err
    assert not [event for event in build.events if event["event"] == "warning"]
    return {event["step"] for event in build.events if event["event"] == "ended" and event["reused"]}


def test_a_library_is_taken_where_the_compiler_is_the_same(server, compiler, machine, tmp_path):
    first = machine("first")
    assert reused(first.build("--cache", server.url)) == set()
    second = machine("second")
    before = server.requests.copy()
    taken = second.build("--cache", server.url)
    assert reused(taken) == {"library", *(step for step in taken.steps if "@" in step)}
    assert server.requests - before == {"GET ac": 2}
    assert read_release(second) == read_release(first)
    assert second.build().steps == []
    names = [path.relative_to(first.folder) for path in (first.folder / "build/objects").rglob("*.o")]
    assert names and all((first.folder / name).read_bytes() == (second.folder / name).read_bytes() for name in names)
    with open(compiler, "ab") as program:
        program.write(b"another")
    third = machine("third")
    assert "library" not in reused(third.build("--cache", server.url))
    assert read_release(third) == read_release(first)


@pytest.mark.all
def test_other_sources_are_compiled_and_scons_goes_on_from_what_was_taken(server, machine, tmp_path):
    first, second = machine("first"), machine("second")
    first.build("--cache", server.url)
    second.add_kernel("k1")
    assert "library" not in reused(second.build("--cache", server.url))
    (second.folder / "kernels/k1.toml").unlink()
    assert "library" in reused(second.build("--cache", server.url))  # as of another state of the sources
    assert read_release(second) == read_release(first)
    assert second.scons().steps == [] and second.build().steps == []
    assert read_release(second) == read_release(first) == build_clean(first, tmp_path / "clean")


@pytest.mark.all
def test_an_entry_that_is_no_library_is_not_used(machine):
    server = StrictServer()
    try:
        first = machine("first")
        first.build("--cache", server.url, "--no-cache-read")
        with server.behaving(lies=("ac",)):
            build = machine("second").build("--cache", server.url)
        assert build.code == 0 and "library" not in {e["step"] for e in build.events if e.get("reused")}
    finally:
        server.stop()
