"""Native libraries of plugins: what they print, how they end a process, what is loaded with them."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest
from plugin_tree import PluginTree
from test_passes_library import SOURCE

from precast.errors import PluginError
from precast.passes.registry import is_fresh, list_probes
from precast.worker.pool import WorkerPool
from precast.worker.walk import plan_stage

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")

LIBRARY = SOURCE.replace("{API,", "{2,").replace(", TRITON}", ', "3.9.0"}')
START = "\n#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void start(void) {{ {body} }}\n"


@pytest.fixture
def tree(tmp_path):
    tree = PluginTree(tmp_path, ("cuda:90",))
    tree.plugin('nothing = NativePass("libmine.so", "nothing")\n')
    tree.select('use = "nothing"\nkernels = "scale"')
    return tree


def compile_c(tree: PluginTree, text: str, name: str = "libmine.so", *words: str) -> None:
    tree.write("native/mine.c", text)
    command = ["cc", "-shared", "-fPIC", "-w", "native/mine.c", "-o", name, *words]
    subprocess.run(command, cwd=tree.folder, check=True, timeout=600)


def test_what_a_library_prints_is_nobodys_business(tree):
    compile_c(
        tree, LIBRARY + START.format(body='puts("{\\"a banner\\": 1"); fflush(stdout); fputs("and more", stderr);')
    )
    with WorkerPool(1) as pool:
        assert tree.compile(pool).ran == ["nothing"]


ENDS = {
    "exits": (START.format(body='puts("no licence"); fflush(stdout); _exit(7);'),
              "ends the process that loads it (exit code 7)"),
    "aborts": (START.format(body="__builtin_trap();"), "ends the process that loads it (SIG"),
    "no table": ("", "says that it has 1 passes, and they are not there"),
}  # fmt: skip


@pytest.mark.parametrize("more, message", ENDS.values(), ids=ENDS)
def test_a_library_that_cannot_be_loaded_is_told_in_a_sentence(tree, more, message):
    text = LIBRARY if more else LIBRARY.replace('"1", passes, 1', '"1", 0, 1')
    compile_c(tree, text + more)
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert f"plugin library `libmine.so` {message}" in caught.value.message
    assert (caught.value.where.line, "licence" in (caught.value.hint or "")) == (6, "licence" in more)


def test_libraries_that_are_loaded_with_one_are_in_its_key(tree):
    compile_c(tree, "int helper(void) { return 1; }", "libhelper.so")
    needs = ["-L.", "-lhelper", "-Wl,-rpath,$ORIGIN"]
    compile_c(tree, LIBRARY + "int helper(void); int used(void) { return helper(); }", "libmine.so", *needs)
    key, ((_, probe),) = tree.plan("scale").units[0].key, list_probes(tree.folder, tree.folder / "build")
    assert {"libmine.so", "libhelper.so"} <= set(probe.plugins[0].files)
    assert not any("libc.so" in name for name in probe.plugins[0].files)
    compile_c(tree, "int helper(void) { return 2; }", "libhelper.so")
    assert not is_fresh(probe, tree.folder)
    assert tree.plan("scale").units[0].key != key


def test_a_librarys_bytes_are_in_the_key_of_every_stage(tree):
    keys = []
    for version in ("1", "2"):
        compile_c(tree, LIBRARY.replace('"mine", "1"', f'"mine", "{version}"'))
        job = tree.job()
        keys.append([plan_stage(job, stage, "{}", "").key for stage in job.unit.stages])
    assert all(one != two for one, two in zip(*keys, strict=True))


def test_a_library_that_is_another_while_it_is_loaded_is_refused(tmp_path, monkeypatch):
    """Its bytes are the same before and after: those that were loaded are not known."""
    from precast.engines.triton import native

    path = tmp_path / "libmine.so"
    path.write_bytes(b"mine")
    status = path.stat()

    def load(name):
        while path.stat().st_ctime_ns == status.st_ctime_ns:  # which goes in steps
            path.write_bytes(b"other")
            path.write_bytes(b"mine")

    extend = SimpleNamespace(extend_with=load)
    plugin = SimpleNamespace(passes=SimpleNamespace(plugin=SimpleNamespace(extend_with=load)))
    plugin.ir = SimpleNamespace(extend_dialects_with=lambda name: None, builder=extend)
    monkeypatch.setattr(native, "libtriton", plugin)
    monkeypatch.setattr(native, "_loaded_passes", list)
    monkeypatch.setattr(native, "read_plugin_info", lambda path: SimpleNamespace(passes=()))
    with pytest.raises(PluginError, match=r"libmine.*changed while this process loaded it"):
        native.load_library(path)
