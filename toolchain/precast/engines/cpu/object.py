"""The `obj` stage: LLVM IR text to an ELF object, by llvmlite. In: LLVM IR text. Out: the object's bytes.

The loop vectoriser, SLP and loop unrolling stay off: vector width and unrolling were decided in `loops`.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from precast.engines.cpu.encodings import has_wrong_moves
from precast.engines.cpu.machine import MACHINES
from precast.errors import PassError

# Scheduling compares the memory accesses of a block pair by pair up to this many; long straight code takes no longer
# for each op than short code then. An option of the process's LLVM, which this engine alone uses.
_SCHEDULED_AT_ONCE = 200
llvm.set_option("precast", f"-dag-maps-huge-region={_SCHEDULED_AT_ONCE}")
# One table for describing, keying and running.
OPTIONS = (
    ("speed_level", 2), ("loop_vectorization", False), ("slp_vectorization", False), ("loop_unrolling", False),
    ("loop_interleaving", False),
)  # fmt: skip


# Without them no mask is made of a short vector, and no such register is used.
_NO_SHORT_VECTORS = "-avx512vl"


def _target_machine(level: str, without: str = "") -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = MACHINES[level]
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.processor,
        features=",".join(filter(None, (machine.features, without))),
        opt=2,
        reloc="pic",
        codemodel="small",
    )


def emit_object(text: str, level: str, symbol: str) -> bytes:
    """An ELF object whose only global symbol is `symbol`; `PassError` where LLVM refuses the text."""
    image = _emit(text, level, symbol, _target_machine(level))
    if MACHINES[level].has_mask_registers and has_wrong_moves(image):
        image = _emit(text, level, symbol, _target_machine(level, without=_NO_SHORT_VECTORS))
    return image


def _emit(text: str, level: str, symbol: str, machine: llvm.TargetMachine) -> bytes:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise PassError(f"the LLVM IR is not valid: {error}") from error
    module.triple = MACHINES[level].triple
    module.data_layout = str(machine.target_data)
    _rename_entry(module, symbol)
    _optimize(module, machine)
    return bytes(machine.emit_object(module))


def _rename_entry(module: llvm.ModuleRef, symbol: str) -> None:
    entries = [each for each in module.functions if not each.is_declaration and each.linkage == llvm.Linkage.external]
    if len(entries) != 1:
        raise PassError(f"the LLVM IR has {len(entries)} entries; a unit has one")
    entries[0].name = symbol


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options()
    for name, value in OPTIONS:
        setattr(options, name, value)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
