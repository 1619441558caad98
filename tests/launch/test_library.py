"""The library as C and C++ programs use it: headers, CMake, pkg-config, its sources, two releases at once, trust."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from launch_release import HERE, WARNINGS, TestUnit, all_units, build_release, run, scale_units, write

import precast.launch.context
import precast.launch.formats.index
import precast.launch.formats.interface
from precast.launch import _launch, sources
from precast.launch.formats import describe_interface
from precast.launch.formats.records import HEADER, RECORDS, SECTION
from precast.release.manifest import read_manifest
from precast.release.sign import make_keys, sign_release
from precast.release.verify import find_faults

PROJECT = HERE / "cmake_project"


@pytest.mark.parametrize("language", [["-x", "c", "-std=c99"], ["-x", "c++", "-std=c++17"]])
def test_header_compiles_alone(release: Path, tmp_path: Path, language: list[str]):
    (tmp_path / "use.c").write_text('#include "small.h"\n')
    run(["cc", *language, "-pedantic", "-Wall", "-Wextra", *WARNINGS, f"-I{release}/include", "-fsyntax-only", "use.c"],
        tmp_path)  # fmt: skip


def test_cmake_project_finds_the_release(release: Path, tmp_path: Path):
    run(["cmake", "-S", str(PROJECT), "-B", str(tmp_path), f"-DCMAKE_PREFIX_PATH={release}"])
    run(["cmake", "--build", str(tmp_path)])
    assert run([str(tmp_path / "example_c")]) == "252\n"
    assert run([str(tmp_path / "example_cxx")]) == "252\n"


FINDING = """
cmake_minimum_required(VERSION 3.19)
project(finding LANGUAGES NONE)
get_cmake_property(before VARIABLES)
find_package(small REQUIRED OPTIONAL_COMPONENTS y)
get_cmake_property(after VARIABLES)
list(REMOVE_ITEM after ${before} before)
message("VARIABLES ${after}")
foreach(asked 1 1.0 1.2 1.2.3 1.2.4 1.3 2 0.9 "1.0...2" "1.0...<1.2.3" "2...3" "1.2.3;EXACT" "1.2;EXACT"
        "COMPONENTS;x" "1;OPTIONAL_COMPONENTS;x")
  unset(small_DIR CACHE)
  find_package(small ${asked} QUIET)
  message("ASKED ${asked}: ${small_FOUND}")
endforeach()
"""


def test_cmake_serves_a_release_s_own_major_version_and_leaves_no_variables(release: Path, tmp_path: Path):
    (tmp_path / "CMakeLists.txt").write_text(FINDING)
    words = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={release}"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    found = dict(re.findall(r"^ASKED (.*): (\d)$", said, re.M))
    assert [asked for asked in found if found[asked] == "1"] == [
        "1", "1.0", "1.2", "1.2.3", "1.0...2", "1.2.3;EXACT", "1;OPTIONAL_COMPONENTS;x",
    ]  # fmt: skip
    assert len(found) == 15
    [left] = re.findall(r"^VARIABLES (.*)$", said, re.M)
    own = {"small_CONFIG", "small_CONSIDERED_CONFIGS", "small_CONSIDERED_VERSIONS", "small_DIR", "small_FOUND",
           "small_VERSION", "small_VERSION_COUNT", "small_VERSION_MAJOR", "small_VERSION_MINOR", "small_VERSION_PATCH",
           "small_VERSION_TWEAK"}  # fmt: skip
    assert set(left.split(";")) - own == set()


VERSIONS = """
#include <stdio.h>
#include "small.h"

int main(void) {
    small *k;
    precast_status s = small_open("/nowhere", &k);
    printf("%s %s %s ", SMALL_VERSION, small_version(), precast_status_name(s));
    puts(precast_status_name((precast_status)99));
    return 0;
}
"""


@pytest.mark.parametrize("language", [["-x", "c", "-std=c99"], ["-x", "c++", "-std=c++17"]], ids=["C", "C++"])
def test_versions_and_statuses_have_names(release: Path, tmp_path: Path, language: list[str]):
    (tmp_path / "use.c").write_text(VERSIONS)
    library = [f"-L{release}/lib", "-lsmall", f"-Wl,-rpath,{release}/lib"]
    run(
        ["cc", *language, "-Wall", "-Wextra", "-Werror", f"-I{release}/include", "use.c", "-o", "use", *library],
        tmp_path,
    )
    assert run([str(tmp_path / "use")]) == "1.2.3 1.2.3 PRECAST_NO_RELEASE no status of precast.h\n"


def test_every_status_has_its_name(release: Path):
    header = (release / "include/precast.h").read_text()
    statuses = re.findall(r"^    (PRECAST_[A-Z_]+) = \d+", header, re.M)
    assert len(statuses) > 12 and re.findall(r'case (\w+): return "(\w+)";', header) == [
        (each, each) for each in statuses
    ]


def needed_by(program: Path) -> list[str]:
    listing = run(["readelf", "-d", str(program)])
    return re.findall(r"\(NEEDED\) .*\[(.*)\]", listing)


def test_a_program_outlives_the_move_of_its_release(release: Path, tmp_path: Path):
    """Linked by soname, with CMake's target and with pkg-config's flags; configured anew where the release is then."""
    place = Path(shutil.copytree(release, tmp_path / "first", symlinks=True))
    run(["cmake", "-S", str(PROJECT), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={place}"])
    run(["cmake", "--build", str(tmp_path / "build")])
    environment = {**os.environ, "PKG_CONFIG_PATH": str(place / "lib/pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "small"], env=environment).split()
    run(["cc", "-std=c99", str(PROJECT / "main.c"), "-o", str(tmp_path / "by_flags"), *flags])
    programs = [tmp_path / "build/example_c", tmp_path / "build/example_cxx", tmp_path / "by_flags"]
    assert all("libsmall.so" in needed_by(program) for program in programs)
    assert not any("/" in name for program in programs for name in needed_by(program))
    moved = place.rename(tmp_path / "second")
    for program in programs:
        assert run([str(program)], env={**os.environ, "LD_LIBRARY_PATH": str(moved / "lib")}) == "252\n"
    run(["cmake", "-S", str(PROJECT), "-B", str(tmp_path / "again"), f"-DCMAKE_PREFIX_PATH={moved}"])
    run(["cmake", "--build", str(tmp_path / "again")])
    assert run([str(tmp_path / "again/example_c")]) == "252\n"


def test_pkg_config_finds_the_release(release: Path, tmp_path: Path):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(release / "lib/pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "small"], env=environment).split()
    run(["cc", "-std=c99", str(PROJECT / "main.c"), "-o", "example", *flags, f"-Wl,-rpath,{release}/lib"], tmp_path)
    assert run([str(tmp_path / "example")]) == "252\n"


def test_sources_of_a_release_build_on_their_own(release: Path, tmp_path: Path):
    run(["cmake", "-S", str(release / "src"), "-B", str(tmp_path)])
    run(["cmake", "--build", str(tmp_path), "-j2"])
    names = run(["nm", "-D", "--defined-only", str(tmp_path / "libsmall.so")]).split("\n")
    assert any(name.endswith(" small_scale") for name in names) and not any(" precast_" in name for name in names)


@pytest.fixture(scope="module")
def other_abi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the next launch ABI, as a later Precast would make it."""
    folder = tmp_path_factory.mktemp("other")
    with pytest.MonkeyPatch.context() as patch:
        for module in (precast.launch.formats.index, precast.launch.formats.interface, precast.launch.context):
            patch.setattr(module, "LAUNCH_ABI", 2)
        runtime = folder / "runtime"
        shutil.copytree(sources.RUNTIME, runtime)
        header = (runtime / "precast.h").read_text()
        (runtime / "precast.h").write_text(header.replace("PRECAST_LAUNCH_ABI 1", "PRECAST_LAUNCH_ABI 2"))
        patch.setattr(sources, "RUNTIME", runtime)
        return build_release(folder / "release", list(scale_units()), name="other", selection=())


def test_two_launch_abis_in_one_process(release: Path, other_abi: Path, tmp_path: Path):
    program = tmp_path / "two"
    run(["cc", "-std=c11", "-D_GNU_SOURCE", f"-I{release}/include", str(HERE / "two_libraries.c"), "-o", str(program),
         "-ldl"])  # fmt: skip
    assert run([str(program), str(release), str(other_abi)]) == (
        "10 30\n"
        "2 /index.bin has launch ABI 2, this library has launch ABI 1\n"
        "2 /index.bin has launch ABI 1, this library has launch ABI 2\n"
    )


def refusal(folder: Path, **options: object) -> tuple[int, str]:
    with pytest.raises(_launch.LaunchError) as caught:
        _launch.open(str(folder), **options).selfcheck()
    return caught.value.status, str(caught.value).replace(f"{folder}/", "")


def copy_of(release: Path, folder: Path) -> Path:
    """Without what Python keeps of modules that other tests imported."""
    return Path(shutil.copytree(release, folder / "copy", ignore=shutil.ignore_patterns("__pycache__")))


def change(path: Path, place: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


def test_mismatches_are_refused_in_one_sentence(release: Path, tmp_path: Path):
    index, pack = copy_of(release, tmp_path) / "index.bin", tmp_path / "copy/targets/cuda-90/scale.pack"
    whole, packed = index.read_bytes(), pack.read_bytes()
    digest = whole[24:56].hex()
    cases = [
        (lambda: change(index, 8, b"\3"), (2, "index.bin has schema 3, this library reads schema 2")),
        (lambda: change(index, 12, b"\2"), (2, "index.bin has launch ABI 2, this library has launch ABI 1")),
        (lambda: change(index, 0, b"X"), (3, "index.bin is not the index of a release")),
        (lambda: change(index, 300, bytes([whole[300] ^ 1])), (3, "index.bin does not match its own digest")),
        (lambda: index.write_bytes(whole[:-8]),
         (3, f"index.bin is {len(whole) - 8} bytes long, its header says {len(whole)}")),
        (lambda: index.write_bytes(b""), (3, "index.bin is empty or not a file")),
        (index.unlink, (1, "cannot open index.bin: No such file or directory")),
        (lambda: pack.write_bytes(packed[:-1]),
         (3, f"targets/cuda-90/scale.pack is {len(packed) - 1} bytes long, index.bin says {len(packed)}")),
        (pack.unlink, (1, "cannot open targets/cuda-90/scale.pack: No such file or directory")),
    ]  # fmt: skip
    for damage, expected in cases:
        damage()
        assert refusal(tmp_path / "copy") == expected
        index.write_bytes(whole)
        pack.write_bytes(packed)
    assert refusal(tmp_path / "copy", interface="0" * 64) == (
        2, f"index.bin has interface {digest[:12]}, the launchers were generated for interface 000000000000",
    )  # fmt: skip


def test_selfcheck_compares_manifest_and_index(release: Path, tmp_path: Path):
    folder = copy_of(release, tmp_path)
    path, manifest = folder / "manifest.json", read_manifest(folder)
    whole, index = path.read_bytes(), hashlib.sha256((folder / "index.bin").read_bytes()).hexdigest()
    listed = next(file for file in manifest.files if file.path == "index.bin")
    others = tuple(file for file in manifest.files if file is not listed)
    with_another = replace(manifest, files=(*others, replace(listed, digest="0123456789abcdef" * 4)))
    cases = [
        (path.unlink, (1, "cannot open manifest.json: No such file or directory")),
        (lambda: path.write_bytes(b""), (3, "manifest.json is empty or not a file")),
        (lambda: path.write_bytes(whole[:-1]), None),
        (lambda: path.write_bytes(whole[:-3]), (3, "manifest.json does not match its own digest")),
        (lambda: path.write_bytes(whole[:5000]), (3, "manifest.json does not match its own digest")),
        (lambda: path.write_bytes(whole[:30]), (3, "manifest.json does not match its own digest")),
        (lambda: path.write_bytes(whole.replace(b'"glibc": ""', b'"glibc": " "')),
         (3, "manifest.json does not match its own digest")),
        (lambda: path.write_bytes(replace(manifest, files=others).data), (2, "manifest.json lists no index.bin")),
        (lambda: path.write_bytes(with_another.data),
         (2, f"manifest.json lists index.bin with digest 0123456789ab, the one beside it has digest {index[:12]}")),
    ]  # fmt: skip
    _launch.open(str(folder)).selfcheck()
    for damage, expected in cases:
        damage()
        if expected is None:  # the end of the last line says nothing
            _launch.open(str(folder)).selfcheck()
        else:
            assert refusal(folder) == expected


def reseal(index: Path, place: int, data: bytes) -> None:
    """A change that the index's own digest does not tell."""
    change(index, place, data)
    change(index, 56, bytes(32))
    change(index, 56, hashlib.sha256(index.read_bytes()).digest())


def test_tables_that_do_not_fit_are_refused(release: Path, tmp_path: Path):
    index = copy_of(release, tmp_path) / "index.bin"
    whole = index.read_bytes()
    for number, (section, record) in enumerate(RECORDS.items()):
        place = HEADER.size - 160 + SECTION.size * number
        offset, count = SECTION.unpack_from(whole, place)
        for wrong in ((len(whole) + 8, count), (offset, 2**32 - 1), (offset + 1, count), (0, count)):
            reseal(index, place, SECTION.pack(*wrong))
            assert refusal(tmp_path / "copy") == (3, "index.bin has a table that does not lie inside it"), section
            index.write_bytes(whole)
        if section not in ("strings", "slot_types"):  # which point at nothing
            reseal(index, offset, b"\xff" * record.size)
            assert refusal(tmp_path / "copy") == (3, "index.bin has a record that points outside its table"), section
            index.write_bytes(whole)


def of_kernel(name: str, body: str) -> list[TestUnit]:
    """The first CPU unit of a kernel, with another body."""
    first = next(each for each in all_units() if each.unit.kernel == name and each.unit.target.backend == "cpu")
    return [replace(first, body=body.replace("SYMBOL", first.facts.symbol))]


def test_cpu_units_that_do_not_go_with_the_index_are_refused(tmp_path: Path):
    lacking = "extern int nowhere(void); UNIT(SYMBOL) { NOTHING_OF_IT; return nowhere(); }"
    lacking = lacking.replace("NOTHING_OF_IT", "(void)arguments, (void)grid, (void)begin, (void)end, (void)scratch")
    cases = [
        ("NOTHING(another)", 2, "the CPU units have no symbol {symbol}, which index.bin names for {unit}"),
        (lacking, 12, "cannot open the CPU units: {library}: undefined symbol: nowhere"),
    ]
    for number, (body, status, expected) in enumerate(cases):
        units = of_kernel("nothing", body)
        folder = build_release(tmp_path / str(number), units, selection=())
        words = {"symbol": units[0].facts.symbol, "unit": units[0].unit, "library": next(folder.glob("lib/*.cpu-*.so"))}
        with pytest.raises(_launch.LaunchError) as caught:
            _launch.open(str(folder)).preload("nothing", device="cpu")
        assert (caught.value.status, str(caught.value)) == (status, expected.format(**words))


def test_stream_for_a_release_of_cpu_units_is_refused(tmp_path: Path):
    folder = build_release(tmp_path, of_kernel("nothing", "NOTHING(SYMBOL)"), selection=())
    kernel = _launch.open(str(folder)).kernel("nothing")
    kernel(5)
    with pytest.raises(_launch.LaunchError) as caught:
        kernel(5, stream=0x1234)
    assert (caught.value.status, str(caught.value)) == (
        5, "the stream is a GPU's, and the release has units for the CPU alone",
    )  # fmt: skip


def test_damaged_image_is_refused_at_its_first_use(release: Path, tmp_path: Path):
    folder = copy_of(release, tmp_path)
    library = folder / "lib/libsmall.cpu-x86-64-v3.so"
    change(library, library.stat().st_size // 2, bytes([library.read_bytes()[library.stat().st_size // 2] ^ 4]))
    opened = _launch.open(str(folder))
    opened.kernel("nothing")(5, MODE="fast", SIZE=1)
    with pytest.raises(_launch.LaunchError) as caught:
        opened.kernel("scale")(0, 0, 1, 64, dtype="fp32", BLOCK=64)
    assert caught.value.status == 3
    assert str(caught.value).startswith("what is in lib/libsmall.cpu-x86-64-v3.so has digest ")


def flip_bits(release: Path, folder: Path, count: int) -> None:
    """Flips one bit anywhere, `count` times; each is refused by the loader where it reads the file, or by verify.

    Files that the loader reads get nine in ten: it is quicker to ask.
    """
    copy = copy_of(release, folder)
    assert find_faults(copy) == []
    files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.stat().st_size]
    loaded = {
        copy / "index.bin",
        copy / "manifest.json",
        *(copy / "targets").rglob("*.pack"),
        *copy.glob("lib/libsmall.cpu-*.so"),
    }
    generator = random.Random(count)
    for _ in range(count):
        path = generator.choice(sorted(loaded) if generator.random() < 0.9 else files)
        place, bit = generator.randrange(path.stat().st_size), 1 << generator.randrange(8)
        with path.open("r+b") as file:
            file.seek(place)
            before = file.read(1)
            file.seek(place)
            file.write(bytes([before[0] ^ bit]))
        if path in loaded:
            refusal(copy)
        else:
            assert find_faults(copy), f"bit {bit} of byte {place} of {path} went unnoticed"
        with path.open("r+b") as file:
            file.seek(place)
            file.write(before)
    assert find_faults(copy) == []


def test_flipped_bits_are_refused(release: Path, tmp_path: Path):
    flip_bits(release, tmp_path, 200)


@pytest.mark.soak
def test_ten_thousand_flipped_bits_are_refused(release: Path, tmp_path: Path):
    flip_bits(release, tmp_path, 10_000)


def raw_key(path: Path) -> bytes:
    return load_pem_public_key(path.read_bytes()).public_bytes(Encoding.Raw, PublicFormat.Raw)


def test_signature_is_required_and_checked(release: Path, tmp_path: Path):
    folder, keys, others = copy_of(release, tmp_path), tmp_path / "keys", tmp_path / "others"
    keys.mkdir(), others.mkdir()
    secret, public = make_keys(keys)
    _, other = make_keys(others)
    assert refusal(folder, public_key=raw_key(public)) == (
        4, f"a signature is required, and {folder} is not signed",
    )  # fmt: skip
    sign_release(folder, secret)
    opened = _launch.open(str(folder), public_key=raw_key(public))
    opened.check_signature(raw_key(public))
    assert refusal(folder, public_key=raw_key(other)) == (4, "manifest.json is not signed by the key that is required")
    index = folder / "index.bin"
    shutil.copy(build_other_index(folder, tmp_path), index)
    assert refusal(folder, public_key=raw_key(public)) == (
        4, "index.bin is not the one that the signed manifest.json names",
    )  # fmt: skip


def build_other_index(folder: Path, work: Path) -> Path:
    """A good index that the manifest does not name."""
    empty = precast.launch.formats.ReleaseIndex(describe_interface("small", []), (), ())
    (work / "other.bin").write_bytes(precast.launch.formats.write_index(empty))
    return work / "other.bin"


def test_signature_that_cannot_be_checked_is_a_refusal(release: Path, tmp_path: Path):
    """With no libcrypto to be found, a required signature refuses the release."""
    folder = copy_of(release, tmp_path)
    (folder / "manifest.json.sig").write_text("00" * 64 + "\n")
    for name in ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"):
        write(tmp_path / "nothing" / name, b"not a library")
    code = (
        f"import sys; sys.path.insert(0, {str(folder / 'python/small')!r}); import _launch\n"
        f"try: _launch.open({str(folder)!r}, public_key=bytes(32))\n"
        "except _launch.LaunchError as error: print(error.status, error)\n"
    )
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "nothing")}
    output = run([sys.executable, "-I", "-S", "-c", code], env=environment)
    assert output == "4 a signature is required, and there is no libcrypto to check it with\n"


def test_release_may_move_and_be_read_only(release: Path, tmp_path: Path):
    folder = copy_of(release, tmp_path)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    code = (
        f"import array, sys; sys.dont_write_bytecode = True; sys.path.insert(0, {str(folder / 'python')!r})\n"
        "import small\n"
        "x = array.array('f', range(64)); place = x.buffer_info()[0]\n"
        "small.scale(place, place, 2, 64, dtype='fp32', BLOCK=64); print(x[63])\n"
    )
    assert run([sys.executable, "-I", "-S", "-c", code], env={}) == "126.0\n"
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


def link_or_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        try:
            os.link(source.resolve(), target)
        except OSError:
            shutil.copy(source, target)


def fill_root(root: Path, release: Path) -> None:
    """libc, Python with its own library, and a release: nothing else."""
    python, library = Path(sys.executable).resolve(), Path(sysconfig.get_paths()["stdlib"])
    objects = [python, *(release / "lib").glob("*.so"), *(library / "lib-dynload").glob("array.*.so")]
    for item in objects:
        for line in run(["ldd", str(item)]).splitlines():
            found = [word for word in line.split() if word.startswith("/")]
            for name in found:
                link_or_copy(Path(name), root / name[1:])
    link_or_copy(python, root / str(python)[1:])
    skipped = {"test", "site-packages", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "__pycache__"}
    for path in library.rglob("*"):
        if path.is_file() and not skipped & set(path.relative_to(library).parts):
            link_or_copy(path, root / str(path)[1:])
    shutil.copytree(release, root / "release")


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the root folder is for the superuser")
def test_release_runs_in_an_empty_root(release: Path, tmp_path: Path):
    root = tmp_path / "root"
    fill_root(root, release)
    code = (
        "import sys; sys.path.insert(0, '/release/python'); import array, small\n"
        "x = array.array('f', range(64)); place = x.buffer_info()[0]\n"
        "small.scale(place, place, 2, 64, dtype='fp32', BLOCK=64); print(x[63]); small.selfcheck()\n"
    )
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*"))
    chroot = shutil.which("chroot") or "/usr/sbin/chroot"
    command = [chroot, str(root), str(Path(sys.executable).resolve()), "-I", "-S", "-B", "-c", code]
    result = subprocess.run(command, env={}, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "126.0\n"), result.stderr
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*")) == before
