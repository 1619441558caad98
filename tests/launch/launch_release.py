"""A small release for tests of the runtime: hand-written CPU units, and images that the drivers for tests understand.

Kernels: `scale` on every kind of target; `record` (scalars of all types, a tuple, an absent argument); `count` (scratch
on the CPU); `free` (`count` without a grid); `fail` (a device assertion); `tally` (a pass's buffer); `nothing`; on GPUs
`features`, one variant for each thing that a launch can carry; and on CUDA `steady`, whose grid never changes, `mixed`,
with parameters of all sizes, and `typed`, whose one axis of several values is an element type.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import struct
import subprocess
import sysconfig
import tempfile
from atexit import register
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from table_rules import SEED, draw_rules

from precast.artifact import DeviceBuffer, Facts, Parameter, TensorDescriptor
from precast.launch.flags import COMPILE_FLAGS, LINK_FLAGS, LINK_LIBRARIES, soname_flag
from precast.launch.formats import (
    LAUNCH_ABI,
    Condition,
    ImagePlace,
    IndexedUnit,
    ReleaseFile,
    ReleaseIndex,
    SelectionRule,
    describe_interface,
    interface_digest,
    read_pack,
    write_index,
    write_pack,
)
from precast.launch.sources import find_extension, library_sources, render_library
from precast.release.manifest import MANIFEST, Manifest, ManifestFile, ManifestUnit
from precast.spec.model import Argument, Hint, Source, Unit, Variant, spell
from precast.target import Target

HERE = Path(__file__).parent
WARNINGS = ("-Werror",)
SANITIZERS = {  # with functions that programs of tests call though a release hides them
    "address": ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fvisibility=default"),
    "thread": ("-O1", "-g", "-fsanitize=thread", "-fvisibility=default"),
}
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "fp16": 2,
         "bf16": 2, "fp32": 4, "fp64": 8, "fp8e5": 1, "fp8e4nv": 1}  # fmt: skip
RECORDED = ("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64", "fp8e5")

RECORD_CONSTANTS = (
    ("PINNED", 64),
    ("MODE", "fast"),
    ("CAP", None),
    ("EVEN", False),
    ("RATE", 0.5),
    ("TILE", spell((16, 8))),
)


@dataclass(frozen=True)
class TestUnit:
    """A unit with its facts, and the line that defines it in C (CPU) or the text of its image (GPU)."""

    __test__ = False
    unit: Unit
    facts: Facts
    body: str


def symbol_of(unit: Unit) -> str:
    return unit.slug.replace("-", "_")


def make_unit(kernel, target, values, arguments, grid, hints=(), **facts) -> tuple[Unit, Facts]:
    unit = Unit(Variant(kernel, tuple(values), tuple(hints)), Target.parse(target), Source("kernels.py", "", kernel),
                tuple(arguments), (), grid)  # fmt: skip
    parameters = [Parameter("descriptor" if each.type.startswith("tensordesc") else "argument", each.name, each.type,
                            written=target.startswith("cpu") and each.name == "out")
                  for each in arguments if each.type != "constexpr" and not each.constant]  # fmt: skip
    if unit.target.backend != "cpu":
        parameters += [Parameter("buffer", buffer.pass_name, "*i8") for buffer in facts.get("buffers", ())]
        parameters += [Parameter("global_scratch", "", "*i8"), Parameter("profile_scratch", "", "*i8")]
    elif facts.get("buffers"):
        parameters.append(Parameter("buffer", "tally", "*i8"))
    return unit, Facts(symbol_of(unit), tuple(parameters), **facts)


def scale_units() -> Iterator[TestUnit]:
    for target in ("cpu:x86-64-v2", "cpu:x86-64-v3", "cuda:80", "cuda:86", "cuda:90", "hip:gfx942"):
        for dtype in ("fp32", "fp64"):
            for block in (64, 256):
                for hints in ((), (Hint("n", 16),)):
                    hip = target.startswith("hip")
                    arguments = [
                        Argument("out", f"*{dtype}", divisibility=16),
                        Argument("x", f"*{dtype}", divisibility=16, range32=hip),
                        Argument("alpha", "fp32"),
                        Argument("n", "i32", divisibility=16 if hints else 0),
                        Argument("BLOCK", "constexpr", value=block),
                    ]
                    warp = 64 if hip else 32
                    values, grid = [("dtype", dtype), ("BLOCK", block)], ("cdiv(n, BLOCK)", "1", "1")
                    unit, facts = make_unit(
                        "scale", target, values, arguments, grid, hints, num_warps=4, warp_size=warp
                    )
                    c_type = {"fp32": "float", "fp64": "double"}[dtype]
                    body = f"SCALE({facts.symbol}, {c_type}, {block})" if unit.target.backend == "cpu" else ""
                    yield TestUnit(unit, facts, body)


def other_cpu_units() -> Iterator[TestUnit]:
    target = "cpu:x86-64-v2"
    scalars = [Argument(f"a_{name}", name) for name in RECORDED]
    pair = Argument("pair", "(i32, (*fp32, fp64))")
    for width in ("i32", "i64"):
        for real in ("fp16", "fp64"):
            varied = [Argument("count", width), Argument("real", real)]
            rest = [Argument("absent", "none", constant=True), Argument("one", "i32", constant=True, value=1)]
            fixed = [Argument(name, "constexpr", True, value) for name, value in RECORD_CONSTANTS]
            unit, facts = make_unit("record", target, [("WIDTH", width), ("REAL", real)],
                                    [Argument("out", "*i64"), *scalars, pair, *varied, *rest, *fixed], ("1", "1", "1"),
                                    [Hint("one", 1)])  # fmt: skip
            unit = replace(unit, defaults=(("real", 0.25), ("absent", None), ("one", 1)))
            yield TestUnit(unit, facts, f"RECORD({facts.symbol}, {len(RECORDED) + 5})")
    unit, facts = make_unit("count", target, [], [Argument("counts", "*i32"), Argument("n", "i32")], ("n", "1", "1"),
                            thread_scratch_bytes=65536)  # fmt: skip
    yield TestUnit(unit, facts, f"COUNT({facts.symbol}, 65536)")
    unit, facts = make_unit("free", target, [], [Argument("counts", "*i32"), Argument("n", "i32")], (),
                            thread_scratch_bytes=65536)  # fmt: skip
    yield TestUnit(unit, facts, f"COUNT({facts.symbol}, 65536)")
    unit, facts = make_unit("fail", target, [], [Argument("limit", "i64"), Argument("n", "i32")], ("n", "1", "1"))
    yield TestUnit(unit, facts, f"FAIL({facts.symbol})")
    unit, facts = make_unit("tally", target, [], [Argument("x", "*i32"), Argument("n", "i32")], ("n", "n", "1"),
                            buffers=(DeviceBuffer("tally", 8),))  # fmt: skip
    yield TestUnit(
        unit, replace(facts, parameters=(facts.parameters[0], facts.parameters[2])), f"TALLY({facts.symbol})"
    )
    for mode in ("slow", "fast"):
        for size in (1, 2):
            unit, facts = make_unit("nothing", target, [("MODE", mode), ("SIZE", size), ("FLAG", size == 2)],
                                    [Argument("n", "i32")], ("n", "1", "1"))  # fmt: skip
            yield TestUnit(unit, facts, f"NOTHING({facts.symbol})")


def feature_units() -> Iterator[TestUnit]:
    descriptor = TensorDescriptor("x", True, (64, 32), 6, 2, 3)
    features = {
        "plain": {},
        "cluster": {"num_ctas": 2},
        "cooperative": {"cooperative": True},
        "pdl": {"pdl": True},
        "shared": {"shared_bytes": 100_000},
        "too_much_shared": {"shared_bytes": 300_000},
        "scratch": {"global_scratch_bytes": 100, "global_scratch_align": 128, "num_ctas": 2},
        "aligned": {"global_scratch_bytes": 8, "global_scratch_align": 512},
        "profile": {"profile_scratch_bytes": 16, "profile_scratch_align": 16},
        "buffer": {"buffers": (DeviceBuffer("counters", 8),)},
        "descriptor": {"tensor_descriptors": (descriptor,)},
        "expanded": {"tensor_descriptors": (replace(descriptor, tma=False, element_type=0),)},
    }  # fmt: skip
    pairs = [(target, feature) for target in ("cuda:90", "hip:gfx942") for feature in features]
    pairs.remove(("hip:gfx942", "pdl"))
    for target, feature in pairs:
        kind, facts_of = "tensordesc<fp16[64,32]>", features[feature]
        arguments = [Argument("x", kind), Argument("n", "i64")]
        unit, facts = make_unit("features", target, [("FEATURE", feature)], arguments, ("n", "2", "1"), **facts_of)
        if "tensor_descriptors" not in facts_of:
            facts = replace(facts, parameters=facts.parameters[1:])
        yield TestUnit(unit, facts, "")


def steady_units() -> Iterator[TestUnit]:
    """A grid of numbers, and hints apart: launches that need nothing but the driver."""
    for target in ("cuda:86", "cuda:90"):
        for block in (64, 128):
            n, m, one = Hint("n", 16), Hint("m", 16), Hint("m", 1)
            for hints in ((one,), (n, m), (n,), (m,), ()):
                arguments = [
                    Argument("x", "*fp32", divisibility=16),
                    Argument("n", "i32", divisibility=16 if n in hints else 0),
                    Argument("m", "i32", constant=one in hints, value=1 if one in hints else None,
                             divisibility=16 if m in hints else 0),
                ]  # fmt: skip
                unit, facts = make_unit(
                    "steady", target, [("BLOCK", block)], arguments, ("2", "3", "1"), hints, num_warps=4
                )
                yield TestUnit(unit, facts, "")


def mixed_units() -> Iterator[TestUnit]:
    types = ("i8", "*fp32", "i16", "fp32", "i1", "i64", "fp16", "u8", "i32", "fp64", "u16")
    arguments = [Argument(f"a{number}", kind) for number, kind in enumerate(types)]
    yield TestUnit(*make_unit("mixed", "cuda:90", [], arguments, ("1", "1", "1"), num_warps=1), "")


def typed_units() -> Iterator[TestUnit]:
    for dtype in ("fp16", "fp32"):
        arguments = [Argument("out", f"*{dtype}"), Argument("x", f"*{dtype}"), Argument("n", "i32")]
        values = [("dtype", dtype), ("BLOCK", 64)]
        yield TestUnit(*make_unit("typed", "cuda:90", values, arguments, ("cdiv(n, BLOCK)", "1", "1")), "")


def all_units() -> list[TestUnit]:
    from choice_units import choice_units  # which is made with what stands here

    units = [*scale_units(), *other_cpu_units(), *feature_units(), *steady_units(), *mixed_units(), *typed_units(),
             *choice_units()]  # fmt: skip
    return [each if each.body else replace(each, body=fake_image(each)) for each in units]


def fake_image(each: TestUnit) -> str:
    """The text in an image that the drivers for tests understand."""
    sizes = []
    for parameter in each.facts.parameters:
        if parameter.kind == "descriptor":
            expanded = [8, 8, 8, 8, 8, 1, 1] if not each.facts.tensor_descriptors[0].tma else [128]
            sizes += [*expanded, 4, 4, 8, 8]
        else:
            sizes.append(SIZES.get(parameter.type, 8))
    return f"fake {each.facts.symbol} {','.join(map(str, sizes))}\0"


def wrap_image(text: bytes) -> bytes:
    """An ELF file whose first section is the text; the others are none and the names of all."""
    names = b"\0text\0names\0"
    table = 64 + len(text) + len(names)
    header = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = ((0, 0, 0, 0), (1, 1, 64, len(text)), (6, 3, 64 + len(text), len(names)))
    records = [struct.pack("<IIQQQQIIQQ", *section[:2], 0, 0, *section[2:], 0, 0, 1, 0) for section in sections]
    return b"".join([header, text, names, *records])


SELECTION = (
    SelectionRule("nothing", (Condition("n * 2", ">", 100), Condition("n", "!=", 77)), (("MODE", "fast"), ("SIZE", 2))),
    SelectionRule("nothing", (Condition("n", "<=", 50),), (("MODE", "slow"), ("SIZE", 1))),
    SelectionRule("ordered", (Condition("n", "==", 63),), (("BLOCK", 32),)),  # whose unit does not take 63
    SelectionRule("ordered", (Condition("n", "==", 64),), (("BLOCK", 32),)),
    SelectionRule("ordered", (Condition("n", "<=", 63),), (("BLOCK", 64),)),
    *draw_rules(SEED),
)


def build_release(folder: Path, units: Sequence[TestUnit] | None = None, *, flags: Sequence[str] = (),
                  name: str = "small", selection: Sequence[SelectionRule] = SELECTION) -> Path:  # fmt: skip
    """A whole release in `folder`: sources, library, packs, index, package.

    With `flags` (of a sanitizer) it has no Python extension.
    """
    units = all_units() if units is None else units
    interface = describe_interface(name, [each.unit for each in units])
    for file in render_library(interface, "1.2.3"):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    places: dict[str, ImagePlace] = {}
    files = [*_write_packs(folder, units, places), *_link_cpu_units(folder, name, units, places, flags)]
    indexed = tuple(IndexedUnit(each.unit, each.facts, places[str(each.unit)]) for each in units)
    index = ReleaseIndex(interface, indexed, tuple(files), tuple(selection))
    (folder / "index.bin").write_bytes(write_index(index))
    compile_library(folder, name, library_sources(interface), flags)
    if not flags:
        shutil.copy(find_extension(), folder / f"python/{name}/_launch.abi3.so")
    write_manifest(folder, index)
    return folder


def write_manifest(folder: Path, index: ReleaseIndex) -> None:
    """The manifest of what lies in `folder`."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    units = [
        ManifestUnit(str(each.unit), each.unit.kernel, str(each.unit.target), each.unit.source.text, each.image.file,
                     each.image.offset, each.image.size, each.image.digest, each.facts)
        for each in index.units
    ]  # fmt: skip
    files = [ManifestFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in contents.items()]
    digest = interface_digest(index.interface)
    manifest = Manifest(index.interface.name, "1.2.3", LAUNCH_ABI, digest, tuple(units), tuple(files))
    (folder / MANIFEST).write_bytes(manifest.data)


def compile_objects(folder: Path, sources: Sequence[str], place: str, flags: Sequence[str] = ()) -> list[str]:
    """The objects in the folder `place` of C files that a release has in its folder. The compiler of this run of tests
    keeps those that it makes: all releases have the same runtime."""
    compiler = os.environ.get("PRECAST_TEST_CC", "cc")
    # A release may well be called as one of the runtime's files.
    objects = {f"./{source}": f"{place}/{source.replace('/', '.')}.o" for source in sources}
    for source, made in objects.items():
        words = (*COMPILE_FLAGS, *WARNINGS, *flags, "-Iinclude", "-Isrc", "-c", source, "-o", made)
        run([compiler, *words], folder)
    return list(objects.values())


def compile_library(folder: Path, name: str, sources: Sequence[str], flags: Sequence[str] = ()) -> Path:
    output = folder / f"lib/lib{name}.so"
    libraries = [f"-l{library}" for library in LINK_LIBRARIES]
    link = ("-shared", soname_flag(output.name)) if flags else (*LINK_FLAGS, soname_flag(output.name))
    with tempfile.TemporaryDirectory() as place:
        objects = compile_objects(folder, sources, place, flags)
        run(["cc", *flags, *link, *objects, "-o", str(output), *libraries], folder)
    return output


def _write_packs(folder: Path, units: Sequence[TestUnit], places: dict[str, ImagePlace]) -> Iterator[ReleaseFile]:
    groups: dict[tuple[str, str], list[TestUnit]] = {}
    for each in units:
        if each.unit.target.backend != "cpu":
            groups.setdefault((each.unit.target.folder, each.unit.kernel), []).append(each)
    for (target, kernel), members in sorted(groups.items()):
        data = write_pack([(str(each.unit), wrap_image(each.body.encode())) for each in members])
        path = f"targets/{target}/{kernel}.pack"
        write(folder / path, data)
        for entry in read_pack(data):
            places[entry.unit] = ImagePlace(path, entry.offset, entry.size, entry.digest)
        yield ReleaseFile(path, len(data), hashlib.sha256(data).hexdigest())


def _link_cpu_units(
    folder: Path, name: str, units: Sequence[TestUnit], places: dict[str, ImagePlace], flags: Sequence[str]
) -> Iterator[ReleaseFile]:
    for target in sorted({each.unit.target for each in units if each.unit.target.backend == "cpu"}):
        members = [each for each in units if each.unit.target == target]
        path = f"lib/lib{name}.cpu-{target.arch}.so"
        source = "\n".join([f'#include "{HERE / "cpu_units.h"}"', *(each.body for each in members)])
        (folder / "lib").mkdir(exist_ok=True)
        write(folder / "units.c", source.encode())
        run(["cc", "-std=c11", "-O1", "-fPIC", "-shared", *flags, "units.c", "-o", path], folder)
        (folder / "units.c").unlink()
        data = (folder / path).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        places.update({str(each.unit): ImagePlace(path, 0, len(data), digest) for each in members})
        yield ReleaseFile(path, len(data), digest)


# Folders of libraries for LD_LIBRARY_PATH: what each library is made of, and how it is compiled.
DRIVERS = {
    "cuda": {"libcuda.so.1": ("fake_cuda.c",)},
    "hip": {"libamdhip64.so": ("fake_hip.c",)},
    "old_cuda": {"libcuda.so.1": ("fake_cuda.c", "-DOLD")},
    "old_hip": {"libamdhip64.so": ("fake_hip.c", "-DOLD")},
    "none": {"libcuda.so.1": ("fake_cuda.c", "-DDEVICES=0"), "libamdhip64.so": ("fake_hip.c", "-DDEVICES=0")},
    "empty_cuda": {"libcuda.so.1": ("/dev/null",)},
    "empty_hip": {"libamdhip64.so": ("/dev/null",)},
}


def build_fakes(folder: Path) -> Path:
    """The drivers for tests: one that works for each kind, older ones, ones without devices or functions, no library.

    A search path ends in `none`, so that the machine's own is not found.
    """
    return Path(shutil.copytree(_build_fakes(), folder, dirs_exist_ok=True))


@functools.cache
def _build_fakes() -> Path:
    """Those drivers, once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="precast-test-"))
    register(shutil.rmtree, folder, ignore_errors=True)
    flags = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{HERE}")
    for name, libraries in DRIVERS.items():
        (folder / name).mkdir(parents=True)
        for library, (source, *defined) in libraries.items():
            run(["cc", *flags, *defined, f"-Wl,-soname,{library}", "-x", "c", str(HERE / source), "-x", "none", "-o",
                 f"{name}/{library}", "-lpthread"], folder)  # fmt: skip
    for library in DRIVERS["none"]:
        write(folder / "text" / library, b"not a library")
    return folder


def run(command: Sequence[str], folder: Path | None = None, **options) -> str:
    """Runs a program that must succeed; its output."""
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"
    return result.stdout


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def python_headers() -> str:
    return sysconfig.get_paths()["include"]
