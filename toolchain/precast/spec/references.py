"""What a constexpr's text may name in a module: a jit function or an enumeration's member, `modes:Mode.FAST`.

In: a text and where its kernel stands. Out: the reference, by the name that a worker imports the module by. Nothing
is imported here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from precast.errors import nearest_hint
from precast.spec.model import Spelled
from precast.spec.modules import ModuleFile
from precast.spec.sources import SourceReader
from precast.spec.toml import Node

REFERENCE = re.compile(r"([\w./-]+):([A-Za-z_][\w.]*)", re.ASCII)


@dataclass(frozen=True)
class References:
    """`folder` is the spec's, `root` the folder that the kernel's own module is imported from."""

    sources: SourceReader
    folder: Path
    root: Path

    def find(self, node: Node, text: str) -> Spelled | None:
        """The reference that a text is; None where no module of that name is found, so that it is a text."""
        found = REFERENCE.fullmatch(text)
        module = self._module(node, found[1]) if found else None
        if not found or not module:
            return None
        first, syntax = found[2].partition(".")[0], self.sources.syntax(module)
        if not syntax.is_bound(first):
            hint = f"{nearest_hint(first, syntax.names, 'names')}; a text of that form is written `'\"{text}\"'`"
            raise node.error(f"`{syntax.file}` has no `{first}`", hint)
        return Spelled(f"{module.name}:{found[2]}")

    def locate(self, name: str) -> ModuleFile | None:
        """The module that a reference names."""
        return self.sources.find(name, self.root)

    def _module(self, node: Node, place: str) -> ModuleFile | None:
        if not place.endswith(".py"):
            return self.locate(place) if re.fullmatch(r"[A-Za-z_][\w.]*", place, re.ASCII) else None
        file = Path(os.path.normpath(self.folder / place))
        if not self.sources.is_file(file):
            hint = "the path is relative to the spec's folder"
            raise node.error(f"there is no file `{self.sources.show(file)}`", hint)
        module = self.sources.module_of(file)
        found = self.locate(module.name)
        if found is None or found.file != file or not re.fullmatch(r"[A-Za-z_][\w.]*", module.name, re.ASCII):
            raise node.error(f"`{place}` is found neither beside the kernel's module nor through `pythonpath`")
        return module
