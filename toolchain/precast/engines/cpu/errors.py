"""What the engine says when it cannot lower an op. In: an op. Out: the error that names op, kernel and source line."""

from __future__ import annotations

from precast.engines.cpu.ir import Op
from precast.errors import PassError


def refuse(operation: Op, reason: str, hint: str | None = None) -> PassError:
    """The error for an op that the CPU engine has no lowering for; the caller raises it."""
    return PassError(f"the CPU engine cannot lower `{operation.name}`: {reason}", operation.where, hint)
