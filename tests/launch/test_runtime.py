"""The C runtime against drivers for tests, with sanitizers on: every scenario in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from launch_release import HERE, SANITIZERS, build_fakes, build_release, run

# The driver that a program is linked with, which the library finds loaded.
LINKED = {
    "cpu": "",
    "choice": "",
    "cuda": "cuda/libcuda.so.1",
    "cuda_failures": "cuda/libcuda.so.1",
    "hip": "hip/libamdhip64.so",
    "hip_failures": "hip/libamdhip64.so",
}
# Scenarios that find other drivers than the one of their kind.
DRIVERS = {
    "old_driver": "old_cuda",
    "old_runtime": "old_hip",
    "cuda_without_functions": "empty_cuda",
    "hip_without_functions": "empty_hip",
    "no_libraries": "text",
}
THREADED = {
    "cpu": ("concurrent_launches", "scratch_and_threads"),
    "cuda": ("plain", "one_after_another_on_all_threads"),
    "cuda_failures": ("many_threads_slow_loads", "unload_between_launches", "changed_callbacks"),
    "hip_failures": ("many_threads_slow_loads", "unload_between_launches", "changed_callbacks"),
}


def host_target() -> str:
    """This machine as a CPU target, read off the system's own list of features."""
    flags = set(
        next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    )
    if {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"} <= flags:
        above = "-bf16" if {"avx512_vnni", "avx512_bf16"} <= flags else "-vnni" if "avx512_vnni" in flags else ""
        if above == "-bf16" and {"amx_tile", "amx_int8", "amx_bf16"} <= flags:
            above = "-amx"
        return f"cpu:x86-64-v4{above}"
    return "cpu:x86-64-v3" if {"avx2", "fma", "bmi2", "f16c", "abm", "movbe"} <= flags else "cpu:x86-64-v2"


def build_scenarios(kind: str, release: Path, folder: Path, flags: tuple[str, ...] = ()) -> Path:
    program = folder / f"{kind}_scenarios"
    fake = [str(folder / "fakes" / LINKED[kind])] if LINKED[kind] else []
    run(["cc", "-std=c11", "-D_GNU_SOURCE", f'-DHOST="{host_target()}"', "-Wall", "-Wextra", "-Werror", *flags,
         f"-I{release}/include", f"-I{release}/src", str(HERE / f"{kind}_scenarios.c"), "-o", str(program),
         f"-L{release}/lib", "-lsmall", *fake, f"-Wl,-rpath,{release}/lib", "-lpthread"])  # fmt: skip
    return program


def search_path(fakes: Path, kind: str, scenario: str) -> str:
    drivers = DRIVERS.get(scenario, kind.split("_")[0])
    return ":".join(str(fakes / each) for each in (drivers, "none"))


class Flavour:
    """The release, the drivers and the programs, compiled with one sanitizer and without hiding functions."""

    def __init__(self, folder: Path, sanitizer: str) -> None:
        self.folder = folder
        self.flags = SANITIZERS[sanitizer]
        self.release = build_release(folder / "release", flags=self.flags)
        build_fakes(folder / "fakes")
        self.programs: dict[str, Path] = {}

    def run(self, kind: str, scenario: str) -> None:
        if kind not in self.programs:
            self.programs[kind] = build_scenarios(kind, self.release, self.folder, self.flags)
        search = search_path(self.folder / "fakes", kind, scenario)
        environment = {**os.environ, "LD_LIBRARY_PATH": search, "UBSAN_OPTIONS": "print_stacktrace=1"}
        result = subprocess.run([self.programs[kind], scenario, self.release], env=environment, capture_output=True,
                                text=True, timeout=120)  # fmt: skip
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        assert "WARNING" not in result.stderr and "ERROR" not in result.stderr, result.stderr


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Flavour:
    return Flavour(tmp_path_factory.mktemp("address"), "address")


@pytest.fixture(scope="module")
def thread(tmp_path_factory: pytest.TempPathFactory) -> Flavour:
    return Flavour(tmp_path_factory.mktemp("thread"), "thread")


def scenarios_of(kind: str) -> list[str]:
    text = (HERE / f"{kind}_scenarios.c").read_text()
    table = text[text.index("scenario all[]") :]
    return [part.split('"')[0] for part in table.split('{"')[1:]]


# A sanitizer's own locks do not survive a fork beside starting threads: these run without, so many times.
FORKED = {("cpu", "forked_child"): 20, ("cuda_failures", "forked_while_loading"): 3}
EVERY = [(kind, scenario) for kind in LINKED for scenario in scenarios_of(kind) if (kind, scenario) not in FORKED]


@pytest.mark.parametrize(("kind", "scenario"), EVERY)
def test_scenario_under_address_and_undefined_behaviour_sanitizers(address: Flavour, kind: str, scenario: str) -> None:
    address.run(kind, scenario)


@pytest.mark.parametrize(("kind", "scenario"), [(kind, each) for kind, names in THREADED.items() for each in names])
def test_scenario_under_thread_sanitizer(thread: Flavour, kind: str, scenario: str) -> None:
    thread.run(kind, scenario)


@pytest.mark.parametrize(("kind", "scenario"), FORKED)
def test_forked_child_launches(release: Path, tmp_path: Path, kind: str, scenario: str) -> None:
    fakes = build_fakes(tmp_path / "fakes")
    program = build_scenarios(kind, release, tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": search_path(fakes, kind, scenario)}
    for _ in range(FORKED[kind, scenario]):
        subprocess.run([program, scenario, release], check=True, timeout=120, env=environment)


def test_only_the_librarys_own_names_are_exported(release: Path) -> None:
    listing = run(["nm", "-D", "--defined-only", str(release / "lib/libsmall.so")])
    names = [line.split()[-1] for line in listing.splitlines()]
    assert names and all(name.startswith("small_") for name in names)
