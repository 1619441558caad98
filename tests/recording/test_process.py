"""How a program gets to be recorded: its processes start as ever, and its exit is the command's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from precast.recording.begin import STARTUP, VARIABLE, recording_environment

NOTHING = "kernels/recorded.toml: the program launched no kernel that could be recorded\n"


def record(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "precast", "record", *map(str, words)]
    environment = {**os.environ, **more}
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=120)


def test_a_program_s_output_and_exit_code_are_its_own(tmp_path):
    ran = record(tmp_path, "--", sys.executable, "-c", "print('out'); raise SystemExit(7)")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "out\n", NOTHING)
    assert not list(tmp_path.rglob("*.toml"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "error: there is no program to record\nhint: write `precast record -- python train.py`\n"),
        (("--", "./nothing"), "error: cannot run `./nothing`: no such file or directory\n"),
        (("-o", "bad.toml", "--", "true"), "bad.toml:1:1: error: not valid TOML: invalid statement\n"),
    ],
)
def test_what_cannot_be_recorded_is_told_before_anything_runs(tmp_path, words, said):
    (tmp_path / "bad.toml").write_text("?")
    ran = record(tmp_path, *words)
    assert (ran.returncode, ran.stdout) == (1, "") and ran.stderr.startswith(said), ran.stderr


def test_a_sitecustomize_of_the_user_s_runs_and_nothing_of_ours_is_seen(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    look = f"import sys; print(sys.path.count({str(STARTUP)!r}), sys.modules['sitecustomize'].__file__)"
    ran = record(tmp_path, "--", sys.executable, "-c", look, PYTHONPATH=str(tmp_path))
    own = "mine\n"  # of the command itself
    assert ran.stdout == f"{own}mine\n0 {tmp_path / 'sitecustomize.py'}\n" and ran.stderr == NOTHING


def test_an_interpreter_that_has_no_precast_records_too(tmp_path):
    """`-S` keeps installed packages away, `sitecustomize` too, which is imported here as `site` does."""
    look = "import sitecustomize, sys; import precast.recording.begin as b; print(b.__file__, 'tomlkit' in sys.modules)"
    command = [sys.executable, "-S", "-c", look]
    environment = {**os.environ, **recording_environment(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=120)
    assert ran.stdout == f"{STARTUP.parent / 'begin.py'} False\n", ran.stderr


def test_triton_is_watched_as_it_is_imported_and_keeps_its_loader(tmp_path):
    """A Triton that is a folder of ours: what is watched of the real one is in `test_record.py`."""
    package = tmp_path / "triton"
    for name in ("__init__", "compiler/__init__", "compiler/compiler", "runtime/__init__", "runtime/autotuner"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{name}.py").write_text(
            "class CompiledKernel:\n    def __getitem__(self, grid): pass\n"
            "class Autotuner(CompiledKernel):\n    def run(self): pass\n"
        )
    (package / "runtime" / "jit.py").write_text(
        "class KernelInterface:\n    def __getitem__(self, grid): pass\n"
        "class JITFunction(KernelInterface):\n    def run(self): return 1\n"
    )
    look = (
        "import triton; from triton.runtime.jit import JITFunction; import sys; print("
        "type(triton.__loader__).__name__, JITFunction.run.__wrapped__(0), [type(f).__name__ for f in sys.meta_path])"
    )
    ran = record(tmp_path, "--", sys.executable, "-c", look, PYTHONPATH=str(tmp_path))
    assert ran.stdout.startswith("SourceFileLoader 1 [") and "_Finder" not in ran.stdout, ran.stderr


def noting(folder: Path, function: str, then: str = "") -> list[str]:
    """A command that records a program of which a process notes one launch, as if it had seen Triton launch it."""
    (folder / "m.py").touch()
    note = f"Launch(Function('m', '{folder}/m.py', '{function}', '{function}'), {{}}, {{}}, {{}}, {{}}, (), ())"
    program = (
        "import os, time; from pathlib import Path; from precast.recording.notes import *;"
        f"Notebook(Path(os.environ['{VARIABLE}'])).write({note}); {then}"
    )
    return [sys.executable, "-m", "precast", "record", "--", sys.executable, "-c", program]


def test_a_signal_ends_the_program_and_keeps_what_was_noted(tmp_path):
    command = noting(tmp_path, "f", "print('on', flush=True); time.sleep(600)")
    process = subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "[kernel.f]" in (tmp_path / "kernels" / "recorded.toml").read_text()


def test_several_runs_write_one_file(tmp_path):
    started = [subprocess.Popen(noting(tmp_path, name), cwd=tmp_path, stderr=subprocess.PIPE) for name in "fgh"]
    for process in started:
        process.communicate(timeout=120)
        assert process.returncode == 0
    text = (tmp_path / "kernels" / "recorded.toml").read_text()
    assert sorted(line for line in text.splitlines() if line.startswith("[")) == [f"[kernel.{name}]" for name in "fgh"]
