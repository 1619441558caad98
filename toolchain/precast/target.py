"""Targets: `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`; what each can do, as static tables.

`Target.parse` and `str` are inverse. The tables hold facts of Triton 3.9 and of our CPU engine; a test compares
them with Triton's own options. Nothing here imports a compiler.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from precast.errors import SpecError


class Backend(enum.Enum):
    CUDA = "cuda"
    HIP = "hip"
    CPU = "cpu"


_BACKENDS = {each.value: each for each in Backend}
CUDA_ARCHITECTURES = ("75", "80", "86", "87", "89", "90", "100", "103", "107", "110", "120", "121")
HIP_ARCHITECTURES = (
    "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201", "gfx1250",
)  # fmt: skip
# Each has all that those before it have. Above v4: products of bytes (VNNI), of bf16, and of matrices of both (AMX).
X86_LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx")
AARCH64 = "aarch64"  # ARMv8-A with what each such processor has; as `uname -m` says it
CPU_LEVELS = (*X86_LEVELS, AARCH64)
NATIVE = f"{Backend.CPU.value}:native"  # the level of the machine that reads it
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
            hint = "targets are written as `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`"
            raise SpecError(f"unknown target `{text}`", hint=hint)
        known = ARCHITECTURES[Backend(name)]
        if arch not in known:
            raise SpecError(f"nobody can build for target `{text}`", hint=f"{name} has {', '.join(known)}")
        return Target(name, arch)

    @property
    def kind(self) -> Backend:
        return _BACKENDS[self.backend]

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
        """Whether a glob selects it; `cpu:native` selects this machine's level."""
        return _matches(str(self), pattern)


@functools.lru_cache(maxsize=4096)  # a few targets and globs, asked about for every kernel
def _matches(target: str, pattern: str) -> bool:
    return fnmatchcase(target, expand_native(pattern))


@dataclass(frozen=True)
class OptionRule:
    """What a spec may write for one compile option. Strings have `choices` or are free; integers have bounds."""

    name: str
    kind: type[int] | type[bool] | type[str]
    minimum: int = 0
    maximum: int = 2**31 - 1
    power_of_two: bool = False
    choices: tuple[str | int, ...] = ()

    def fault(self, value: object) -> str | None:
        """Why `value` cannot be this option's, for the end of a sentence; None when it can."""
        if type(value) is not self.kind:
            return {int: "must be an integer", bool: "must be true or false", str: "must be a string"}[self.kind]
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(map(str, self.choices))}"
        return self._bounds_fault(value) if isinstance(value, int) and not isinstance(value, bool) else None

    def _bounds_fault(self, value: int) -> str | None:
        if value < self.minimum:
            return f"must be at least {self.minimum}"
        if value > self.maximum:
            return f"must be at most {self.maximum}"
        return "must be a power of two" if self.power_of_two and value & (value - 1) else None


DOT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
_COMMON_OPTIONS = (
    OptionRule("debug", bool),
    OptionRule("sanitize_overflow", bool),
    OptionRule("enable_fp_fusion", bool),
)
_GPU_OPTIONS = (
    *_COMMON_OPTIONS,
    OptionRule("num_warps", int, 1, 32, power_of_two=True),
    OptionRule("num_ctas", int, 1, 16, power_of_two=True),
    OptionRule("num_stages", int),
    OptionRule("launch_cooperative_grid", bool),
    OptionRule("default_dot_input_precision", str, choices=DOT_PRECISIONS),
    OptionRule("instrumentation_mode", str),
    OptionRule("fpsan_homomorphic_casts", bool),
)
# Named as Triton 3.9 names them. The options that Triton's classes have and this table has not are in `FIXED_OPTIONS`.
OPTIONS: dict[Backend, tuple[OptionRule, ...]] = {
    Backend.CUDA: (
        *_GPU_OPTIONS,
        OptionRule("maxnreg", int, 1, 255),
        OptionRule("ptx_version", int, 60),
        OptionRule("ptx_options", str),
        OptionRule("sched4reg", bool),
        OptionRule("enable_reflect_ftz", bool),
        OptionRule("launch_pdl", bool),
        OptionRule("clc", bool),
        OptionRule("min_shared_mem", int),
    ),
    Backend.HIP: (
        *_GPU_OPTIONS,
        OptionRule("waves_per_eu", int),
        OptionRule("matrix_instr_nonkdim", int, choices=(0, 4, 16, 32)),
        OptionRule("kpack", int, choices=(1, 2)),
        OptionRule("allow_flush_denorm", bool),
        OptionRule("schedule_hint", str),
        OptionRule("llvm_fn_attrs", str),
        OptionRule("wgp_cu_mode", str, choices=("wgp", "cu")),
    ),
    Backend.CPU: (*_COMMON_OPTIONS, OptionRule("strict", bool)),
}
# Options of our CPU engine, of which Triton does not know. `strict`: a load stays on its side of every store that may
# touch the same memory, though it be through another argument.
ENGINE_OPTIONS = {"strict": False}
# What the target decides, or a pass pipeline (`ir_override`), and a spec cannot.
FIXED_OPTIONS = frozenset({
    "arch", "backend_name", "warp_size", "extern_libs", "ir_override", "supported_fp8_dtypes",
    "deprecated_fp8_dot_operand_dtypes", "allowed_dot_input_precisions", "max_num_imprecise_acc_default",
})  # fmt: skip


def find_option(backend: Backend, name: str) -> OptionRule | None:
    """The rule of an option; None when the backend has no such option."""
    return next((rule for rule in OPTIONS[backend] if rule.name == name), None)


def option_fault(target: Target, name: str, value: object) -> str | None:
    """Why a target cannot have an option that its backend has, for the end of a sentence; None when it can."""
    if target.kind is Backend.CUDA:
        needed = _cuda_needs(name, value)
        return f"needs sm_{needed} or later" if int(target.arch) < needed else None
    if target.kind is Backend.HIP:
        return _hip_fault(target.arch, name, value)
    return None


def _cuda_needs(name: str, value: object) -> int:
    """The first compute capability that has the option: clusters and dependent launch came with 90, clc with 100."""
    if (name == "num_ctas" and value != 1) or (name == "launch_pdl" and value):
        return 90
    return 100 if name == "clc" and value else 0


def _hip_fault(arch: str, name: str, value: object) -> str | None:
    if name == "num_ctas" and value != 1 and arch != "gfx1250":
        return "needs gfx1250: no other AMD target has clusters"
    if name == "num_warps" and isinstance(value, int) and value * warp_size(Target("hip", arch)) > 1024:
        return f"must be at most 16: a wave has {warp_size(Target('hip', arch))} lanes, a block at most 1024"
    if name == "default_dot_input_precision" and (value == "tf32x3" or (value == "tf32" and arch != "gfx942")):
        return "must be ieee, bf16x3 or bf16x6 (tf32 too on gfx942)"
    return "must be 1 on gfx950" if (name, arch) == ("kpack", "gfx950") and value != 1 else None


def find_machine(targets: Iterable[Target]) -> str:
    """The kind of machine that libraries for `targets` are of, as `uname -m` says it: this one's where none says."""
    archs = [each.arch for each in targets if each.kind is Backend.CPU]
    return platform.machine() if not archs else AARCH64 if AARCH64 in archs else "x86_64"


def warp_size(target: Target) -> int:
    """Lanes of a warp: 64 on AMD's GCN and CDNA, 32 elsewhere on GPUs, 1 on a CPU."""
    if target.kind is Backend.CPU:
        return 1
    return 64 if target.kind is Backend.HIP and target.arch.startswith("gfx9") else 32


def float8_types(target: Target) -> tuple[str, ...]:
    """The 8-bit float types that kernels for the target can use; Triton emulates on AMD what the chip has not."""
    if target.kind is Backend.CUDA:
        return ("fp8e4b15", "fp8e4nv", "fp8e5") if int(target.arch) >= 89 else ("fp8e4b15", "fp8e5")
    amd = ("fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16")
    return amd if target.kind is Backend.HIP else ("fp8e4b15", *amd)


# Bytes of shared memory that one block can have: "Technical Specifications per Compute Capability" of the CUDA C++
# Programming Guide, LDS sizes of AMD's ISA manuals. A target that is not here is not checked.
_SHARED_MEMORY = {
    "75": 65536, "80": 166912, "86": 101376, "87": 166912, "89": 101376, "90": 232448, "100": 232448, "103": 232448,
    "120": 101376, "121": 101376, "gfx906": 65536, "gfx908": 65536, "gfx90a": 65536, "gfx942": 65536, "gfx950": 163840,
    "gfx1100": 65536, "gfx1101": 65536, "gfx1151": 65536, "gfx1200": 65536, "gfx1201": 65536,
}  # fmt: skip


def shared_memory_limit(target: Target) -> int | None:
    """Bytes of shared memory that a block on the target can have; None where that is not known or there is none."""
    return _SHARED_MEMORY.get(target.arch)


def find_capability(target: Target) -> tuple[int, int]:
    """A GPU's compute capability as `torch` has it: (9, 0) for `cuda:90`, (9, 4) for `hip:gfx942`."""
    digits = target.arch.removeprefix("gfx")
    if target.kind is Backend.CUDA:
        return int(digits[:-1]), int(digits[-1])
    return int(digits[:-2]), int(digits[-2])


_LEVEL_FLAGS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v4-vnni": {"avx512_vnni"},
    "x86-64-v4-bf16": {"avx512_bf16"},
    "x86-64-v4-amx": {"amx_bf16", "amx_int8", "amx_tile"},
}
_ARCH_PRCTL, _GET_XCOMP_SUPP, _TILE_DATA = 158, 0x1021, 1 << 18  # of Linux: asm/unistd_64.h, asm/prctl.h; XCR0's bit


def cpu_level(flags: frozenset[str]) -> str | None:
    """The highest feature level whose flags (the kernel's names of them) are all there; None below v2."""
    best = None
    for level in X86_LEVELS:
        if not flags >= _LEVEL_FLAGS[level]:
            break
        best = level
    return best


@functools.cache
def read_native_level() -> str | None:
    """This machine's feature level, from the kernel's list of its flags; None when it is below every level."""
    if platform.machine() == AARCH64:
        return AARCH64
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
    return cpu_level(flags if _gives_matrices() else flags - _LEVEL_FLAGS["x86-64-v4-amx"])


def _gives_matrices() -> bool:
    """Whether the system lets processes ask for registers of matrices: a sandbox may show the flags alone."""
    given = ctypes.c_uint64()
    answer = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _GET_XCOMP_SUPP, ctypes.byref(given))
    return answer == 0 and bool(given.value & _TILE_DATA)


def expand_native(text: str) -> str:
    """A target, a unit's text or a glob of such, with this machine's level where it ends in `cpu:native`."""
    level = read_native_level() if text.endswith(NATIVE) else None
    return text.removesuffix(NATIVE) + f"{Backend.CPU.value}:{level}" if level else text
