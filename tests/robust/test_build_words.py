"""What a command says when its output cannot be written, and what it runs of the folder that it is called in."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from builds import make_tree
from gate import Gate

from precast.worker.descendants import is_running, tree_of

pytestmark = pytest.mark.all  # a build for each, and terminals

PRECAST = [sys.executable, "-m", "precast"]


def start(words, tree, **settings):
    return subprocess.Popen([*PRECAST, *words], cwd=tree.folder, stderr=subprocess.PIPE, text=True, **settings)


def check_ended(process, told):
    """It ends, says one sentence and no traceback, and leaves no process."""
    _, said = process.communicate(timeout=300)
    assert said == told and process.returncode == 1
    return said


@pytest.mark.parametrize("style", [["--json"], []], ids=["json", "plain"])
def test_a_build_whose_reader_goes_away_ends(tmp_path, style):
    tree = make_tree(tmp_path / "p", kernels=4)
    gate = Gate(tree, "k3")
    process = start(["build", "-j2", *style], tree, stdout=subprocess.PIPE)
    assert process.stdout.readline()
    gate.wait_until_reached()
    family = list(tree_of(process.pid))
    process.stdout.close()
    process.stdout = None
    gate.open()
    check_ended(process, "error: cannot write to standard output: broken pipe\n")
    assert not any(map(is_running, family))
    assert tree.build().code == 0


@pytest.mark.parametrize("words", [["build", "--json"], ["build"], ["plan"]], ids=" ".join)
def test_a_full_device_is_told(tmp_path, words):
    tree = make_tree(tmp_path / "p", kernels=1)
    with open("/dev/full", "wb", buffering=0) as full:
        process = start(words, tree, stdout=full)
        check_ended(process, "error: cannot write to standard output: no space left on device\n")


def test_a_reader_that_has_seen_enough_of_a_list_is_told_nothing(tmp_path):
    tree = make_tree(tmp_path / "p", kernels=1)
    ours, theirs = os.pipe()
    os.close(ours)
    process = start(["plan"], tree, stdout=theirs)
    os.close(theirs)
    check_ended(process, "")


def test_a_build_without_any_stream_is_built(tmp_path):
    tree = make_tree(tmp_path / "p", kernels=1)
    subprocess.run(["sh", "-c", f"exec {' '.join(PRECAST)} build <&- >&- 2>&-"], cwd=tree.folder, check=True)
    assert (tree.folder / "generated/demo/current").exists()
    assert tree.build().steps == []


def wait_until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_build_ends_with_its_terminal(tmp_path):
    tree = make_tree(tmp_path / "p", kernels=1)
    gate = Gate(tree, "k0")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tree.folder)
        os.execv(sys.executable, [*PRECAST, "build"])
    gate.wait_until_reached()
    family = list(tree_of(child))
    assert len(family) >= 3
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (1, 128 + signal.SIGHUP, 130)
    wait_until(lambda: not any(map(is_running, family)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_build_that_is_asked_to_end_cleans_up(tmp_path, number):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tree = make_tree(tmp_path / "p", kernels=1)
    gate = Gate(tree, "k0")
    process = start(["build"], tree, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(scratch)})
    gate.wait_until_reached()
    assert list(scratch.glob("precast-scratch-*"))
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) in ((130, "interrupted\n"), (128 + number, "interrupted\n"))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("script", [False, True], ids=["direct", "scons"])
def test_what_had_failed_before_an_interrupt_is_told(tmp_path, script):
    tree = make_tree(tmp_path / "p", kernels=2)
    if not script:
        (tree.folder / "SConstruct").unlink()
    tree.edit("kernels/k0.py", "import triton\n", "# stand-in: fail ttgir\nimport triton\n")
    gate = Gate(tree, "k1")
    process = start(["build", "-k", "-j2"], tree, stdout=subprocess.PIPE)
    gate.wait_until_reached()
    assert any("FAILED" in line for line in iter(process.stdout.readline, ""))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    reason, *_, last = said.splitlines()
    assert process.returncode == 130 and last == "interrupted"
    assert "error: " in reason and "k0" in said


TRAP = "raise SystemExit(open({mark!r}, 'a').write(__file__ + '\\n') and 77)\n"
NAMES = ("json", "random", "argparse", "tempfile", "dataclasses", "cattrs", "sitecustomize", "SCons", "triton")


def test_no_file_of_the_working_directory_is_run(tmp_path):
    mark = tmp_path / "mark"
    tree = make_tree(tmp_path / "p", kernels=1)
    for name in NAMES:
        (tree.folder / f"{name}.py").write_text(TRAP.format(mark=str(mark)))
    (tree.folder / "precast").mkdir()
    (tree.folder / "precast/cli.py").write_text(TRAP.format(mark=str(mark)))
    (tree.folder / "SConstruct").unlink()
    for words in (["--version"], ["plan"], ["build"], ["inspect"], ["verify", "generated/demo/current"]):
        done = subprocess.run([*PRECAST, *words], cwd=tree.folder, capture_output=True, text=True)
        assert (done.returncode, mark.exists()) == (0, False), done.stderr + (mark.read_text() if mark.exists() else "")
