"""The CPU engine: TTIR text to an object for x86-64 or aarch64, as pure functions. In: a stage's text. Out: the next's.

`ttir → loops → llir → obj`. The same text gives the same result, whatever the process, the hash seed or the machine.
Everything that is refused is a `PassError` that names op and source line; the caller knows the unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from precast.artifact import Facts, Parameter
from precast.errors import PassError, Place

STAGES = ("loops", "llir", "obj")


def lower_ttir(ttir_text: str, level: str, strict: bool = False, threads: int = 1) -> str:
    """`loops` MLIR text for a feature level (`x86-64-v2`, …, `aarch64`) from a kernel's TTIR.

    The engine reads MLIR's generic form; Triton's own printer makes it of the pretty one.
    `strict` keeps every load on its side of a store that may touch the same memory, through whatever argument.
    `threads` is how often a scalar is printed.
    """
    from precast.engines.cpu import lowering
    from precast.engines.cpu.errors import faults_told

    if '"builtin.module"' not in ttir_text:
        from precast.engines.triton.bridge import make_generic

        ttir_text = make_generic(ttir_text)
    with faults_told():
        return lowering.lower_module(ttir_text, level, strict, threads)


def lower_loops(text: str, level: str) -> str:
    """LLVM IR text from `loops` text."""
    from precast.engines.cpu import pipeline
    from precast.engines.cpu.errors import faults_told

    with faults_told():
        return pipeline.lower_module(text)


def emit_object(llvm_ir: str, level: str, symbol: str) -> bytes:
    """An ELF object for the level from LLVM IR text; its entry is called `symbol`."""
    from precast.engines.cpu import object as object_stage
    from precast.engines.cpu.errors import faults_told

    with faults_told():
        return object_stage.emit_object(llvm_ir, level, symbol)


def find_kernel_place(ttir_text: str) -> Place | None:
    """Where the kernel of located TTIR text is defined in the source."""
    from precast.engines.cpu.reader import parse_ttir
    from precast.engines.triton.bridge import make_generic

    return next((each.operation.where for each in parse_ttir(make_generic(ttir_text)) if each.public), None)


def read_facts(
    loops_text: str, parameters: tuple[Parameter, ...], image: bytes, symbol: str, places: Sequence[int] = ()
) -> Facts:
    """The facts of a unit: scratch and what is written from the `loops` text, code size from the object.

    `parameters` are the run-time arguments in order, as the caller knows them from the unit, and `places` says which
    of the kernel's own arguments each begins with.
    """
    from precast.engines.cpu import elf

    found = re.search(r"precast\.thread_scratch_bytes = (\d+)", loops_text)
    if found is None:
        raise PassError("the `loops` text does not say how much scratch a thread needs")
    written = read_written(loops_text)
    marked = [replace(each, written=place in written) for each, place in zip(parameters, places, strict=False)]
    return Facts(
        symbol=symbol,
        parameters=(*marked, *parameters[len(marked) :]),
        warp_size=1,
        thread_scratch_bytes=int(found[1]),
        code_bytes=elf.find_code_bytes(image),
    )


def read_written(loops_text: str) -> frozenset[int]:
    """The numbers of the kernel's arguments that it stores through."""
    found = re.search(r"precast\.written_arguments = \[([^\]]*)\]", loops_text)
    return frozenset(int(each) for each in re.findall(r"\d+", found[1])) if found else frozenset()


def describe_pipeline(stage: str, level: str) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    """The steps of a stage as (name, options), in order: what is printed, and what a stage key covers."""
    from precast.engines.cpu import object as object_stage
    from precast.engines.cpu import pipeline
    from precast.engines.cpu.machine import MACHINES

    if stage == "loops":
        return (("lower-ttir", (("level", level), ("version", VERSION))),)
    if stage == "llir":
        return tuple((name, ()) for name in pipeline.PASSES)
    machine = MACHINES[level]
    emit = (("cpu", machine.processor), ("features", machine.features), ("triple", machine.triple))
    return (("optimize", object_stage.OPTIONS), ("emit-object", emit))


VERSION = 11  # of the lowering: a change of generated code changes it
