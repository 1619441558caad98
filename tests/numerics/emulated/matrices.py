"""Products of matrices on any processor with AVX-512: `python -m emulated.matrices FIRST COUNT`, in tests/numerics.

LLVM can spell out AMX's instructions in ordinary ones, where nothing is optimised and an option of the process says so.
Runs the tests of products at that level, and programs of `cpu_fuzz` from FIRST on; the last line counts the programs
that had such products.
"""

import sys

import llvmlite.binding as llvm
import test_cpu_grouped as grouped
from cpu_fuzz.execute import find_fault
from cpu_fuzz.generate import generate

from precast.engines.cpu import lower_ttir, object
from precast.engines.cpu.machine import MACHINES

LEVEL = "x86-64-v4-amx"


def target_machine(level):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = MACHINES[level]
    target = llvm.Target.from_triple(machine.triple)
    features = {"cpu": machine.processor, "features": machine.features}
    return target.create_target_machine(**features, opt=0, reloc="pic", codemodel="small")


def main(first, count):
    llvm.set_option("emulated", "-enable-x86-scalar-amx=true")
    object._target_machine = target_machine
    grouped.LEVELS = [LEVEL]
    for form, size in (("plain", 16), ("plain", 64), ("turned", 32), ("left turned", 32)):
        grouped.test_products_of_bf16(form, size)
    for form in ("plain", "turned", "left turned", "computed"):
        grouped.test_products_of_bytes(form, LEVEL)
    for answer in (False, True):
        grouped.test_a_factor_that_stays(answer, 16)
        grouped.test_a_mask_that_counts_elements(LEVEL, answer)
    found = 0
    for seed in range(first, first + count):
        program = generate(seed)
        if "tt.dot" in program.text() and "tdpbssd" in lower_ttir(program.text(), LEVEL, program.strict):
            found += 1
            assert not find_fault(program, LEVEL), seed
    print(found, "programs with products of matrices, from seed", first)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
