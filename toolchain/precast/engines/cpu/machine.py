"""What a feature level of a processor can do, as the lowerings need to know it. In: a level's name. Out: `Machine`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A feature level; `triple` and `processor` are LLVM's names of what the code is for."""

    triple: str
    processor: str
    vector_bits: int
    fused: bool  # fused multiply-add instructions
    half: bool  # conversions between f16 and f32 in hardware
    masks: int  # smallest element, in bits, that masked loads and stores handle without branches; 0: none
    registers: int
    features: str = ""  # what it has beside those of `processor`, as LLVM writes it
    bytes: bool = False  # VNNI: products of bytes, four at a time
    bf16: bool = False  # products of bf16, two at a time
    matrices: bool = False  # AMX: products of matrices of both, in registers of their own

    @property
    def has_mask_registers(self) -> bool:
        return 0 < self.masks <= 8

    def lanes(self, bits: int) -> int:
        """Elements of `bits` in one native vector."""
        return self.vector_bits // max(bits, 8)

    def streaming_width(self, bits: int) -> int:
        """Lanes of a streaming loop: four native vectors of 32-bit elements, which unrolls it, fewer of wider ones."""
        return 4 * self.vector_bits // max(bits, 32)


_VNNI = "+avx512vnni"
_BF16 = f"{_VNNI},+avx512bf16"
_AMX = f"{_BF16},+amx-tile,+amx-int8,+amx-bf16"
_GATHERS = "+fast-gather"  # LLVM takes lanes out of vectors otherwise, which is slower on most of what has AVX2
_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
MACHINES = {
    "x86-64-v2": Machine(_X86, "x86-64-v2", 128, False, False, 0, 16),
    "x86-64-v3": Machine(_X86, "x86-64-v3", 256, True, True, 32, 16, _GATHERS),
    "x86-64-v4": Machine(_X86, "x86-64-v4", 512, True, True, 8, 32),
    "x86-64-v4-vnni": Machine(_X86, "x86-64-v4", 512, True, True, 8, 32, _VNNI, bytes=True),
    "x86-64-v4-bf16": Machine(_X86, "x86-64-v4", 512, True, True, 8, 32, _BF16, bytes=True, bf16=True),
    "x86-64-v4-amx": Machine(_X86, "x86-64-v4", 512, True, True, 8, 32, _AMX, bytes=True, bf16=True, matrices=True),
    "aarch64": Machine(_ARM, "generic", 128, True, True, 0, 32),
}
