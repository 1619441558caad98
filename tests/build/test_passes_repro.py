"""What `precast repro` does with each way in which a pass fails: the same failure again, from what was kept."""

import dataclasses
import shutil
import subprocess
import sys

import pytest
from clocks import LIMIT_S, hear_steps, run_ahead
from forked import run_precast
from plugin_tree import PluginTree
from test_passes_library import SOURCE

from precast.cli import main
from precast.errors import CompileError
from precast.worker.pool import WorkerPool

PASS = """
class Bad(Pass):
    name, stage, at = "bad", "{stage}", end()

    def run(self, module, context):
        {body}
"""
INVALID = "TritonOp(next(op for op in walk(module) if op.name == 'tt.make_range')).set_attribute('end', 3)"


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path)


def fail(tree, target="cuda:90", **changes):
    """The error of a unit that its pass fails."""
    job = dataclasses.replace(tree.job(target=target), **changes)
    with WorkerPool(1) as pool, pytest.raises(CompileError) as caught:
        pool.submit(job).result()
    return caught.value


def run_repro(tree, error, *words):
    return run_precast(tree.folder, "repro", str(tree.folder / error.reproducer), *words)


def repeat(tree, error, *words):
    """What `precast repro` says of the error's folder, which holds the IR that the pass was given."""
    assert "tt.func" in (tree.folder / error.reproducer / f"before-{error.pass_name}.mlir").read_text()
    done = run_repro(tree, error, *words)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert f"pass:  {error.pass_name}" in done.stderr and f"stage: {error.stage}" in done.stderr
    return done.stderr


@pytest.mark.all
def test_elsewhere_passes_run_as_they_were_or_as_a_checkout_has_them(tree, tmp_path_factory):
    """The folder that a machine of CI left, on a desk: with its own copy of the plugin, and with a mended one."""
    tree.write("plugins/words.py", "WORDS = 'no halves'\n")
    body = "import words; raise PassError(words.WORDS)"
    tree.plugin("import words\nfrom precast.errors import PassError\n" + PASS.format(stage="ttir", body=body))
    tree.select('use = "bad"\nkernels = "scale"')
    error = fail(tree)
    desk = tmp_path_factory.mktemp("desk")
    shutil.copytree(tree.folder, desk / "checkout", ignore=shutil.ignore_patterns("build"))
    (tree.folder / error.reproducer).rename(desk / "artifact")
    shutil.rmtree(tree.folder)

    def run(*words):
        command = [sys.executable, "-m", "precast", "repro", "artifact", *words]
        return subprocess.run(command, cwd=desk, capture_output=True, text=True)

    first = run()
    assert (first.returncode, first.stdout) == (1, "") and "no halves" in first.stderr
    (desk / "checkout/plugins/words.py").write_text("WORDS = 'not one half'\n")
    second = run("--project", "checkout")
    assert "pass bad: its files have changed since the failure" in second.stdout
    assert second.returncode == 1 and "not one half" in second.stderr


CRASH = SOURCE.replace("(void)manager; (void)arguments;", "__builtin_trap();")


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.all)])
def test_a_crash_inside_a_native_pass(tree, target):
    tree.write("mine.c", CRASH)
    flags = ["-shared", "-fPIC", "-DAPI=2", '-DTRITON="3.9.0"']
    subprocess.run(["cc", *flags, "mine.c", "-o", "libmine.so"], cwd=tree.folder, check=True)
    tree.plugin('bad = NativePass("libmine.so", "nothing", stage="ttgir")\n')
    tree.select('use = "nothing"\nkernels = "scale"\ntargets = ["cuda:*", "hip:*"]')
    error = fail(tree, target)
    assert (error.pass_name, error.stage) == ("nothing", "ttgir")
    assert error.message.startswith("the compiler crashed (SIG")
    assert error.message in repeat(tree, error)


def test_a_hang(tree, monkeypatch, capsys):
    tree.plugin(PASS.format(stage="ttir", body="__import__('time').sleep(1000)"))
    tree.select('use = "bad"\nkernels = "scale"')
    steps = hear_steps(monkeypatch)
    run_ahead(monkeypatch, lambda: any(step.pass_name for step in steps))
    error = fail(tree, time_limit_s=LIMIT_S)
    assert (error.pass_name, error.stage) == ("bad", "ttir") and "900 s" in error.message
    steps.clear()
    assert main(["repro", str(tree.folder / error.reproducer), "--time-limit", "700"]) == 1
    said = capsys.readouterr().err
    assert "pass:  bad" in said and "stage: ttir" in said and "the pass did not end within 700 s" in said


@pytest.mark.all
@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_invalid_ir(tree, stage):
    tree.plugin(PASS.format(stage=stage, body=INVALID))
    tree.select('use = "bad"\nkernels = "scale"\ntargets = "cuda:*"')
    error = fail(tree)
    assert error.message.startswith("the IR it left is not valid: ")
    assert error.message in repeat(tree, error)


def test_an_exception_until_the_pass_is_mended(tree):
    tree.plugin(PASS.format(stage="ttgir", body='raise ValueError("always")'))
    tree.select('use = "bad"\ntargets = "cuda:*"')
    error = fail(tree)
    assert "ValueError: always" in repeat(tree, error)
    tree.edit("plugins/mine.py", 'raise ValueError("always")', "pass")
    done = run_repro(tree, error)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "pass bad: its files have changed since the failure\n"
        "scale:dtype=fp32,BLOCK=128@cuda:90: stage ttgir runs without failure\n"
    )
