"""`kernel[grid]` on a CPU: unchanged Triton programs, in processes of their own as a user starts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = ("TRITON_BACKENDS_IN_TREE", "TRITON_DEFAULT_BACKEND", "TRITON_CACHE_DIR", "TRITON_INTERPRET")


def environment(cache: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    no_compiler = {"CC": "false", "CXX": "false", "PATH": "/nowhere"}
    return {**kept, **no_compiler, "TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": str(cache), **more}


def run(part: str, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "programs_on_cpu.py"), part]
    return subprocess.run(command, env=environment(cache, **more), capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("part", ["vectors", "arguments", "hooks"])
def test_a_program_runs(part, tmp_path):
    ran = run(part, tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_program_is_compiled_once_and_run_at_any_level(tmp_path):
    assert run("vectors", tmp_path, TRITON_OVERRIDE_ARCH="x86-64-v2").stderr == ""
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.obj")}
    assert len(made) == 2
    assert run("vectors", tmp_path, TRITON_OVERRIDE_ARCH="x86-64-v2").stderr == ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.obj")} == made


def test_binaries_alone_are_stored_where_triton_is_told_to(tmp_path):
    for _ in range(2):
        ran = run("binary", tmp_path, TRITON_STORE_BINARY_ONLY="1")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    kept = sorted(path.suffix for path in tmp_path.rglob("*.*") if not path.name.startswith("__grp__"))
    assert kept == [".cubin", ".json", ".source"]


def test_what_a_program_says(tmp_path):
    program = (HERE / "programs_on_cpu.py").read_text().splitlines()
    line = next(number for number, text in enumerate(program, 1) if "it is positive" in text)
    ran = run("words", tmp_path)
    assert ran.stdout.splitlines() == [
        "launching",
        "pid (0, 0, 0) idx () value: 5",
        "pid (0, 0, 0) here",
        "launching",
        *["pid (0, 0, 0) idx () value: -5"] * 2,  # by each of the threads that it asked for
        *["pid (0, 0, 0) here"] * 2,
        f"AssertionFailedError a device assertion failed in `say`: {HERE}/programs_on_cpu.py:{line}: it is positive, "
        "in program (0, 0, 0)",
    ]
    assert ran.stderr.endswith("program (0, 0, 0): assertion `it is positive` failed\n")
    assert ran.returncode == 0, ran.stderr


def test_triton_does_not_look_where_it_is_told_not_to(tmp_path):
    asked = "import sys, triton; print(*sorted(triton.backends.backends), 'precast.backend.driver' in sys.modules)"
    more = {"TRITON_BACKENDS_IN_TREE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", asked], env=environment(tmp_path, **more), capture_output=True, text=True
    )
    assert ran.stdout.split() == ["amd", "nvidia", "False"]


def test_importing_triton_imports_no_compiler_of_ours(tmp_path):
    asked = (
        "import sys, triton; assert 'precast.backend.driver' in sys.modules;"
        "print({'mlir', 'llvmlite', 'torch', 'precast.engines', 'precast.project'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", asked], env=environment(tmp_path), capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("set()\n", "")
