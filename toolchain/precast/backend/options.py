"""What a launch can ask of the compiler on a CPU. In: keyword arguments of a launch. Out: `CpuOptions`.

What speaks of warps, stages or registers is taken, so that programs run unchanged, kept in the metadata, and does
nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Any

from precast.target import Target, float8_types


@dataclass(frozen=True)
class CpuOptions:
    """The options of a compilation.

    `strict` keeps every load on its side of a store that may touch the same memory. `printing_threads` is how often a
    scalar is printed: on a GPU each thread of a program prints it.
    """

    arch: str = ""
    debug: bool = False
    sanitize_overflow: bool = True
    strict: bool = False
    printing_threads: int = 1
    enable_fp_fusion: bool = True
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: Any = None
    backend_name: str = "cpu"
    warp_size: int = 1
    # Of GPUs:
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    maxnreg: int | None = None
    ptx_version: int | None = None
    ptx_options: str | None = None
    ir_override: str | None = None
    sched4reg: bool = False
    enable_reflect_ftz: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    clc: bool = False
    min_shared_mem: int | None = None
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    schedule_hint: str = ""
    llvm_fn_attrs: Any = ""
    wgp_cu_mode: str = "wgp"
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False

    def __post_init__(self) -> None:
        if self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise AssertionError(f"num_warps must be a power of 2, not {self.num_warps}")  # as Triton's own back ends

    def hash(self) -> str:
        """What Triton's cache tells compilations apart by."""
        text = "_".join(f"{name}-{value}" for name, value in sorted(vars(self).items()))
        return hashlib.sha256(text.encode()).hexdigest()


def parse_options(given: dict[str, Any], level: str) -> CpuOptions:
    """The options of `given` that exist; the others are the kernel's own arguments.

    A warp has one thread here, and a program has as many as it asks for by `num_warps`.
    """
    known = {each.name for each in fields(CpuOptions)}
    wanted = {name: value for name, value in given.items() if name in known and value is not None}
    wanted.setdefault("supported_fp8_dtypes", tuple(sorted(float8_types(Target("cpu", level)))))
    wanted.setdefault("printing_threads", wanted.get("num_warps", 1))
    return CpuOptions(**{**wanted, "arch": level})
