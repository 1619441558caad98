"""What a plugin module holds: passes and pipeline edits that a project can select by name.

In: nothing. Out: the classes that a plugin author derives from or makes values of. A module's plugins are the
`Pass` classes and the values of the other classes that stand in it by name. No engine inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from precast.passes.selection import Anchor

if TYPE_CHECKING:
    from mlir.ir import Module

    from precast.passes.context import PassContext

PYTHON_STAGES = ("ttir", "ttgir", "llir", "loops")


_START, _END = Anchor("start"), Anchor("end")


class Pass:
    """A pass in Python. Derive a frozen dataclass from it: its fields are the pass's options, with defaults.

    `name` is what pyproject.toml selects, `stage` where it runs, `at` where it stands unless pyproject says
    otherwise. `run` may change `module` in place; a frozen dataclass that it returns becomes the pass's finding on
    the unit. An exception from `run` fails the unit and names the line.

    `reads` is the same for every kind of plugin: the files that decide what it does beside its code, as paths or
    globs of the project, or `package:path` of an installed package. A change of one runs the units again.
    """

    name: ClassVar[str] = ""
    stage: ClassVar[str] = "ttir"
    at: ClassVar[Anchor] = _END
    reads: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = "python"

    def run(self, module: Module, context: PassContext) -> Any:
        """Transforms or reads `module`, the stage's IR at the pass's anchor."""
        raise TypeError(f"pass `{self.name}` does not define `run`")


@dataclass(frozen=True)
class NativePass:
    """A pass of a native plugin: a library that exports `tritonGetPluginInfo`.

    `library` is a path, relative to the project's folder or absolute, or `package:path`; `name` is the library's own
    name of the pass and `args` are the texts handed to it. `alias` is the name to select it by when `name` would not
    be unique. The library's dialects and ops are there for the kernel's source too.
    """

    kind: ClassVar[str] = "native"
    library: str
    name: str
    stage: str = "ttir"
    at: Anchor = _END
    args: tuple[str, ...] = ()
    alias: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltinPass:
    """One of Triton's own passes, as a listing names it: `common.cse`, `nvidia.ttnvgpuir.lower_mma`, …"""

    kind: ClassVar[str] = "builtin"
    op: str
    stage: str = "ttir"
    at: Anchor = _END
    args: tuple[str | int | bool, ...] = ()
    alias: str = ""
    reads: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.alias or self.op


@dataclass(frozen=True)
class Replace:
    """The step `op` (its `n`-th) of a stage gives way to another pass."""

    kind: ClassVar[str] = "replace"
    name: str
    stage: str
    op: str
    by: Pass | NativePass | BuiltinPass
    n: int = 0
    reads: tuple[str, ...] = ()

    @property
    def at(self) -> Anchor:
        return Anchor("before", self.op, self.n)


@dataclass(frozen=True)
class Drop:
    """The step `op` (its `n`-th) of a stage does not run."""

    kind: ClassVar[str] = "drop"
    name: str
    stage: str
    op: str
    n: int = 0
    reads: tuple[str, ...] = ()

    @property
    def at(self) -> Anchor:
        return Anchor("before", self.op, self.n)


@dataclass(frozen=True)
class Override:
    """A whole saved pipeline takes the place of a stage's own: `precast passes --toml`, edited.

    `file` is relative to the project's folder.
    """

    kind: ClassVar[str] = "override"
    name: str
    stage: str
    file: str
    at: Anchor = _START
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class HookFile:
    """A file written for Triton's own stages hook, run unmodified.

    The hook is the function `function`; if that is empty, `inspect_stages_hook`, the one that the file sets as
    `knobs.runtime.add_stages_inspection_hook`, or the only one that takes a hook's arguments. It runs in a folder that
    holds only the file and those of `reads`, with the passes of the native plugin `library` there. What it does to a
    stage cannot be seen from outside: the manifest calls it opaque, and its key is made of the bytes of all these
    files, whatever key it returns itself. Paths are relative to the project's folder. `stage` is the first stage that
    it changes; from there on all stages run in one process or none.
    """

    kind: ClassVar[str] = "hook"
    name: str
    file: str
    stage: str = "ttir"
    reads: tuple[str, ...] = ()
    at: Anchor = _START
    function: str = ""
    library: str = ""


def plugin_name(definition: Any) -> str:
    """The name that pyproject.toml selects a definition by."""
    if isinstance(definition, NativePass):
        return definition.alias or definition.name
    return str(definition.name)
