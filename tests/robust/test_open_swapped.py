"""What is checked is what runs: signed opens while files are changed under their hands, and what they leave behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from open_setup import launch_release

from precast.release.sign import make_keys, public_key_hex, sign_release

HERE = Path(__file__).parent
LAUNCH = launch_release.HERE
QUICKLY = ("-O0",)  # compiled, as time is in the opens
MODES = ("exchanged library", "overwritten library", "exchanged index", "exchanged manifest", "exchanged folder")


class Signed(NamedTuple):
    """A signed release, one that nobody signed, and the public key in hexadecimal."""

    folder: Path
    other: Path
    key: str


def writing(number: int):
    """`scale` on the CPU, which writes a number and reads nothing."""
    wanted = "scale:dtype=fp32,BLOCK=64@cpu:x86-64-v2"
    first = next(each for each in launch_release.all_units() if str(each.unit) == wanted)
    body = f"UNIT({first.facts.symbol}) {{ (void)grid, (void)begin, (void)end, (void)scratch;"
    return [replace(first, body=f"{body} *(float *)arguments[0] = {number}; return 0; }}")]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    root = tmp_path_factory.mktemp("swapped")
    for name, number in (("good", 1), ("evil", 666)):
        launch_release.build_release(root / name, writing(number), selection=(), flags=QUICKLY)
    secret, public = make_keys(root)
    sign_release(root / "good", secret)
    shutil.copy(root / "good/manifest.json.sig", root / "evil")
    libraries = [(root / name / "lib/libsmall.cpu-x86-64-v2.so").read_bytes() for name in ("good", "evil")]
    assert len(libraries[0]) == len(libraries[1]) and libraries[0] != libraries[1]
    return Signed(root / "good", root / "evil", public_key_hex(public))


def compile_program(name: str, release: Path, folder: Path, *more: str) -> Path:
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{release}/include",
               f"-I{LAUNCH}", str(HERE / f"{name}.c"), "-o", str(folder / name), f"-L{release}/lib", "-lsmall",
               f"-Wl,-rpath,{folder}", *more, "-lpthread"]  # fmt: skip
    shutil.copy(release / "lib/libsmall.so", folder)  # the program's own stays where it is
    launch_release.run(command)
    return folder / name


def swap(signed: Signed, folder: Path, mode: str, opens: int) -> str:
    program = compile_program("swapped_opens", signed.folder, folder)
    for name in ("good", "evil"):
        shutil.copytree(signed.folder.parent / name, folder / name, symlinks=True)
    command = [program, mode, folder / "good", folder / "evil", signed.key, str(opens)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert result.returncode == 0 and result.stdout.endswith("0 ran what nobody signed\n"), result.stdout
    return result.stdout


@pytest.mark.parametrize("mode", MODES)
def test_nothing_unsigned_runs(signed: Signed, tmp_path: Path, mode: str) -> None:
    said = swap(signed, tmp_path, mode, 40)
    if mode.startswith("exchanged"):
        assert not said.startswith("0 ran right"), said


@pytest.mark.all
@pytest.mark.parametrize("mode", MODES)
def test_nothing_unsigned_runs_in_a_thousand_opens(signed: Signed, tmp_path: Path, mode: str) -> None:
    swap(signed, tmp_path, mode, 1000)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_nothing_unsigned_runs_in_ten_thousand_opens(signed: Signed, tmp_path: Path, mode: str) -> None:
    swap(signed, tmp_path, mode, 10_000)


def stay_flat(signed: Signed, folder: Path, opens: int, launches: int) -> None:
    program = compile_program("flat", signed.folder, folder)
    result = subprocess.run([program, signed.folder, signed.key, str(opens), str(launches)], capture_output=True,
                            text=True, timeout=3000)  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_opens_and_launches_leave_nothing_behind(signed: Signed, tmp_path: Path) -> None:
    stay_flat(signed, tmp_path, 100, 10_000)


@pytest.mark.all
def test_a_thousand_opens_and_a_hundred_thousand_launches_leave_nothing_behind(signed: Signed, tmp_path: Path) -> None:
    stay_flat(signed, tmp_path, 1000, 100_000)


@pytest.mark.soak
def test_ten_thousand_opens_and_a_million_launches_leave_nothing_behind(signed: Signed, tmp_path: Path) -> None:
    stay_flat(signed, tmp_path, 10_000, 1_000_000)


def test_driver_gets_the_image_that_was_checked(tmp_path: Path) -> None:
    units = [each for each in launch_release.all_units() if each.unit.kernel == "typed"]
    release = launch_release.build_release(tmp_path / "release", units, selection=(), flags=QUICKLY)
    fakes = launch_release.build_fakes(tmp_path / "fakes")
    (tmp_path / "program").mkdir()
    program = compile_program("changed_pack", release, tmp_path / "program", str(fakes / "cuda/libcuda.so.1"))
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{fakes}/cuda:{fakes}/none"}
    result = subprocess.run([program, release], env=environment, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout) == (0, "")
