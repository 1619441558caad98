"""Targets: `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`; what each can do, as static tables.

`Target.parse` and `str` are inverse. The tables hold facts of Triton 3.9 and of our CPU engine; a test compares
them with Triton's own options. Nothing here imports a compiler.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fnmatch import fnmatchcase

from precast.errors import SpecError, nearest_hint


class Backend(enum.Enum):
    CUDA = "cuda"
    HIP = "hip"
    CPU = "cpu"


CUDA_ARCHITECTURES = ("75", "80", "86", "87", "89", "90", "100", "103", "107", "110", "120", "121")
HIP_ARCHITECTURES = (
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201", "gfx1250",
)  # fmt: skip
CPU_LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
ARCHITECTURES = {Backend.CUDA: CUDA_ARCHITECTURES, Backend.HIP: HIP_ARCHITECTURES, Backend.CPU: CPU_LEVELS}

STAGES = {
    Backend.CUDA: ("ttir", "ttgir", "llir", "ptx", "cubin"),
    Backend.HIP: ("ttir", "ttgir", "llir", "amdgcn", "hsaco"),
    Backend.CPU: ("ttir", "loops", "llir", "obj"),
}
GLUON_STAGES = {
    Backend.CUDA: ("glir", "ttgir", "llir", "ptx", "cubin"),
    Backend.HIP: ("glir", "ttgir", "llir", "amdgcn", "hsaco"),
}


@dataclass(frozen=True, order=True)
class Target:
    """One machine kind that images are made for; `backend` is a `Backend` value's text."""

    backend: str
    arch: str

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"

    @staticmethod
    def parse(text: str) -> Target:
        """The target that `text` names; `SpecError` without a place when nobody can build it."""
        name, colon, arch = text.partition(":")
        if name not in {each.value for each in Backend} or not colon:
            known = [f"{each.value}:{ARCHITECTURES[each][0]}" for each in Backend]
            raise SpecError(f"unknown target `{text}`", hint=nearest_hint(text, known, "forms"))
        known_architectures = ARCHITECTURES[Backend(name)]
        if arch not in known_architectures:
            near = nearest_hint(text, [f"{name}:{each}" for each in known_architectures], "targets")
            raise SpecError(f"nobody can build for target `{text}`", hint=near)
        return Target(name, arch)

    @property
    def kind(self) -> Backend:
        return Backend(self.backend)

    @property
    def image_suffix(self) -> str:
        """The last stage's name: `cubin`, `hsaco` or `obj`."""
        return STAGES[self.kind][-1]

    @property
    def folder(self) -> str:
        """The target as one path component: `cuda-90`."""
        return f"{self.backend}-{self.arch}"

    def stages(self, *, gluon: bool = False) -> tuple[str, ...]:
        """Stage names in order; Gluon kernels have none on the CPU."""
        return GLUON_STAGES[self.kind] if gluon else STAGES[self.kind]

    def matches(self, pattern: str) -> bool:
        return fnmatchcase(str(self), pattern)
