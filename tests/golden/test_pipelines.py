"""The passes of every target, as listings: their diff shows what another Triton, or an edit of ours, changed."""

from pathlib import Path

import pytest

from precast.engines.triton.listings import list_target
from precast.passes.pipeline import render_pipeline
from precast.target import ARCHITECTURES, Backend, Target

FOLDER = Path(__file__).parent / "pipelines"
TARGETS = [Target(kind.value, arch) for kind in Backend for arch in ARCHITECTURES[kind]]


@pytest.fixture(autouse=True)
def fixed_environment(monkeypatch):
    """What a worker's environment says of Triton."""
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def listing(target: Target) -> str:
    text = "".join(render_pipeline(each) for each in list_target(target))
    if target.kind is not Backend.CPU:
        gluon = [each for each in list_target(target, gluon=True) if each.stage == "ttgir"]
        text += "".join("gluon " + render_pipeline(each) for each in gluon)
    return text


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_listing_is_the_golden_one(target: Target, update: bool):
    file = FOLDER / f"{target.folder}.txt"
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(listing(target))
    assert listing(target) == file.read_text()


def test_no_golden_file_is_left_over():
    assert {path.stem for path in FOLDER.iterdir()} == {target.folder for target in TARGETS}
