"""An index whose digest is right and whose records are not: nothing of it is used, whichever field it is."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from index_file import IndexFile
from launch_release import all_units, make_unit
from wrong_indexes import CASES, unit_of, with_parameter

from precast.artifact import TensorDescriptor
from precast.launch import _launch
from precast.launch.formats import (
    ImagePlace,
    IndexedUnit,
    ReleaseFile,
    ReleaseIndex,
    describe_interface,
    interface_digest,
    write_index,
)
from precast.spec.model import Argument

WRONG = "index.bin has a record that points outside its table"
OTHER = "index.bin has other kernels than its interface digest says"


@pytest.fixture(scope="module")
def folder(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only what is read before an image is: the index."""
    folder = tmp_path_factory.mktemp("index") / "release"
    folder.mkdir()
    shutil.copy(release / "index.bin", folder)
    return folder


def refusal(index: IndexFile, folder: Path) -> str:
    index.seal(folder / "index.bin")
    with pytest.raises(_launch.LaunchError) as caught:
        _launch.open(str(folder))
    assert caught.value.status == 3
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("case", CASES)
def test_record_that_cannot_be_is_refused(release: Path, folder: Path, case: str) -> None:
    index = IndexFile((release / "index.bin").read_bytes())
    before = bytes(index.data)
    CASES[case](index)
    assert bytes(index.data) != before
    assert refusal(index, folder) == WRONG


def test_what_is_the_next_kernels_is_refused(folder: Path) -> None:
    """The slot and the axis beyond a kernel's last are the next one's first, which are of the right kind here."""
    made = []
    for name, dtype in itertools.product(("first", "second"), ("bf16", "fp16")):
        facts = {"tensor_descriptors": (TensorDescriptor("x", True, (64, 32), 6, 2, 3),)}
        arguments = [Argument("x", f"tensordesc<{dtype}[64,32]>")]
        made.append(make_unit(name, "cuda:90", [("dtype", dtype)], arguments, ("1", "1", "1"), **facts))
    file = ReleaseFile("targets/cuda-90/both.pack", 10, "0" * 64)
    place = ImagePlace(file.path, 0, file.size, file.digest)
    interface = describe_interface("small", [unit for unit, _ in made])
    units = tuple(IndexedUnit(unit, facts, place) for unit, facts in made)
    whole = write_index(ReleaseIndex(interface, units, (file,)))
    index = IndexFile(whole)
    index.seal(folder / "index.bin")
    _launch.open(str(folder))
    with_parameter("first", 1, slot="slots")(index)
    assert refusal(index, folder) == WRONG
    index = IndexFile(whole)
    assert index.get("slots", 0)["dtype_axis"] == 0
    index.set("slots", 0, dtype_axis=1)
    assert refusal(index, folder) == WRONG
    index = IndexFile(whole)
    index.set("kernels", 0, units_count=3)
    index.set("kernels", 1, units=3, units_count=1)
    assert refusal(index, folder) == WRONG


def test_what_is_at_its_limit_is_taken(release: Path, folder: Path) -> None:
    """The last slot, the last value, the most threads: limits belong to what is allowed."""
    index = IndexFile((release / "index.bin").read_bytes())
    number, unit = unit_of(index, "mixed")
    slots = index.get("kernels", unit["kernel"])["slots_count"]
    last = unit["parameters"] + slots - 1
    assert index.get("parameters", last)["slot"] == slots - 1
    index.set("units", number, warps=1024, warp_size=1024, ctas=1024, flags=3, arch_kind=2)
    image = index.get("images", unit["image"])
    size = index.get("files", image["file"])["size"]
    index.set("images", unit["image"], offset=size - image["size"])
    index.seal(folder / "index.bin")
    _launch.open(str(folder))


def test_kernels_that_a_launcher_does_not_know_are_refused(release: Path, folder: Path) -> None:
    """A launcher passes what it was generated for: an index of more slots under its digest would be read beyond."""
    whole = (release / "index.bin").read_bytes()
    interface = interface_digest(describe_interface("small", [each.unit for each in all_units()]))
    index = IndexFile(whole)
    assert whole[24:56].hex() == interface
    index.set_text(index.get("kernels", index.find("kernels", name="typed"))["name"], "typee")
    for number in range(index.count("units")):
        if index.text(index.get("units", number)["text"]).startswith("typed:"):
            place = index.get("units", number)["text"]
            index.set_text(place, index.text(place).replace("typed:", "typee:"))
    assert refusal(index, folder) == OTHER
    index = IndexFile(whole)
    place = index.find("axis_values", text="fast")
    index.set("axis_values", place, payload=index.get("axis_values", place)["payload"] + 5)
    assert refusal(index, folder) == OTHER
