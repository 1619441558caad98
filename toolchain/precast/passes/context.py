"""What a Python pass is told about the unit it runs on, and how it asks for a device buffer.

In: the engine's facts about the unit. Out: requests that the engine turns into kernel parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from precast.artifact import DeviceBuffer
from precast.errors import PassError
from precast.passes.ir import append_pointer, find_place, own_bytes
from precast.target import Target

if TYPE_CHECKING:
    from mlir.ir import Module, Value


@dataclass
class PassContext:
    """Facts of one unit at one stage. `options` are the compile options in force, by name.

    A pass reads it and calls `add_buffer`; nothing else changes it.
    """

    unit: str
    kernel: str
    target: Target
    stage: str
    pass_name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)  # constexprs of the kernel, by name
    arguments: tuple[str, ...] = ()  # the kernel's run-time arguments, in order; empty outside a unit
    buffers: list[DeviceBuffer] = field(default_factory=list)

    def refuse(self, op: Any, message: str) -> NoReturn:
        """Fails the unit with `message`, at the line of the kernel's source that `op` comes from."""
        raise PassError(message, where=find_place(op))

    def add_buffer(self, module: Module, bytes_per_program: int) -> Value:
        """A pointer (to i32) to zeroed bytes of this program's own, `bytes_per_program` of them.

        The launcher makes them for all programs of the grid, in the order of `passes.ir.own_bytes`, hands them to the
        kernel as one more parameter, and after the launch to whoever set a buffer reader. Only in `ttir`, where a
        kernel's parameters are still its own; at most one buffer for a pass.
        """
        if self.stage != "ttir":
            raise ValueError("a device buffer can be added in stage ttir only")
        if any(buffer.pass_name == self.pass_name for buffer in self.buffers):
            raise ValueError(f"pass `{self.pass_name}` asked for a second device buffer")
        if bytes_per_program <= 0 or bytes_per_program % 4:
            raise ValueError(f"a device buffer of {bytes_per_program} bytes: give a positive multiple of 4")
        parameter = append_pointer(module, "i32")
        self.buffers.append(DeviceBuffer(self.pass_name, bytes_per_program))
        return own_bytes(parameter, bytes_per_program)
