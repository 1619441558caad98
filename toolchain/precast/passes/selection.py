"""A pass as the plan sees it: which one, where, with what, for one unit. No engine and no plugin code inside."""

from __future__ import annotations

from dataclasses import dataclass

from precast.spec.model import Options


@dataclass(frozen=True)
class Anchor:
    """A place in a stage's pipeline; its text form is `start`, `end`, `before(op, n)` or `after(op, n)`."""

    kind: str
    op: str = ""
    n: int = 0

    def __str__(self) -> str:
        if self.kind in ("start", "end"):
            return self.kind
        return f"{self.kind}({self.op}, {self.n})" if self.n else f"{self.kind}({self.op})"


@dataclass(frozen=True)
class PassUse:
    """A pass selected for a unit: all that its stage key and its run need.

    `kind` is one of python, native, builtin, hook, replace, drop, override, op. `origin` is where the code that
    defines it is: a project-relative file, or the dotted name of an installed module. `digest` covers the bytes of
    `files`: that code with what it imports inside its own package, the library, saved pipeline or hook file that it
    names, and what it reads; `passes.resources` says how they are named. `outside` stands for the modules that it
    imports from other packages, by version and bytes, and is in the digest.
    """

    name: str
    kind: str
    stage: str
    anchor: Anchor
    options: Options = ()
    origin: str = ""
    digest: str = ""
    files: tuple[str, ...] = ()
    library: str = ""  # native code that this pass needs loaded: one of `files`
    outside: str = ""

    @property
    def stateful(self) -> bool:
        """Whether what it does in a stage may rest on what it did in an earlier one: then all stages from `stage` on
        run in one process, or none does."""
        return self.kind == "hook"

    @property
    def on_bindings(self) -> bool:
        """Whether the pass may run on the MLIR bindings."""
        return self.kind in ("python", "op", "replace")


def plugin_set(uses: tuple[PassUse, ...]) -> str:
    """The code from outside that a job runs: a worker process serves jobs of one plugin set only, for what was loaded,
    native or Python, cannot be unloaded."""
    return ",".join(sorted({f"{use.origin}:{use.library}={use.digest}" for use in uses if use.origin or use.library}))
