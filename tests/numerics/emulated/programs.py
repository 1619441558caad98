"""Units for aarch64 run by an emulator. In: TTIR texts. Out: what they write to arrays, and print.

The units of a program are linked into it by a C compiler for that machine, with a C library of its own: the emulator
needs no other files.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from precast.engines import cpu

EMULATOR = shutil.which("qemu-aarch64")
COMPILER = shutil.which("aarch64-linux-gnu-gcc")
LEVEL = "aarch64"


class EmulatedProgram:
    """The units of several kernels in one program."""

    def __init__(self, kernels: Mapping[str, str], folder: Path, strict: Sequence[str] = ()) -> None:
        """`kernels` has TTIR texts by name; `strict` are those compiled so."""
        self._folder, self._names = folder, list(kernels)
        self._scratch: dict[str, int] = {}
        objects = []
        for name, ttir in kernels.items():
            loops = cpu.lower_ttir(ttir, LEVEL, name in strict)
            image = cpu.emit_object(cpu.lower_loops(loops, LEVEL), LEVEL, f"unit_{name}")
            self._scratch[name] = cpu.read_facts(loops, (), image, name).thread_scratch_bytes
            objects.append(folder / f"{name}.o")
            objects[-1].write_bytes(image)
        source = Path(__file__).parent / "run_units.c"
        units = ",".join(f"unit_{name}" for name in kernels)
        words = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-static", f"-DUNITS={units}", str(source)]
        command = [str(COMPILER), *words, *map(str, objects), "-lm", "-o", str(folder / "program")]
        subprocess.run(command, check=True)

    def run(
        self, name: str, grid: Sequence[int], slots: Sequence[int], arrays: Mapping[int, np.ndarray]
    ) -> tuple[int, str]:
        """Status of a run and what it printed. `slots` are the arguments' 8 bytes; `arrays`, which are written to, lie
        at the addresses among them, by argument. An address that an earlier argument has is that argument's."""
        grid = (*grid, 1, 1)[:3]
        words = [struct.pack("=6q", self._names.index(name), *grid, self._scratch[name], len(slots))]
        places, at = {}, len(words[0])
        filled = [each for each in arrays if arrays[each].nbytes]
        for index, slot in enumerate(map(int, slots)):
            shared = next((each for each in filled if each < index and int(slots[each]) == slot), None)
            if index in filled:
                places[index] = at + 8
                words.append(struct.pack("=q", arrays[index].nbytes) + arrays[index].tobytes())
            elif shared is not None:
                words.append(struct.pack("=q", -shared - 1))
            else:
                words.append(struct.pack("=qQ", 0, slot))
            at += len(words[-1])
        file = self._folder / "arguments"
        file.write_bytes(b"".join(words))
        command = [str(EMULATOR), str(self._folder / "program"), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        data = file.read_bytes()
        for index, place in places.items():
            array = arrays[index]
            array[...] = np.frombuffer(data, array.dtype, array.size, place).reshape(array.shape)
        return done.returncode, done.stdout
