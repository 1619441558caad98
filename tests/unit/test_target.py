"""Targets: text both ways, limits, and the option tables against Triton's own option classes."""

import dataclasses
import platform
import typing

import pytest

from precast.errors import SpecError
from precast.target import (
    ARCHITECTURES,
    CPU_LEVELS,
    FIXED_OPTIONS,
    OPTIONS,
    X86_LEVELS,
    Backend,
    Target,
    cpu_level,
    find_machine,
    find_option,
    float8_types,
    option_fault,
    warp_size,
)

EVERY_TARGET = [Target(backend.value, arch) for backend in Backend for arch in ARCHITECTURES[backend]]


def triton_options(target):
    """Triton's own options object for a target."""
    from triton.backends.amd.compiler import HIPBackend
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend

    arch = int(target.arch) if target.kind is Backend.CUDA else target.arch
    backend = {Backend.CUDA: CUDABackend, Backend.HIP: HIPBackend}[target.kind]
    return backend(GPUTarget(target.backend, arch, warp_size(target)))


@pytest.mark.parametrize("target", EVERY_TARGET, ids=str)
def test_text_round_trip(target):
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "cuda:101",
            "nobody can build for target `cuda:101`",
            "cuda has 75, 80, 86, 87, 89, 90, 100, 103, 107, 110, 120, 121",
        ),
        ("cpu:x86-64", "nobody can build for target `cpu:x86-64`", f"cpu has {', '.join(CPU_LEVELS)}"),
        ("gpu:90", "unknown target `gpu:90`", "targets are written as `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`"),
        ("cuda", "unknown target `cuda`", "targets are written as `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`"),
    ],
)
def test_unknown_targets(text, message, hint):
    with pytest.raises(SpecError) as caught:
        Target.parse(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("backend", [Backend.CUDA, Backend.HIP])
def test_option_tables_are_triton_s(backend):
    options = type(triton_options(Target(backend.value, ARCHITECTURES[backend][0])).parse_options({}))
    fields = {field.name: field for field in dataclasses.fields(options)}
    rules = {rule.name: rule for rule in OPTIONS[backend]}
    assert set(rules) == set(fields) - FIXED_OPTIONS
    hints = typing.get_type_hints(options)
    for name, rule in rules.items():
        kinds = [each for each in typing.get_args(hints[name]) or (hints[name],) if each is not type(None)]
        assert rule.kind in kinds, name
        default = fields[name].default
        assert default is None or rule.fault(default) is None, name


@pytest.mark.parametrize("target", [each for each in EVERY_TARGET if each.kind is not Backend.CPU], ids=str)
def test_limits_are_triton_s(target):
    backend = triton_options(target)
    options = backend.parse_options({})
    assert set(float8_types(target)) == set(options.supported_fp8_dtypes)
    assert warp_size(target) == options.warp_size
    for precision in find_option(target.kind, "default_dot_input_precision").choices:
        fault = option_fault(target, "default_dot_input_precision", precision)
        assert (fault is None) == (precision in options.allowed_dot_input_precisions)
    for name, value in [("num_ctas", 2), ("clc", True)]:
        if find_option(target.kind, name) is None:
            continue
        try:
            backend.parse_options({name: value})
            refused = False
        except ValueError:
            refused = True
        assert (option_fault(target, name, value) is not None) == refused


@pytest.mark.parametrize(
    ("target", "name", "value", "fault"),
    [
        ("cuda:80", "num_ctas", 2, "needs sm_90 or later"),
        ("cuda:90", "num_ctas", 2, None),
        ("cuda:80", "num_ctas", 1, None),
        ("cuda:89", "launch_pdl", True, "needs sm_90 or later"),
        ("cuda:90", "clc", True, "needs sm_100 or later"),
        ("hip:gfx942", "num_ctas", 2, "needs gfx1250: no other AMD target has clusters"),
        ("hip:gfx942", "num_warps", 32, "must be at most 16: a wave has 64 lanes, a block at most 1024"),
        ("hip:gfx1100", "num_warps", 32, None),
        ("hip:gfx90a", "default_dot_input_precision", "tf32", "must be ieee, bf16x3 or bf16x6 (tf32 too on gfx942)"),
        ("hip:gfx950", "kpack", 2, "must be 1 on gfx950"),
    ],
)
def test_option_limits(target, name, value, fault):
    assert option_fault(Target.parse(target), name, value) == fault


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("num_warps", 3, "must be a power of two"),
        ("num_warps", 0, "must be at least 1"),
        ("num_warps", 64, "must be at most 32"),
        ("num_warps", "4", "must be an integer"),
        ("num_warps", True, "must be an integer"),
        ("num_warps", 8, None),
        ("debug", 1, "must be true or false"),
        ("default_dot_input_precision", "fp32", "must be one of tf32, tf32x3, ieee, bf16x3, bf16x6"),
        ("ptx_options", 3, "must be a string"),
    ],
)
def test_option_values(name, value, fault):
    assert find_option(Backend.CUDA, name).fault(value) == fault


def test_cpu_level_needs_every_level_below():
    v2 = frozenset(["cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"])
    v3 = v2 | frozenset(["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"])
    v4 = v3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
    bytes_, bf16 = v4 | {"avx512_vnni"}, v4 | {"avx512_vnni", "avx512_bf16"}
    amx = bf16 | {"amx_bf16", "amx_int8", "amx_tile"}
    assert [cpu_level(flags) for flags in (frozenset(), v2, v3, v4, bytes_, bf16, amx)] == [None, *X86_LEVELS]
    assert cpu_level(amx - {"amx_int8"}) == "x86-64-v4-bf16"
    assert cpu_level(bf16 - {"avx512_vnni"}) == "x86-64-v4"
    assert cpu_level(v4 - {"avx2"}) == "x86-64-v2"


def test_the_machine_of_a_releases_libraries():
    machines = [find_machine(map(Target.parse, each)) for each in (["cuda:90", "cpu:aarch64"], ["cpu:x86-64-v2"], [])]
    assert machines == ["aarch64", "x86_64", platform.machine()]
