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
    candidates: bool = False  # every config of the kernels that are tuned, apart from the release
    check: float | None = None  # percent of the units to build again, from nothing
    cache: CacheWish = field(default_factory=CacheWish)
    without: frozenset[str] = frozenset()  # units that candidates do without
    executor: str = ""  # the address of a cluster that compiles units; "": this machine

    @property
    def goes_on(self) -> bool:
        """Whether a unit that fails leaves the others to be compiled."""
        return self.keep_going or self.candidates

    @property
    def everything(self) -> bool:
        return "*" in self.kernels and "*" in self.targets and not self.candidates

    @property
    def part(self) -> str:
        """What of the project is asked for; "" when that is all."""
        words = f"kernels {', '.join(self.kernels)}; targets {', '.join(self.targets)}"
        return "" if self.everything else f"candidates: {words}" if self.candidates else words
