"""`[[tool.precast.pass]]` as pyproject.toml writes it. In: TOML. Out: values that `passes.registry` resolves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from precast.errors import Place
from precast.spec.model import Options


@dataclass(frozen=True)
class PassPlaces:
    """Where a selection stands: the value of `use`, that of `at`, key and value of each option, and each glob."""

    use: Place | None = None
    at: Place | None = None
    options: Mapping[str, tuple[Place, Place]] = field(default_factory=dict)
    globs: Mapping[tuple[str, str], Place] = field(default_factory=dict)  # by key and text


@dataclass(frozen=True)
class PassSelection:
    """Which units get a pass, and with what. `find_uses` checks `use`, `at` and `options` against the plugin.

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
    places: PassPlaces = field(default_factory=PassPlaces, compare=False, repr=False)

    @property
    def where(self) -> Place | None:
        return self.places.use
