"""What the fuzzer of the C runtime works on: a small signed release of every kind of record, a driver, the program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from open_setup import launch_release

from precast.launch.sources import RUNTIME
from precast.release.sign import make_keys, public_key_hex, sign_release

HERE = Path(__file__).parent
FLAGS = launch_release.SANITIZERS["address"]
HASHING = ("-std=c11", "-O3", "-c", "-Dprecast_sha256_add=plain_sha256_add")  # see fuzz_runtime.c
# The driver for tests copies as many parameters as an image says; a changed index may say fewer.
PATCHES = (
    ("for (int i = 0, at = 0; i < function->count; at", "for (int i = 0, at = 0; i < 0; at"),
    ("&modules[module_count++]", "&modules[module_count++ % MOST_MODULES]"),
)
LIMITS = "allocator_may_return_null=1:max_allocation_size_mb=16:detect_leaks=1"
KERNELS = ("scale", "record", "tally", "nothing", "features", "steady", "typed", "count", "bounded")


def choose_units():
    """Two units of each kernel and backend, whose CPU code does nothing with what it is given."""
    found: dict[tuple[str, str], list] = {}
    for each in launch_release.all_units():
        group = found.setdefault((each.unit.kernel, each.unit.target.backend), [])
        is_rich = each.facts.buffers or each.facts.tensor_descriptors or each.facts.global_scratch_bytes
        if each.unit.kernel in KERNELS and (len(group) < 2 or is_rich or each.unit.kernel in ("nothing", "steady")):
            group.append(each)
    units = [each for group in found.values() for each in group]
    return [
        replace(each, body=f"NOTHING({each.facts.symbol})") if each.unit.target.backend == "cpu" else each
        for each in units
    ]


class Fuzzer:
    """The program, built once; each run has a copy of the release of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = launch_release.build_release(folder / "base", choose_units(), flags=("-O0",))
        secret, public = make_keys(folder)
        self.key = public_key_hex(public)
        sign_release(self.base, secret)
        (self.base / "ring").write_text(f"# who may sign\n{'ab' * 32} somebody\n{self.key} us\n")
        self.program = self._build()

    def _build(self) -> Path:
        driver = self.folder / "driver"
        shutil.copytree(launch_release.HERE, driver, ignore=shutil.ignore_patterns("*.py", "golden", "cmake_project"))
        text = (driver / "fake_driver.h").read_text()
        for before, after in PATCHES:
            assert before in text
            text = text.replace(before, after)
        (driver / "fake_driver.h").write_text(text)
        (self.folder / "lib").mkdir()
        plain = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1")
        library, source = self.folder / "lib/libcuda.so.1", driver / "fake_cuda.c"
        launch_release.run(["cc", *plain, str(source), "-o", str(library), "-lpthread"])
        program, digest = self.folder / "fuzz_runtime", self.folder / "sha256.o"
        launch_release.run(["cc", *HASHING, str(RUNTIME / "sha256.c"), "-o", str(digest)])
        checked = sorted(f"src/runtime/{path.name}" for path in RUNTIME.glob("*.c") if path.name != "sha256.c")
        (self.folder / "objects").mkdir()
        objects = launch_release.compile_objects(self.base, checked, str(self.folder / "objects"), FLAGS)
        plain = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}")
        made = [str(HERE / "fuzz_runtime.c"), *objects, str(digest)]
        launch_release.run(["cc", *plain, *FLAGS, *made, "-o", str(program), "-lpthread", "-ldl"])
        return program

    def read_corpus(self, entries: Sequence[Mapping[str, bytes]]) -> None:
        """Has the runtime take releases in which some files, by name, are others."""
        for number, files in enumerate(entries):
            folder = self.folder / f"work-corpus-0.corpus/{number}"
            folder.mkdir(parents=True)
            for name, data in files.items():
                (folder / name.replace("/", "#")).write_bytes(data)
        self.run("corpus", 0, len(entries))

    def run_shared(self, target: str, seed: int, rounds: int) -> int:
        """`run`, on all processors at once."""
        processes = len(os.sched_getaffinity(0))
        bounds = [rounds * number // processes for number in range(processes + 1)]
        with ThreadPoolExecutor(processes) as pool:
            taken = pool.map(lambda first, end: self.run(target, seed, end - first, first), bounds, bounds[1:])
            return sum(taken)

    def run(self, target: str, seed: int, rounds: int, first: int = 0) -> int:
        """Runs rounds of one target, from `first` on; how many of them the runtime took."""
        work = self.folder / f"work-{target}-{first}"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.base, work)
        environment = {**os.environ, "ASAN_OPTIONS": LIMITS, "UBSAN_OPTIONS": "print_stacktrace=1",
                       "LD_LIBRARY_PATH": str(self.folder / "lib")}  # fmt: skip
        command = [self.program, target, self.base, work, self.key, str(seed), str(first), str(rounds)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
        assert result.returncode == 0, f"{target} seed {seed}\n{result.stdout}{result.stderr[-6000:]}"
        return int(result.stdout.split()[-3])
