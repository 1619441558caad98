"""What LLVM makes wrong of masks in its last steps is found, and made otherwise."""

import ctypes
import subprocess

import numpy as np
import pytest
from cpu_harness import LEVELS

from precast.engines.cpu import emit_object
from precast.engines.cpu import object as object_stage
from precast.engines.cpu.encodings import has_wrong_moves

LEVEL = "x86-64-v4"
REGISTERS = [f"{{xmm{number}}}" for number in range(16)]
FILLED = ", ".join(["<4 x i32>"] * 16)
# Sixteen registers are taken while the mask is made and used.
TEXT = f"""
define i32 @entry(ptr %at, ptr %places) {{
  %value = load <2 x i32>, ptr %at
  %both = load <2 x ptr>, ptr %places
  %taken = call {{ {FILLED} }} asm sideeffect "", "{",".join("=" + name for name in REGISTERS)}"()
  %mask = trunc <2 x i32> %value to <2 x i1>
  %byte = zext <2 x i1> %mask to <2 x i8>
  call void @llvm.masked.scatter.v2i8.v2p0(<2 x i8> %byte, <2 x ptr> align 1 %both, <2 x i1> %mask)
{"".join(f"  %v{n} = extractvalue {{ {FILLED} }} %taken, {n}" + chr(10) for n in range(16))}
  call void asm sideeffect "", "{",".join(REGISTERS)}"({", ".join(f"<4 x i32> %v{n}" for n in range(16))})
  ret i32 0
}}
declare void @llvm.masked.scatter.v2i8.v2p0(<2 x i8>, <2 x ptr>, <2 x i1>)
"""


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("c5f850c0", False),  # vmovmskps eax, xmm0
        ("c4c17850c0", False),  # vmovmskps eax, xmm8
        ("c4a17850c0", True),  # of xmm16, as it is written
        ("c4817d50ff", True),  # vmovmskpd edi, ymm31
        ("c4a179d7c0", True),  # vpmovmskb eax, xmm16
        ("c4a1785807", False),  # vaddps of memory, its index in a high register
        ("c4e37930c002", False),  # kshiftrb k0, k0, 2
        ("c5f850c0c4e37930c002", True),
        ("c5f850c0c4e37930c802", False),  # kshiftrb k1, k0, 2: k0 is still made
    ],
)
def test_moves_that_cannot_be_right_are_found(code, wrong):
    assert has_wrong_moves(bytes.fromhex(code)) == wrong


def test_a_mask_is_moved_from_its_own_register(tmp_path):
    alone = object_stage._emit(TEXT, LEVEL, "entry", object_stage._target_machine(LEVEL))
    assert has_wrong_moves(alone), "LLVM does it right now: nothing has to be looked for"
    image = emit_object(TEXT, LEVEL, "entry")
    assert not has_wrong_moves(image)
    if LEVEL not in LEVELS:
        return
    (tmp_path / "unit.o").write_bytes(image)
    subprocess.run(["ld", "-shared", "-o", tmp_path / "unit.so", tmp_path / "unit.o"], check=True)
    entry = ctypes.CDLL(str(tmp_path / "unit.so")).entry
    for value, expected in (([0, 0], [7, 7]), ([0, 1], [7, 1]), ([1, 0], [1, 7]), ([2, 3], [7, 1])):
        given, out = np.array(value, np.int32), np.full(2, 7, np.uint8)
        places = out.ctypes.data + np.arange(2)
        entry(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(places.ctypes.data))
        assert out.tolist() == expected
