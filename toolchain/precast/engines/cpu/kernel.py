"""One kernel being lowered. In: its function. Out: what every family's lowering is handed.

`Kernel` joins the written text (`Context`), what is known about the IR (`Analysis`) and the way back into
`statements`, so that families do not import one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from precast.engines.cpu.analyses import Analysis
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import Block, Op, Value
from precast.engines.cpu.register_tiles import Packed
from precast.engines.cpu.values import Buffer


@dataclass(frozen=True)
class Kernel:
    """The state of one kernel's lowering; `lower_block` and `write_value` are those of `statements`."""

    context: Context
    analysis: Analysis
    lower_block: Callable[[Kernel, Block], None]
    write_value: Callable[[Kernel, Value, Buffer], None]
    packed: dict[Op, Packed] = field(default_factory=dict)  # right factors of products, packed before a loop

    def fill(self, value: Value, buffer: Buffer | None = None) -> Buffer:
        """Evaluates a tensor into a buffer, which is its place from now on."""
        buffer = buffer or self.context.allocate(value.type)
        self.write_value(self, value, buffer)
        self.context.places[value] = buffer
        return buffer
