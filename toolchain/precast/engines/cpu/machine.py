"""What a feature level of x86-64 can do, as the lowerings need to know it. In: a level's name. Out: `Machine`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A feature level; `features` is LLVM's text, for a generic CPU of this level."""

    level: str
    vector_bits: int
    fused: bool  # fused multiply-add instructions
    half: bool  # conversions between f16 and f32 in hardware
    masks: int  # smallest element, in bits, that masked loads and stores handle without branches; 0: none
    registers: int

    def lanes(self, bits: int) -> int:
        """Elements of `bits` in one native vector."""
        return self.vector_bits // max(bits, 8)

    def streaming_width(self, bits: int) -> int:
        """Lanes of a streaming loop: four native vectors of 32-bit elements, which unrolls it, fewer of wider ones."""
        return 4 * self.vector_bits // max(bits, 32)


MACHINES = {
    "x86-64-v2": Machine("x86-64-v2", 128, False, False, 0, 16),
    "x86-64-v3": Machine("x86-64-v3", 256, True, True, 32, 16),
    "x86-64-v4": Machine("x86-64-v4", 512, True, True, 8, 32),
}
