"""What a kernel's module says once it is imported, as frozen values that cross processes.

In: a probe's request. Out: its answer, which an engine fills in; the plan takes values from it. A worker makes the same
`ImportedKernel` and compares it with what the plan used.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.digest import digest_text
from precast.reads import Read
from precast.spec.model import CompileSettings, Constant, Source, Values

FORMAT = 1  # raised whenever the JSON of a request or an answer changes


@dataclass(frozen=True)
class ImportedParameter:
    """One parameter of the imported function; `fault` says why a spec could not state its default."""

    name: str
    constexpr: bool
    has_default: bool = False
    default: Constant = None
    fault: str = ""


@dataclass(frozen=True)
class ImportedKernel:
    """The imported function.

    `configs` are those of @triton.autotune, each with every option that it sets, None without autotune;
    `configs_fault` says why a spec could not state one of them.
    """

    parameters: tuple[ImportedParameter, ...]
    gluon: bool = False
    configs: tuple[Values, ...] | None = None
    configs_fault: str = ""


@dataclass(frozen=True)
class ProbeRequest:
    """A module to import, for each target, with all that is known to decide what comes out."""

    source: Source
    targets: tuple[str, ...]
    settings: CompileSettings
    project: str
    python_path: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]  # files that the module's imports reach, with their digests
    tools: tuple[tuple[str, str], ...]
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """sha256 hex over all of it."""
        return digest_text(repr(self))


@dataclass(frozen=True)
class ProbeFault:
    """Why a module cannot be imported; `line` is 0 where no line is to blame."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 1
    hint: str | None = None


@dataclass(frozen=True)
class TargetAnswer:
    """The kernel as it is on one target, and what its module read on the way."""

    target: str
    kernel: ImportedKernel
    reads: tuple[Read, ...] = ()


@dataclass(frozen=True)
class ProbeAnswer:
    """All that a probe tells; `request` is the digest of what was asked."""

    request: str
    targets: tuple[TargetAnswer, ...] = ()
    fault: ProbeFault | None = None
