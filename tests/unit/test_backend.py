"""Triton's back end for a CPU: when it is active, what its launches pass, what it takes as options."""

import dataclasses
import struct

import pytest
import triton
from triton.backends.compiler import GPUTarget

from precast.backend import compiler, driver, launcher, options, presence


class OtherDriver:
    """The driver of another device, which is there."""

    @staticmethod
    def is_active() -> bool:
        return True


@dataclasses.dataclass
class OtherBackend:
    driver: type


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without a GPU, whatever this one is."""
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND", raising=False)
    monkeypatch.setattr(presence.has_gpu, "__defaults__", (tmp_path,))
    monkeypatch.setattr("triton.backends.backends", {"cpu": OtherBackend(driver.CpuDriver)})
    return tmp_path


def test_active_without_a_gpu(machine):
    assert driver.CpuDriver.is_active()


@pytest.mark.parametrize("device", presence.GPU_DEVICES)
def test_inactive_where_a_gpu_is_though_its_driver_does_not_answer(machine, device):
    (machine / device).touch()
    assert not driver.CpuDriver.is_active()


def test_inactive_beside_another_active_driver(machine):
    triton.backends.backends["cuda"] = OtherBackend(OtherDriver)
    assert not driver.CpuDriver.is_active()


def test_a_name_decides(machine, monkeypatch):
    triton.backends.backends["cuda"] = OtherBackend(OtherDriver)
    (machine / "kfd").touch()
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    assert driver.CpuDriver.is_active()
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cuda")
    assert not driver.CpuDriver.is_active()


@pytest.mark.parametrize("version", ["3.6.0", "3.10.0", "4.0"])
def test_inactive_under_another_triton_though_asked_for(machine, monkeypatch, version):
    monkeypatch.setattr("triton.__version__", version)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    assert not driver.CpuDriver.is_active()


def test_inactive_without_the_extras_parts(machine, monkeypatch):
    monkeypatch.setattr(presence, "PARTS", ("llvmlite", "no_such_package"))
    assert not driver.CpuDriver.is_active()


def test_inactive_on_a_processor_without_code(machine, monkeypatch):
    monkeypatch.setattr(presence, "find_level", lambda: None)
    assert not driver.CpuDriver.is_active()


def test_triton_finds_one_class_of_each_kind():
    from triton.backends import _find_concrete_subclasses
    from triton.backends.compiler import BaseBackend
    from triton.backends.driver import DriverBase

    assert _find_concrete_subclasses(compiler, BaseBackend) is compiler.CpuBackend
    assert _find_concrete_subclasses(driver, DriverBase) is driver.CpuDriver


def test_gpu_targets_are_not_compiled_here():
    supported = [compiler.CpuBackend.supports_target(GPUTarget(each, 90, 32)) for each in ("cuda", "hip", "cpu")]
    assert supported == [False, False, True]


class Tensor:
    """As much of a tensor as a launch looks at."""

    def __init__(self, address: int = 4096, is_cpu: bool = True) -> None:
        self.address, self.is_cpu, self.device = address, is_cpu, "cuda:0"

    def data_ptr(self) -> int:
        return self.address


def read(kind, given):
    reader = launcher.choose_reader(kind)
    return reader(given) if reader else None


def bits_of(code, value):
    return int.from_bytes(struct.pack(f"<{code}", value), "little")


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("*fp32", Tensor(), [4096]), ("*fp32", None, [0]), ("*i8", 77, [77]), ("constexpr", 3, None),
        ("i32", -1, [2**64 - 1]), ("u64", 2**64 - 1, [2**64 - 1]), ("i64", -(2**63), [2**63]), ("i1", True, [1]),
        ("fp32", 1.5, [bits_of("f", 1.5)]), ("fp32", 1e300, [bits_of("f", float("inf"))]),
        ("fp32", -1e300, [bits_of("f", float("-inf"))]), ("fp64", 1e300, [bits_of("d", 1e300)]),
        ("fp16", 0.1, [bits_of("e", 0.1)]), ("fp16", 1e6, [bits_of("e", float("inf"))]), ("bf16", 1.0, [0x3F80]),
        ("bf16", 1.00390625, [0x3F80]), ("bf16", 1.01171875, [0x3F82]), ("bf16", float("nan"), [0x7FC0]),
        (("i32", ("*i8", "constexpr"), "constexpr"), (5, (Tensor(8), None), 1), [5, 8]), (("constexpr",), (1,), None),
    ],
)  # fmt: skip
def test_values(kind, given, expected):
    assert read(kind, given) == expected


def test_a_descriptor_is_expanded():
    @dataclasses.dataclass
    class Descriptor:
        base: object
        shape: list
        strides: list
        padding: str
        round_f32_to_tf32: bool

    given = Descriptor(Tensor(64), [3, 5], [8, 1], "nan", False)
    assert read("tensordesc<fp32[4,8]>", given) == [64, 3, 5, 8, 1, 1, 0, 3, 5, 8, 1]


def test_a_tensor_of_another_device_is_refused():
    with pytest.raises(ValueError, match="a kernel on the CPU cannot use a tensor on cuda:0"):
        read("*fp32", Tensor(is_cpu=False))


def test_options_of_gpus_are_taken_and_arguments_left():
    made = options.parse_options({"num_warps": 8, "waves_per_eu": 2, "maxnreg": 64, "BLOCK": 16}, "x86-64-v3")
    assert (made.num_warps, made.waves_per_eu, made.maxnreg, made.arch) == (8, 2, 64, "x86-64-v3")
    assert not hasattr(made, "BLOCK")
    assert made.hash() != dataclasses.replace(made, strict=True).hash()


def test_warps_are_a_power_of_two():
    with pytest.raises(AssertionError, match="num_warps must be a power of 2, not 3"):
        options.parse_options({"num_warps": 3}, "x86-64-v3")


def test_the_cache_tells_engines_and_levels_apart():
    keys = {compiler.CpuBackend(GPUTarget("cpu", level, 1)).hash() for level in ("x86-64-v3", "x86-64-v4")}
    assert len(keys) == 2
    assert all(compiler.identify_engine() in each for each in keys)
