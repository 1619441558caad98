"""Every feature level: built, disassembled and, where this processor or an emulator has it, run.

The programs and their evaluator are those of `cpu_fuzz`. A level that cannot be run here is a skipped test, which says
so.
"""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_fuzz.execute import find_fault
from cpu_fuzz.generate import generate
from cpu_harness import LEVELS, make_ttir
from emulated.programs import COMPILER, EMULATOR, EmulatedProgram

from precast.engines import cpu
from precast.target import CPU_LEVELS

COUNT = 40
FIRST = 20_000
MACHINE = {"aarch64": 183}  # ELF's e_machine; else x86-64's
CAN_EMULATE = EMULATOR is not None and COMPILER is not None
emulated = pytest.mark.skipif(not CAN_EMULATE, reason="it takes qemu-user and gcc-aarch64-linux-gnu of Debian")


@triton.jit
def says_kernel(out, x, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.device_print("value", value)
    tl.device_assert(value < limit, "too large")
    tl.store(out + i, tl.exp(value) / 3)


def says():
    return make_ttir(says_kernel, {"out": "*fp32", "x": "*fp32", "limit": "fp32"}, {"N": 4}, debug=True)


def emit(ttir, level):
    return cpu.emit_object(cpu.lower_loops(cpu.lower_ttir(ttir, level), level), level, "entry")


def disassemble(image, folder):
    """The instructions of an object, by LLVM's own disassembler."""
    import llvm

    folder.joinpath("unit.o").write_bytes(image)
    program = Path(llvm.__file__).parent / "bin/llvm-objdump"
    words = [program, "--disassemble", "--mattr=+all", folder / "unit.o"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("level", CPU_LEVELS)
def test_a_level_is_built(level, tmp_path):
    image = emit(says(), level)
    assert int.from_bytes(image[18:20], "little") == MACHINE.get(level, 62)
    text = disassemble(image, tmp_path)
    assert "<entry>:" in text and "ret" in text and "unknown" not in text
    if level not in LEVELS and not (level == "aarch64" and CAN_EMULATE):
        pytest.skip(f"{level} is built and disassembled, and not run: this processor has it not")


@triton.jit
def taken_kernel(out, x, index, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + tl.load(index + i), mask=i < n))


@pytest.mark.parametrize(("level", "gathers"), [("x86-64-v2", False), ("x86-64-v3", True), ("x86-64-v4", True)])
def test_indexed_loads_are_gathers_where_the_level_has_them(level, gathers, tmp_path):
    types = {"out": "*fp32", "x": "*fp32", "index": "*i32", "n": "i32"}
    text = disassemble(emit(make_ttir(taken_kernel, types, (("N", 64),)), level), tmp_path)
    assert ("vgatherdps" in text or "vgatherqps" in text) is gathers


class Emulated:
    """One of a program's units, as the comparison calls it."""

    def __init__(self, program, name):
        self.program, self.name = program, name

    def run(self, slots, grid, arrays):
        return self.program.run(self.name, grid, slots, arrays)[0]


@emulated
@pytest.mark.all
def test_programs(tmp_path):
    print(f"seeds {FIRST} to {FIRST + COUNT - 1}")
    programs = {f"seed_{seed}": generate(seed) for seed in range(FIRST, FIRST + COUNT)}
    strict = [name for name, each in programs.items() if each.strict]
    emulated = EmulatedProgram({name: each.text() for name, each in programs.items()}, tmp_path, strict)
    faults = {name: find_fault(each, "aarch64", compiled=Emulated(emulated, name)) for name, each in programs.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}


@emulated
@pytest.mark.all
def test_what_a_program_says(tmp_path):
    program = EmulatedProgram({"says": says()}, tmp_path)
    x, out = np.array([0, 1, -2, 3], np.float32), np.zeros(4, np.float32)
    limits = np.array([4, 3], np.float32).view(np.uint32)
    status, said = program.run("says", (1,), [1, 2, int(limits[0])], {0: out, 1: x})
    assert status == 0
    assert np.allclose(out, np.exp(x.astype(np.float64)) / 3, rtol=3e-7)
    assert said.splitlines() == [f"pid (0, 0, 0) idx ({i}) value: {value:f}" for i, value in enumerate(x)]
    status, _ = program.run("says", (1,), [1, 2, int(limits[1])], {0: out, 1: x})
    assert status == 1
