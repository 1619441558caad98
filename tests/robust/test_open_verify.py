"""`verify`, `sign` and `package` on releases that somebody forged, and on folders that hold anything but files."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from open_setup import IMAGES, forge, make_packaged, make_parts

from precast.bounded import MOST_FILE_BYTES
from precast.cli import main
from precast.launch.formats import describe_interface, index
from precast.release.claims import find_false_claims
from precast.release.contents import compose_release
from precast.release.folder import place_release
from precast.release.manifest import MANIFEST, parse_manifest
from precast.release.sign import make_keys, sign_release
from precast.release.verify import find_faults


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_packaged(tmp_path)


def verdict(capsys, *words: str) -> str:
    """What `precast` says of something that is not good: one exit code, no traceback."""
    assert main(list(words)) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    assert all(letter == "\n" or letter.isprintable() for letter in captured.err), captured.err
    return captured.err


def file_of(body, path):
    return next(file for file in body["files"] if file["path"] == path)


def rename_file(path):
    return lambda body: file_of(body, "src/demo.c").update(path=path)


def change_unit(**changes):
    return lambda body: body["units"][0].update(changes)


def change_facts(**changes):
    return lambda body: body["units"][0]["facts"].update(changes)


def list_twice(body):
    body["files"].insert(1, dict(body["files"][0]))


def list_unit_twice(body):
    body["units"].insert(1, dict(body["units"][0]))


FORGED = {
    "a path to above": (rename_file("../../../evil"), "`../../../evil` is no path of a file in a release"),
    "a path from the root": (rename_file("/tmp/evil"), "`/tmp/evil` is no path of a file in a release"),
    "a path through above": (rename_file("src/../../x"), "`src/../../x` is no path of a file in a release"),
    "a path with a gap": (rename_file("src//x"), "`src//x` is no path of a file in a release"),
    "a path to here": (rename_file("./x"), "`./x` is no path of a file in a release"),
    "a path of another system": (rename_file("..\\x"), "`..\\x` is no path of a file in a release"),
    "a path of two lines": (rename_file("src/a\nb"), "`src/a\\nb` is no path of a file in a release"),
    "a path that ends a text": (rename_file("src/a\0b"), "`src/a\\x00b` is no path of a file in a release"),
    "a path with a terminal's words": (rename_file("src/\x1b[2J"), "`src/\\x1b[2J` is no path of a file in a release"),
    "a path of nothing": (rename_file(""), "`` is no path of a file in a release"),
    "the manifest in itself": (rename_file(MANIFEST), "`manifest.json` is no path of a file in a release"),
    "bytecode": (rename_file("python/demo/__pycache__/a.pyc"),
                 "`python/demo/__pycache__/a.pyc` is no path of a file in a release"),
    "a file as a folder": (rename_file("index.bin/x"), "`index.bin` is a file and a folder"),
    "a file twice": (list_twice, "it lists `index.bin` twice"),
    "a size below zero": (lambda body: file_of(body, "src/demo.c").update(size=-1),
                          "`src/demo.c` cannot have -1 bytes"),
    "a size of terabytes": (lambda body: file_of(body, "src/demo.c").update(size=2**42),
                            "`src/demo.c` cannot have 4398046511104 bytes"),
    "a digest of other letters": (lambda body: file_of(body, "src/demo.c").update(digest="A" * 64),
                                  "`src/demo.c` has no digest"),
    "no index": (lambda body: body["files"].remove(file_of(body, "index.bin")), "it lists no index.bin"),
    "a name with folders": (lambda body: body.update(name="../../evil"), "`../../evil` is no name"),
    "a version with folders": (lambda body: body.update(project_version="../../pwn"), "`../../pwn` is no version"),
    "a version of two lines": (lambda body: body.update(project_version="1\nRequires-Dist: evil"),
                               "`1\\nRequires-Dist: evil` is no version"),
    "a version with an end": (lambda body: body.update(project_version="1\n"), "`1\\n` is no version"),
    "an odd glibc": (lambda body: body.update(glibc="2.17_x86_64/../../x"),
                     "`2.17_x86_64/../../x` is no version of glibc"),
    "an odd interface": (lambda body: body.update(interface="x"), "`x` is no digest of an interface"),
    "a unit twice": (list_unit_twice, "it lists unit `copy:dtype=fp16@cuda:90` twice"),
    "a unit of another kernel": (change_unit(kernel="other"),
                                 "unit `copy:dtype=fp16@cuda:90` is not of kernel `other`"),
    "a unit of another target": (change_unit(target="hip:gfx942"),
                                 "unit `copy:dtype=fp16@cuda:90` is not of target `hip:gfx942`"),
    "a unit outside": (change_unit(file="../x.pack"),
                       "unit `copy:dtype=fp16@cuda:90` lies in `../x.pack`, which the release does not have"),
    "a unit in the index": (change_unit(file="index.bin"),
                            "unit `copy:dtype=fp16@cuda:90` cannot lie in `index.bin`, 9 bytes from 4096"),
    "a unit far out": (change_unit(offset=2**60),
                       "unit `copy:dtype=fp16@cuda:90` cannot lie in `targets/cuda-90/copy.pack`, 9 bytes from "
                       "1152921504606846976"),
    "a unit of no size": (change_unit(size=-9, offset=99),
                          "unit `copy:dtype=fp16@cuda:90` cannot lie in `targets/cuda-90/copy.pack`, -9 bytes from 99"),
    "a unit without a digest": (change_unit(digest=""), "unit `copy:dtype=fp16@cuda:90` has no digest"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_claims_that_cannot_be_are_told_and_nothing_is_packed(release: Path, tmp_path: Path, capsys, case: str) -> None:
    change, told = FORGED[case]
    forged = forge(release, change)
    before = sorted(tmp_path.rglob("*"))
    for words in (["verify", str(forged)], ["package", str(forged), "--out", str(tmp_path / "dist")]):
        assert f"{forged}/manifest.json is no manifest of a release: {told}\n" in verdict(capsys, *words)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_at_a_limit_may_be_and_what_is_beyond_may_not(release: Path) -> None:
    whole = parse_manifest((release / MANIFEST).read_bytes(), "it")
    host = "copy:dtype=fp16@cpu:x86-64-v3"

    def told(**changes):
        return list(find_false_claims(replace(whole, **changes)))

    def of_file(place=4, **changes):
        return {"files": tuple(replace(each, **changes) if n == place else each for n, each in enumerate(whole.files))}

    def of_unit(place=1, **changes):
        return {"units": tuple(replace(each, **changes) if n == place else each for n, each in enumerate(whole.units))}

    def on_cpu(offset=0, arch="x86-64-v3"):
        unit = {"unit": host, "target": "cpu:x86-64-v3", "file": f"lib/libdemo.cpu-{arch}.so", "size": 36}
        return {**of_unit(0, offset=offset, **unit), **of_file(1, path=f"lib/libdemo.cpu-{arch}.so")}

    def in_pack(path):
        packs = of_file(4, path=path, size=8201)
        return {**packs, **of_unit(0, file=path)}

    for good, bad in (
        ({"name": "n" * 200}, {"name": "n" * 201}),
        ({"project_version": "1" * 200}, {"project_version": "1" * 201}),
        (of_file(path="src/" + "x" * 255), of_file(path="src/" + "x" * 256)),
        (of_file(path="other.json.sig"), of_file(path="manifest.json.sig")),
        (of_file(size=MOST_FILE_BYTES), of_file(size=MOST_FILE_BYTES + 1)),
        (of_unit(offset=8192), of_unit(offset=8193)),
        (of_unit(offset=8201, size=0), of_unit(offset=8202, size=0)),
        (on_cpu(), {**on_cpu(), **of_unit(0, unit=host, target="cpu:x86-64-v3", file="lib/libdemo.cpu-x86-64-v3.so",
                                          offset=1, size=35)}),
        (on_cpu(), on_cpu(arch="x86-64-v4")),
        ({}, in_pack("targets/cuda-80/copy.pack")),
        ({}, in_pack("targets/cuda-90/other.pack")),
        ({}, of_unit(unit="copy:dtype=fp32@cuda:../90", target="cuda:../90")),
    ):  # fmt: skip
        assert told(**good) == [] and len(told(**bad)) == 1, bad
    assert told(**bad) == ["unit `copy:dtype=fp32@cuda:../90` is not of target `cuda:../90`"]


AGAINST_INDEX = {
    "another name": (lambda body: body.update(name="other"), "name, launch ABI or interface differ"),
    "another launch ABI": (lambda body: body.update(launch_abi=2), "name, launch ABI or interface differ"),
    "another interface": (lambda body: body.update(interface="0" * 64), "name, launch ABI or interface differ"),
    "a unit less": (lambda body: body["units"].pop(), "holds other units than the manifest says"),
    "another symbol": (change_facts(symbol="evil"), "says other things of copy:dtype=fp16@cuda:90 than the manifest"),
    "more warps": (change_facts(num_warps=8), "says other things of copy:dtype=fp16@cuda:90 than the manifest"),
    "more shared memory": (change_facts(shared_bytes=8), "says other things of copy:dtype=fp16@cuda:90 than"),
    "cooperative": (change_facts(cooperative=True), "says other things of copy:dtype=fp16@cuda:90 than the manifest"),
    "another source": (change_facts(source_digest="0" * 64), "says other things of copy:dtype=fp16@cuda:90 than"),
    "a parameter less": (lambda body: body["units"][0]["facts"]["parameters"].pop(0), "says other things of copy"),
    "a buffer more": (change_facts(buffers=[{"pass_name": "p", "bytes_per_program": 8}]), "says other things of copy"),
    "another place": (change_unit(offset=4097), "says other things of copy:dtype=fp16@cuda:90 than the manifest"),
    "another image": (change_unit(digest="0" * 64), "says other things of copy:dtype=fp16@cuda:90 than the manifest"),
}


@pytest.mark.parametrize("case", AGAINST_INDEX)
def test_what_the_index_does_not_say_is_told(release: Path, capsys, case: str) -> None:
    change, told = AGAINST_INDEX[case]
    forged = forge(release, change)
    assert f"{forged}/index.bin " in (said := verdict(capsys, "verify", str(forged))) and told in said


def test_a_pack_that_the_index_does_not_know_is_told(release: Path, capsys) -> None:
    """Every image in it is what it was; what lies between them is none of an image."""
    (pack,) = release.rglob("*.pack")
    data = bytearray(pack.read_bytes())
    last = len(data) // 4096 * 4096 - 1  # the end of what fills the page before the last image
    data[last] ^= 1
    pack.unlink()
    pack.write_bytes(data)

    def change(body) -> None:
        (file,) = (each for each in body["files"] if each["path"].endswith(".pack"))
        file["digest"] = hashlib.sha256(data).hexdigest()

    forged = forge(release, change)
    assert f"{forged}/index.bin names other files than the manifest says" in verdict(capsys, "verify", str(forged))


RECORDED = """
[kernel.copy]
source = "copy.py:copy_kernel"
grid = ["1"]
args = { out = "*fp16", n = "i32" }
constants = { BLOCK = 128 }
"""
DESCRIPTIONS = [
    [],
    {},
    {"constants": []},
    {"options": None},
    {"types": {"n": 1}},
    {"holds": [1]},
    {"grid": [{}]},
    {"source": 1},
    {"constants": {"BLOCK": {"spelled": 2}}},
    {"constants": {"BLOCK": [1]}},
    {"extra": 1},
]
CONTENTS = [{"types": {"n": "i32", "out": "?"}}, {"grid": ["("]}, {"constants": {"BLOCK": {"spelled": ")"}}}]


@pytest.mark.parametrize("change", [*DESCRIPTIONS, *CONTENTS], ids=str)
def test_index_that_describes_its_units_otherwise_is_told(tmp_path: Path, capsys, monkeypatch, change: object) -> None:
    """Its digest is right, and so is the manifest."""
    write = index._description

    def describe(unit, facts):
        whole = json.loads(write(unit, facts))
        return json.dumps({**whole, **change} if isinstance(change, dict) and change else change)

    monkeypatch.setattr(index, "_description", describe)
    contents, manifest = compose_release(make_parts(tmp_path, IMAGES))
    placed = place_release(tmp_path / "home", contents, manifest)
    (tmp_path / "copy.toml").write_text(RECORDED)
    readers = [
        ["verify", placed],
        ["merge", placed, "--project", tmp_path],
        ["coverage", placed, tmp_path / "copy.toml"],
    ]
    for words in readers[1:2] if change in CONTENTS else readers:
        assert str(placed) in verdict(capsys, *map(str, words))


def test_pack_of_other_units_than_the_manifest_says_is_told(tmp_path: Path, capsys) -> None:
    """Manifest and index agree on one unit; the pack, whose digest both have right, holds two."""
    parts = make_parts(tmp_path, IMAGES)
    (built,) = parts.images
    one = (replace(built, units=built.units[:1]),)
    interface = describe_interface("demo", [built.units[0][0]])
    contents, manifest = compose_release(replace(parts, images=one, interface=interface))
    place_release(tmp_path / "home", contents, manifest)
    placed = tmp_path / "home" / manifest.version
    assert verdict(capsys, "verify", str(placed)) == (
        f"error: {placed}/targets/cuda-90/copy.pack holds other units than the manifest says\n"
        "hint: build it again, or fetch it again\n"
    )


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # its name must be short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def make_hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 42)


KINDS = {
    "a pipe": (make_pipe, " is no file"),
    "a socket": (make_socket, " is no file"),
    "a folder": (Path.mkdir, " is no file"),
    "a link": (lambda path: path.symlink_to("/etc/passwd"), " is no file of its own, but a link"),
    "a link to itself": (lambda path: path.symlink_to(path), " is no file of its own, but a link"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), " is no file of its own, but a link"),
    "a hole of terabytes": (make_hole, "4398046511104 bytes"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [MANIFEST, "manifest.json.sig", "index.bin", "targets/cuda-90/copy.pack"])
def test_what_is_no_file_is_not_waited_for(release: Path, tmp_path: Path, capsys, name: str, kind: str) -> None:
    make, told = KINDS[kind]
    secret, public = make_keys(tmp_path)
    sign_release(release, secret)
    (release / name).unlink()
    make(release / name)
    assert told in verdict(capsys, "verify", str(release), "--key", str(public))


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "caf\udce9", "‮abc", "x" * 250])
def test_odd_names_are_told_on_one_line(release: Path, capsys, name: str) -> None:
    (release / "lib" / name).touch()
    said = verdict(capsys, "verify", str(release))
    assert said.count("\n") == 2 and " does not belong to the release\n" in said


def test_links_and_bytecode_elsewhere_do_not_belong(release: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "evil").mkdir()
    (release / "more").symlink_to(tmp_path / "evil")
    (release / "lib/__pycache__").mkdir()
    (release / "lib/__pycache__/x.pyc").touch()
    (release / "python/demo/__pycache__").mkdir()
    (release / "python/demo/__pycache__/x.so").touch()
    said = verdict(capsys, "verify", str(release))
    assert [line.removeprefix("error: ") for line in said.splitlines()[:-1]] == [
        f"{release}/lib/__pycache__/x.pyc does not belong to the release",
        f"{release}/more does not belong to the release",
        f"{release}/python/demo/__pycache__/x.so does not belong to the release",
    ]


def test_many_faults_are_counted(release: Path) -> None:
    for number in range(150):
        (release / f"extra{number}").touch()
    faults = find_faults(release)
    assert len(faults) == 101 and faults[100] == "… and 50 more"


@pytest.mark.parametrize("content", [
    b"", b"\0", b"[]", b"1", b"null", b'{"schema": 1}', b'{"schema": "\\u001b"}', b"[" * 100_000, b'{"schema": 1e999}',
    b'{"content": "aa5b087f0d0ea90f5786a4097cd0e07c153a6f0694a066e9e9f521b8181ba29c", "name": "x", "schema": 1}',
    b'{"schema": 1, "name": "\\ud800"}', b"\xff\xfe{\0}\0", b'{"schema": ' + b"9" * 5000 + b"}",
])  # fmt: skip
def test_manifest_of_any_bytes_is_told(tmp_path: Path, capsys, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    assert f"error: {tmp_path}/manifest.json " in verdict(capsys, "verify", str(tmp_path))


@pytest.mark.parametrize(("field", "value"), [("units", [None]), ("files", [{"path": 1}]), ("tools", [["a"]]),
                                              ("name", None), ("launch_abi", "1"), ("glibc", 2.17), ("extra", 1),
                                              ("interface", "\ud800")])  # fmt: skip
def test_manifest_of_another_shape_is_told(release: Path, capsys, field: str, value: object) -> None:
    forged = forge(release, lambda body: body.update({field: value}))
    assert f"error: {forged}/manifest.json is damaged: " in verdict(capsys, "verify", str(forged))


def install(release: Path, folder: Path) -> Path:
    assert main(["package", str(release), "--out", str(folder)]) == 0
    (wheel,) = folder.glob("*.whl")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--target"]
    subprocess.run([*command, str(folder / "site"), str(wheel)], check=True)
    return folder / "site" / "demo"


def test_installed_package_is_verified_with_its_python_and_its_extension(release: Path, tmp_path: Path, capsys) -> None:
    secret, public = make_keys(tmp_path)
    sign_release(release, secret)
    package = install(release, tmp_path)
    capsys.readouterr()
    for folder in (package, package / "_release"):
        assert main(["verify", str(folder), "--key", str(public)]) == 0
        assert capsys.readouterr().out.endswith(f"2 units, 6 files, good, signed by {public}\n")
    for name in ("__init__.py", "_launch.abi3.so", "_release/index.bin", "_release/lib/libdemo.so"):
        whole = (package / name).read_bytes()
        (package / name).write_bytes(whole[:-1] + b"!")
        assert f"{package}/{name} is damaged: " in verdict(capsys, "verify", str(package))
        (package / name).unlink()
        assert f"{package}/{name} is absent" in verdict(capsys, "verify", str(package))
        (package / name).write_bytes(whole)
    (package / "evil.py").touch()
    assert f"{package}/evil.py does not belong to the release" in verdict(capsys, "verify", str(package))
    (package / "evil.py").unlink()
    (package / "__pycache__").mkdir()
    (package / "__pycache__/__init__.cpython-311.pyc").touch()
    assert main(["verify", str(package)]) == 0
    capsys.readouterr()
    assert "and Python would run it" in verdict(capsys, "verify", str(package), "--key", str(public))
    assert "is an installed package" in verdict(capsys, "package", str(package), "--out", str(tmp_path))


def test_wheel_has_no_member_outside_its_package(release: Path, tmp_path: Path) -> None:
    assert main(["package", str(release), "--out", str(tmp_path)]) == 0
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("demo/", f"demo-{release.name}.dist-info/")) for name in names)


def test_version_that_no_wheel_can_have_is_not_packed(release: Path, tmp_path: Path, capsys) -> None:
    manifest = parse_manifest((release / MANIFEST).read_bytes(), "")
    parts = make_parts(tmp_path / "other", IMAGES)
    contents, manifest = compose_release(replace(parts, project_version="1.0+local"))
    placed = place_release(tmp_path / "home", contents, manifest)
    assert verdict(capsys, "package", str(placed), "--out", str(tmp_path / "dist")) == (
        "error: `1.0+local` cannot be a wheel's version\n"
        "hint: write the project's version as 1.4.2, without a local part\n"
    )
