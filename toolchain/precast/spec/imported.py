"""What a kernel's module says once it is imported, as frozen values that cross processes.

In: engines fill it in, in a worker or a probe. Out: the plan takes values from it, and a worker compares with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.spec.model import Constant, Values


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
