"""Places in the kernel's source, from the `loc(…)` of MLIR text. In: the text. Out: `Place`s and argument names."""

from __future__ import annotations

import re

from precast.errors import Place

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$", re.MULTILINE)
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAME = re.compile(r'^"((?:[^"\\]|\\.)*)"(?:\((.*)\))?$')
_CALL = re.compile(r"^callsite\((.*) at (.*)\)$")


class Locations:
    """Resolves location texts; the call site wins over the callee, because it is the user's own line."""

    def __init__(self, text: str) -> None:
        self._aliases = dict(_ALIAS.findall(text)) if "= loc(" in text else {}

    def find(self, location: str) -> Place | None:
        """The place that a location names, None for an unknown one."""
        location = self._aliases.get(location, location).strip()
        if match := _FILE.match(location):
            return Place(match[1], int(match[2]), int(match[3]))
        if match := _CALL.match(location):
            return self.find(match[2]) or self.find(match[1])
        if (match := _NAME.match(location)) and match[2]:
            return self.find(match[2])
        return self.find(location) if location in self._aliases else None
