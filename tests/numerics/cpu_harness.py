"""Runs one `@triton.jit` function through the CPU engine: Triton's front end → TTIR → object → shared library → NumPy.

No GPU and no driver: the front end compiles for `cuda:80`, as the engine's callers do.
"""

import ctypes
import functools
import os
import subprocess
import tempfile

import numpy as np
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from precast.engines import cpu
from precast.engines.triton.float8 import convert_e4b15
from precast.target import CPU_LEVELS, read_native_level

# The levels that this processor runs; the highest has registers that a process asks Linux for, as the library does.
LEVELS = CPU_LEVELS[: CPU_LEVELS.index(read_native_level() or CPU_LEVELS[0]) + 1]
if LEVELS[-1] == "x86-64-v4-amx":
    assert ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0
LEVEL = os.environ.get("CPU_TEST_LEVEL", "x86-64-v3")
CUDA = GPUTarget("cuda", 80, 32)
FLOAT8 = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")


def make_ttir(function, signature, constants=(), hints=(), locations=False, **options):
    """TTIR text of a kernel; `hints` are arguments divisible by 16."""
    backend = make_backend(CUDA)
    names = function.arg_names
    types = {name: signature.get(name, "constexpr") for name in names}
    places = {(names.index(name),): value for name, value in dict(constants).items()}
    divisible = {(names.index(name),): [["tt.divisibility", 16]] for name in hints}
    source = ASTSource(function, signature=types, constexprs=places, attrs=divisible)
    parsed = backend.parse_options({"supported_fp8_dtypes": FLOAT8, **options})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    implementation = {**backend.get_codegen_implementation(parsed), "convert_custom_types": convert_e4b15}
    module = source.make_ir(CUDA, parsed, implementation, backend.get_module_map(), context)
    module = backend.make_ttir(module, {}, parsed, 80)
    return str(module) if locations else module.str_nodebug()


def compile_text(ttir, level=LEVEL, symbol="entry", strict=False):
    """The `loops` text and the object."""
    loops = cpu.lower_ttir(ttir, level, strict)
    return loops, cpu.emit_object(cpu.lower_loops(loops, level), level, symbol)


class Compiled:
    """A loaded unit; call it with a grid and its run-time arguments in order."""

    def __init__(self, ttir, types, level=LEVEL, strict=False):
        self.types = types
        self.loops, self.image = compile_text(ttir, level, strict=strict)
        self.facts = cpu.read_facts(self.loops, (), self.image, "entry")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "unit")
            with open(path + ".o", "wb") as file:
                file.write(self.image)
            # `cc` would take three times as long.
            subprocess.run(["ld", "-shared", "-o", path + ".so", path + ".o", "-lm"], check=True)
            self.entry = ctypes.CDLL(path + ".so").entry
        self.entry.restype = ctypes.c_int32
        self.entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def __call__(self, grid, *arguments):
        """Runs every program of the grid in order on this thread; returns the status."""
        return self.run(grid, 0, int(np.prod(np.array(grid, np.int64))), *arguments)

    def run(self, grid, begin, end, *arguments):
        """Runs the programs from `begin` to `end`."""
        grid = tuple(grid) + (1,) * (3 - len(grid))
        slots = np.array([slot(value, type_) for value, type_ in zip(arguments, self.types, strict=True)], np.uint64)
        sizes = np.array(grid, np.int32)
        scratch = aligned(self.facts.thread_scratch_bytes)
        return self.entry(slots.ctypes.data, sizes.ctypes.data, begin, end, scratch.ctypes.data)


def aligned(size):
    """Scratch on a cache line, filled with what must not be relied on."""
    raw = np.full(size + 64, 0xA5, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def slot(value, type_):
    """An argument as the ABI's 8-byte slot."""
    if type_.startswith("*"):
        return value if isinstance(value, int) else value.ctypes.data
    if type_ in ("fp16", "fp32", "fp64"):
        number = np.array(value, {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[type_])
        return int(number.view(f"u{number.itemsize}"))
    if type_ == "bf16":
        return int(to_bf16(np.array(value, np.float32)))
    return int(value) & 0xFFFFFFFFFFFFFFFF


@functools.cache
def _build(function, signature, constants, hints, level, strict, options):
    ttir = make_ttir(function, dict(signature), constants, hints, **dict(options))
    types = [type_ for _, type_ in signature]
    return Compiled(ttir, types, level, strict)


def build(function, signature, constants=None, hints=(), level=LEVEL, strict=False, **options):
    """A kernel compiled and loaded; equal requests share one."""
    return _build(
        function,
        tuple(signature.items()),
        tuple((constants or {}).items()),
        tuple(hints),
        level,
        strict,
        tuple(options.items()),
    )


def to_bf16(values):
    """float32 → bf16 bits, nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).astype(np.uint16)


def from_bf16(bits):
    """bf16 bits → float32."""
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


NUMPY = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip


def ulp_error(actual, expected):
    """Largest error of float32 results in units of the last place of the float64 expectation."""
    exact = np.asarray(expected, np.float64)
    unit = np.maximum(np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64), 2.0**-149)
    finite = np.isfinite(exact) & (np.abs(exact) < np.finfo(np.float32).max)
    return float(np.max(np.abs(actual.astype(np.float64) - exact)[finite] / unit[finite]))
