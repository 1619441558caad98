"""A release made by hand, of real parts but no compiler: two GPU units in packs and a handful of files."""

from pathlib import Path

from precast.artifact import Facts, Parameter, PassRun, UnitResult
from precast.launch.formats import describe_interface, write_pack
from precast.release.contents import BuiltImages, ReleaseParts, compose_release
from precast.release.folder import place_release
from precast.spec.model import Argument, Source, Unit, Variant
from precast.store import digest_bytes, write_file
from precast.target import Target


def make_unit(dtype: str, target: str = "cuda:90") -> Unit:
    return Unit(
        variant=Variant("copy", (("dtype", dtype),)),
        target=Target.parse(target),
        source=Source("copy.py", "", "copy_kernel"),
        arguments=(
            Argument("out", f"*{dtype}", divisibility=16),
            Argument("n", "i32"),
            Argument("BLOCK", "constexpr", value=128),
        ),
        options=(("num_warps", 4),),
        grid=("cdiv(n, BLOCK)", "1", "1"),
    )


def make_result(unit: Unit, image: bytes) -> UnitResult:
    parameters = (
        Parameter("argument", "out", f"*{dict(unit.variant.values)['dtype']}"),
        Parameter("argument", "n", "i32"),
        Parameter("global_scratch", "", "*i8"),
        Parameter("profile_scratch", "", "*i8"),
    )
    facts = Facts(symbol="copy_kernel", parameters=parameters, num_warps=4, registers=20, spill_bytes=0)
    return UnitResult(
        str(unit),
        digest_bytes(image),
        facts,
        (),
        passes=(PassRun("rename", "python", "ttir", "start", (("suffix", "x"),), "ab"),),
    )


def make_parts(folder: Path, images: dict[str, bytes]) -> ReleaseParts:
    """Parts of a release that holds one unit per dtype in `images`."""
    units = [(make_unit(dtype), image) for dtype, image in images.items()]
    pack = folder / "build" / "copy.pack"
    write_file(pack, write_pack([(str(unit), image) for unit, image in units]))
    library = folder / "build" / "libdemo.so"
    write_file(library, b"\x7fELF GLIBC_2.17 GLIBC_2.4 GLIBC_2.34", mode=0o755)
    built = tuple((unit, make_result(unit, image)) for unit, image in units)
    return ReleaseParts(
        name="demo",
        project_version="1.2",
        interface=describe_interface("demo", [unit for unit, _ in units]),
        images=(BuiltImages("targets/cuda-90/copy.pack", pack, built),),
        files={"lib/libdemo.so": library},
        tools=(("triton", "3.9.0"), ("cc", "gcc 12")),
    )


def make_release(folder: Path, images: dict[str, bytes] | None = None) -> Path:
    """A placed release; its home is `folder`/generated/demo."""
    contents, manifest = compose_release(make_parts(folder, images or {"fp16": b"image one", "fp32": b"image two"}))
    return place_release(folder / "generated" / "demo", contents, manifest)
