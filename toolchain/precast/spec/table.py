"""One `[kernel.NAME]` table while it is read: its nodes by key and the problems found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from precast.errors import Place
from precast.spec.keys import KERNEL_KEYS
from precast.spec.problems import Problems
from precast.spec.references import References
from precast.spec.toml import Node


@dataclass(frozen=True)
class KernelTable:
    """`fields` are the table's entries; a sub-table that is missing or no table reads as empty."""

    name: str
    node: Node
    fields: dict[str, Node]
    problems: Problems = field(default_factory=Problems)
    constexprs: frozenset[str] = frozenset()  # of the kernel's source, once it is read
    references: References | None = None
    places: dict[tuple[str, str], Place] = field(default_factory=dict)  # of values, by name and text

    def sub_table(self, key: str) -> dict[str, Node]:
        value = self.fields[key].value if key in self.fields else None
        return self.fields[key].table() if isinstance(value, dict) else {}

    def place_of(self, key: str) -> Node:
        """The sub-table where a missing entry belongs, or the kernel's own table when there is none yet."""
        return self.fields.get(key, self.node)

    def check_shape(self) -> None:
        """Unknown keys; raises where a sub-table is no table, for what should be in it would be missed as well."""
        self.problems.add(self.node.unknown_keys(KERNEL_KEYS.names))
        shapes = Problems()
        for key in ("args", "matrix", "constants", "options", "target"):
            if key in self.fields:
                with shapes.collect():
                    self.fields[key].table()
        shapes.raise_any()
