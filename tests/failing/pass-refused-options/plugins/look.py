"""Passes with checks of their own."""

from dataclasses import dataclass

from precast.passes import Pass


@dataclass(frozen=True)
class Look(Pass):
    """Reads."""

    name = "look"
    deep: bool = False
    depth: int = 1

    def __post_init__(self):
        if self.depth > 8:
            raise ValueError("depth is at most 8")


@dataclass(frozen=True)
class Touch(Pass):
    """Writes."""

    name = "touch"
    left: int = 0
    right: int = 1

    def __post_init__(self):
        if self.left >= self.right:
            raise SystemExit("nothing is between them")
