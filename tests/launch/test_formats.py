"""Packs, index and interface: what Python writes, what C reads, and where the two must agree."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_release import all_units, run

from precast.errors import PlanError, ReleaseError, SpecError
from precast.grid import compile_grid, evaluate, parse_grid
from precast.launch.formats import (
    LAUNCH_ABI,
    SCHEMA,
    TYPE_CODES,
    describe_interface,
    interface_digest,
    read_pack,
    write_pack,
)
from precast.launch.formats.index import write_index
from precast.launch.formats.interface import leaves_of
from precast.launch.formats.values import ReleaseIndex
from precast.launch.sources import RUNTIME
from precast.spec.model import Argument, Source, Unit, Variant
from precast.target import Target


def unit_of(kernel: str, values=(), arguments=(), target: str = "cpu:x86-64-v3", grid=("1", "1", "1")) -> Unit:
    return Unit(
        Variant(kernel, tuple(values)), Target.parse(target), Source("k.py", "", kernel), tuple(arguments), (), grid
    )


def test_pack_is_page_aligned_deduplicated_and_digested():
    images = [("b", b"second" * 1000), ("a", b"first"), ("c", b"first")]
    data = write_pack(images)
    entries = {entry.unit: entry for entry in read_pack(data)}
    assert list(entries) == ["a", "b", "c"] and data == write_pack(images[::-1])
    for unit, image in images:
        entry = entries[unit]
        assert entry.offset % 4096 == 0 and data[entry.offset : entry.offset + entry.size] == image
        assert entry.digest == hashlib.sha256(image).hexdigest()
    assert entries["a"].offset == entries["c"].offset and len(data) < 4096 * 4


def test_damaged_packs_are_refused():
    data = write_pack([("a", b"first" * 100)])
    for wrong, text in [
        (b"", "softmax.pack is not a pack"),
        (data[:-1], "softmax.pack is 4595 bytes long, its header says 4596"),
        (data[:8] + struct.pack("<I", 1) + data[12:], "softmax.pack has schema 1, this Precast reads schema 2"),
        (data[:-1] + b"x", "softmax.pack is damaged: an image's digest does not match"),
    ]:
        with pytest.raises(ReleaseError) as caught:
            read_pack(wrong, "softmax.pack")
        assert str(caught.value) == text


def test_interface_is_the_same_whatever_the_order_and_the_images():
    units = [each.unit for each in all_units()]
    interface = describe_interface("small", units)
    assert interface == describe_interface("small", units[::-1])
    assert interface_digest(interface) != interface_digest(describe_interface("small", units[1:]))
    assert describe_interface("my-kernels 2", units[:1]).name == "my_kernels_2"


def test_slots_of_tuples_and_of_types_that_vary():
    assert leaves_of(Argument("p", "(i32, (*fp16, tensordesc<fp16[4,8]>), constexpr)")) == (
        ("p.0", "i32"), ("p.1.0", "*fp16"), ("p.1.1", "tensordesc<fp16[4,8]>"),
    )  # fmt: skip
    units = [
        unit_of("k", [("t", t)], [Argument("x", f"*k{t}"), Argument("n", n), Argument("s", s), Argument("d", "i8")])
        for t, n, s in (("fp16", "u8", "fp16"), ("fp32", "u32", "fp64"))
    ]
    slots = describe_interface("k", units).kernels[0].slots
    assert [(slot.type, slot.dtype_axis) for slot in slots] == [
        ("const ptr", "t"), ("u64", ""), ("fp64", ""), ("i8", ""),
    ]  # fmt: skip


def test_variants_that_cannot_share_a_launcher_are_refused():
    pointer, scalar = (unit_of("k", [("A", a)], [Argument("x", t)]) for a, t in ((1, "*i8"), (2, "i8")))
    with pytest.raises(PlanError) as caught:
        describe_interface("k", [pointer, scalar])
    assert str(caught.value) == "argument `x` of `k` is a pointer in one variant and an integer in another"
    many = [unit_of("k", [("A", value)]) for value in range(255)]
    with pytest.raises(PlanError, match="axis `A` of `k` has 255 values; at most 254"):
        describe_interface("k", many)


def test_header_and_python_have_the_same_numbers():
    header = (RUNTIME / "precast.h").read_text()
    assert f"#define PRECAST_SCHEMA {SCHEMA}\n" in header and f"#define PRECAST_LAUNCH_ABI {LAUNCH_ABI}\n" in header
    enumeration = header[header.index("typedef enum precast_type") : header.index("} precast_type")]
    names = [word.strip(" ,").split(" ")[0].removeprefix("PRECAST_").lower()
             for line in enumeration.splitlines()[1:] for word in line.split(",") if word.strip()]  # fmt: skip
    assert {name: number for number, name in enumerate(names, 1)} == TYPE_CODES


def test_index_is_the_same_bytes_for_the_same_release(release: Path):
    data = (release / "index.bin").read_bytes()
    assert data[:8] == b"PRECINDX" and struct.unpack_from("<Q", data, 16) == (len(data),)
    digest = data[56:88]
    assert hashlib.sha256(data[:56] + bytes(32) + data[88:]).digest() == digest
    interface = describe_interface("small", [each.unit for each in all_units()])
    assert data[24:56].hex() == interface_digest(interface)


def test_empty_release_has_an_index():
    interface = describe_interface("nothing", [])
    assert write_index(ReleaseIndex(interface, (), ())) == write_index(ReleaseIndex(replace(interface), (), ()))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The runtime's inner functions, exported."""
    library = tmp_path_factory.mktemp("runtime") / "libruntime.so"
    run(["cc", "-std=c11", "-O1", "-fPIC", "-shared", "-D_GNU_SOURCE", *map(str, sorted(RUNTIME.glob("*.c"))),
         "-o", str(library), "-lpthread", "-ldl"])  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.precast_float_bits.argtypes = [ctypes.c_double, ctypes.c_uint]
    loaded.precast_float_bits.restype = ctypes.c_uint64
    loaded.precast_error.restype = ctypes.c_char_p
    return loaded


class Step(ctypes.Structure):
    _fields_ = [("operand", ctypes.c_int64), ("opcode", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


NAMES = ("a", "b", "c")
VALUES = st.one_of(st.integers(-20, 20), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))


def expressions() -> st.SearchStrategy[str]:
    leaves = st.one_of(st.sampled_from(NAMES), st.integers(0, 70).map(str), st.just(str(2**63 - 1)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(st.sampled_from(["min", "max", "cdiv"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        ),
        max_leaves=8,
    )


@settings(max_examples=400, deadline=None)
@given(expressions(), st.tuples(VALUES, VALUES, VALUES))
def test_grid_programs_mean_the_same_in_c_and_python(runtime, text, values):
    expression = parse_grid(text, NAMES)
    program = compile_grid(expression, NAMES, {})
    steps = (Step * len(program.steps))(*[Step(operand, opcode, 0) for opcode, operand in program.steps])
    slots = (ctypes.c_uint64 * 3)(*[value % 2**64 for value in values])
    types = (ctypes.c_uint8 * 48)(*([0, 0, 0, 0, TYPE_CODES["i64"]] + [0] * 11) * 3)
    result = ctypes.c_int64()
    assert runtime.precast_grid_fits(steps, len(steps), 3)
    status = runtime.precast_run_steps(steps, len(steps), slots, types, b"k", ctypes.byref(result))
    try:
        expected = evaluate(expression, dict(zip(NAMES, values, strict=True)))
    except SpecError as error:
        if "is negative" in str(error):
            assert status == 0 and result.value < 0
        else:
            assert status == 8
            word = b"divides by zero" if "divides by zero" in str(error) else b"overflows"
            assert word in runtime.precast_error()
    else:
        assert (status, result.value) == (0, expected)


def nearest_code(value: float, codes: dict[int, float]) -> set[int]:
    """Codes of the nearest values; of two, the even one."""
    distance = min(abs(value - each) for each in codes.values())
    near = {code for code, each in codes.items() if abs(value - each) == distance}
    return {code for code in near if code % 2 == 0} if len({codes[code] for code in near}) > 1 else near


def decode(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> float:
    mantissa = code & ((1 << mantissa_bits) - 1)
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


EIGHT_BITS = {
    "fp8e4nv": (4, 3, 7, lambda code: code & 0x7F != 0x7F),
    "fp8e5": (5, 2, 15, lambda code: code & 0x7F < 0x7C),
    "fp8e4b8": (4, 3, 8, lambda code: code != 0x80),
    "fp8e5b16": (5, 2, 16, lambda code: code != 0x80),
    "fp8e4b15": (4, 3, 15, lambda code: True),
}


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_eight_bit_floats_are_rounded_to_nearest_even(runtime, name):
    *shape, finite = EIGHT_BITS[name]
    codes = {code: decode(code, *shape) for code in range(256) if finite(code)}
    largest = max(codes.values())
    generator = np.random.default_rng(1)
    samples = [*codes.values(), *generator.uniform(-largest, largest, 500), *generator.normal(0, 0.01, 500)]
    ordered = sorted(set(codes.values()))
    samples += [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    for value in samples:
        code = runtime.precast_float_bits(value, TYPE_CODES[name])
        assert code in nearest_code(value, codes), (value, code)
    nan = runtime.precast_float_bits(float("nan"), TYPE_CODES[name])
    assert nan not in codes or name == "fp8e4b15"


@settings(max_examples=500, deadline=None)
@given(st.floats(allow_nan=False, width=64))
def test_half_precision_is_rounded_as_numpy_does(runtime, value):
    with np.errstate(over="ignore", under="ignore"):
        assert runtime.precast_float_bits(value, TYPE_CODES["fp16"]) == int(np.float16(value).view(np.uint16))
        single = int(np.float32(value).view(np.uint32))
        assert runtime.precast_float_bits(value, TYPE_CODES["fp32"]) == single


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_brain_floats_are_rounded_to_nearest_even(runtime, value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    expected = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    assert runtime.precast_float_bits(value, TYPE_CODES["bf16"]) == expected


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_digests_are_sha256(runtime, data, cuts):
    hash_state, digest = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    runtime.precast_sha256_start(hash_state)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(edges):
        runtime.precast_sha256_add(hash_state, data[start:end], ctypes.c_size_t(end - start))
    runtime.precast_sha256_finish(hash_state, digest)
    assert digest.raw == hashlib.sha256(data).digest()
