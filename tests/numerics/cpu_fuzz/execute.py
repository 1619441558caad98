"""Runs programs through the engine and compares. In: a program, a level. Out: what is wrong, or nothing.

The real path: TTIR text → loops → LLVM IR → object → shared object. Every array has a guard page at its end or before
its start, and so has the scratch memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cpu_fuzz.evaluate import Evaluator, Memory, Pointer
from cpu_fuzz.numbers import MEMORY, REGISTERS, Numbers, draw, from_memory, to_memory
from cpu_fuzz.program import Array, Program
from precast.engines import cpu

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """A copy of an array between two pages that cannot be touched: at the second one, or at the first."""

    def __init__(self, array: Numbers, at_end: bool) -> None:
        body = max(1, -(-array.nbytes // PAGE)) * PAGE
        self._map = mmap.mmap(-1, body + 2 * PAGE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._pages = (self._base, self._base + PAGE + body)
        for page in self._pages:
            assert _LIBC.mprotect(page, PAGE, 0) == 0
        offset = PAGE + (body - array.nbytes if at_end else 0)
        self.address = self._base + offset
        self.array = np.frombuffer(self._map, array.dtype, array.size, offset) if array.size else array
        self.array[...] = array

    def close(self) -> None:
        for page in self._pages:
            _LIBC.mprotect(page, PAGE, 3)


class Runnable(Protocol):
    """A program that can be run, on this machine or another."""

    def run(self, slots: Numbers, grid: tuple[int, int, int], arrays: Mapping[int, Numbers]) -> int: ...


class Compiled:
    """A program's entry at a level."""

    def __init__(self, program: Program, level: str) -> None:
        loops = cpu.lower_ttir(program.text(), level, program.strict)
        image = cpu.emit_object(cpu.lower_loops(loops, level), level, "fuzz")
        self.scratch_bytes = cpu.read_facts(loops, (), image, "fuzz").thread_scratch_bytes
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "unit")
            with open(path + ".o", "wb") as file:
                file.write(image)
            subprocess.run(["ld", "-shared", "-o", path + ".so", path + ".o"], check=True)
            self.entry = ctypes.CDLL(path + ".so").fuzz
        self.entry.restype = ctypes.c_int32
        self.entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def run(self, slots: Numbers, grid: tuple[int, int, int], arrays: Mapping[int, Numbers]) -> int:
        """Runs every program; `arrays` are what lies at the addresses among `slots`, by argument. The status."""
        scratch = Guarded(np.full(self.scratch_bytes, 0xA5, np.uint8), at_end=True)
        sizes = np.array(grid, np.int32)
        start = scratch.address // 64 * 64  # sizes are whole cache lines
        status = self.entry(slots.ctypes.data, sizes.ctypes.data, 0, int(np.prod(grid)), start)
        scratch.close()
        return int(status)


def draw_arguments(program: Program, round_: int) -> list[Any]:
    """Stored arrays and scalars; the first argument is the number of elements of bounded arrays."""
    rng = np.random.default_rng((program.seed, round_))
    n = (int(rng.integers(1, 300)), 0, 256)[round_ % 3]
    found: list[Any] = []
    for index, each in enumerate(program.parameters):
        if index == 0:
            found.append(np.int32(n)[...])
        elif isinstance(each, Array):
            count = n if each.bounded else each.count
            values = np.zeros(count, REGISTERS[each.element]) if count == 4096 else draw(rng, each.element, count)
            found.append(found[each.alias] if each.alias is not None else to_memory(each.element, values))
        else:
            found.append(draw(rng, each.element, 1)[0][...])
    return found


def find_fault(program: Program, level: str, rounds: int = 2, compiled: Runnable | None = None) -> str | None:
    """What the engine does wrong with a program; None when all is right."""
    compiled = compiled or Compiled(program, level)
    for round_ in range(rounds):
        fault = _find_fault(program, compiled, draw_arguments(program, round_))
        if fault:
            return f"arguments {round_}: {fault}"
    return None


def _find_fault(program: Program, compiled: Runnable, arguments: list[Any]) -> str | None:
    expected = evaluate(program, arguments)
    guards: dict[int, Guarded] = {}
    slots = np.zeros(len(arguments), np.uint64)
    for index, (each, value) in enumerate(zip(program.parameters, arguments, strict=True)):
        if isinstance(each, Array) and each.alias is None:
            guards[index] = Guarded(value, at_end=(program.seed + index) % 3 != 0)
            slots[index] = guards[index].address
        elif isinstance(each, Array):
            assert each.alias is not None
            slots[index] = slots[each.alias]
        else:
            raw = np.atleast_1d(to_memory(each.element, np.atleast_1d(value)))
            slots[index] = int.from_bytes(raw.tobytes(), "little")
    arrays = {index: guard.array for index, guard in guards.items()}
    status = compiled.run(slots, program.grid, arrays)
    faults = [f"status {status}"] if status else []
    for index, guard in guards.items():
        memory, each = expected[index], program.parameters[index]
        assert memory is not None and isinstance(each, Array)
        faults += _compare(f"argument {index} ({each.element})", each, guard.array, memory, program.signed_zeros)
    for guard in guards.values():
        guard.close()
    return "; ".join(faults) or None


def _compare(name: str, array: Array, got: Numbers, memory: Memory, signed_zeros: bool) -> list[str]:
    actual = from_memory(array.element, got)
    if memory.errors is not None:
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(actual.astype(np.float64) - memory.stored) <= memory.errors)
        bad = np.where(np.isnan(memory.stored), ~np.isnan(actual.astype(np.float64)), far)
        bad &= ~np.isnan(memory.errors) & (actual.astype(np.float64) != memory.stored)
        wanted = memory.stored
    else:
        wanted = from_memory(array.element, memory.stored)
        bad = actual != wanted
        if wanted.dtype.kind == "f":
            bad &= ~(np.isnan(actual) & np.isnan(wanted))
            if signed_zeros:
                bad |= (np.signbit(actual) != np.signbit(wanted)) & ~np.isnan(wanted)
    places = np.flatnonzero(bad)
    if not places.size:
        return []
    at = places[0]
    return [f"{name}[{at}] is {actual[at]!r}, not {wanted[at]!r} ({places.size} differ)"]


def evaluate(program: Program, arguments: list[Any]) -> list[Memory | None]:
    """What memory holds after all programs of the grid, one after the other with x fastest."""
    memories: list[Memory | None] = []
    for each, value in zip(program.parameters, arguments, strict=True):
        if not isinstance(each, Array):
            memories.append(None)
        elif each.alias is not None:
            memories.append(memories[each.alias])
        elif each.sink:
            memories.append(Memory(np.zeros(len(value)), np.zeros(len(value))))
        else:
            memories.append(Memory(value.astype(MEMORY[each.element])))
    elements = [each.element for each in program.parameters]
    x, y, z = program.grid
    for number in range(x * y * z):
        ids = (number % x, number // x % y, number // (x * y))
        evaluator = Evaluator(memories, elements, ids, program.grid, functions=program.functions)
        for index, (argument, each) in enumerate(zip(program.body.arguments, program.parameters, strict=True)):
            is_array = isinstance(each, Array)
            evaluator.known[argument] = Pointer(index, np.zeros((), np.int64)) if is_array else arguments[index]
        evaluator.run(program.body)
    return memories
