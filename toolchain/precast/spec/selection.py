"""`[[tool.precast.pass]]` as pyproject.toml writes it. In: TOML. Out: values that `passes.registry` resolves."""

from __future__ import annotations

from dataclasses import dataclass, field

from precast.errors import Place
from precast.spec.model import Options


@dataclass(frozen=True)
class PassSelection:
    """Which units get a pass, and with what. `select_passes` checks `use`, `at` and `options` against the plugin.

    `kernels` are globs on a kernel's name, `variants` on what stands between `:` and `@` of a unit's text,
    `targets` on a target's; a unit must match one of each. An empty `at` means the plugin's own anchor.
    """

    use: str
    kernels: tuple[str, ...] = ("*",)
    variants: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ("*",)
    options: Options = ()
    at: str = ""
    enabled: bool = True
    where: Place | None = field(default=None, compare=False)
