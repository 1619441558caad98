"""What the user asked to build. In: a command line's words. Out: a frozen value, known before anything is imported."""

from __future__ import annotations

from dataclasses import dataclass, field

from precast.cache.settings import CacheWish


@dataclass(frozen=True)
class Request:
    """Globs of kernels and targets, how many jobs at once, and whether to go on after errors."""

    kernels: tuple[str, ...] = ("*",)
    targets: tuple[str, ...] = ("*",)
    jobs: int = 1
    keep_going: bool = False
    check: float | None = None  # percent of the units to build again, from nothing
    cache: CacheWish = field(default_factory=CacheWish)

    @property
    def everything(self) -> bool:
        return "*" in self.kernels and "*" in self.targets

    @property
    def part(self) -> str:
        """What of the project is asked for; "" when that is all."""
        return "" if self.everything else f"kernels {', '.join(self.kernels)}; targets {', '.join(self.targets)}"
