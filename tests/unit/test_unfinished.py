"""What a killed build left is found by its mark; where there is none, nobody looks through all of the build folder."""

from pathlib import Path

import pytest

from precast.graph.unfinished import MARK, begin_writing, end_writing, holds_unfinished

DEEP = ("build/store/objects/7f/.75e.0123456789ab.tmp", "build/units/cuda-90/.k0.0123456789ab.tmp/k0.ptx")
SHALLOW = ("build/.digests.json.0123456789ab.tmp", "build/kernels/.k0.json.0123456789ab.tmp")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("build/store/objects/7f/75e", *DEEP, *SHALLOW):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def left(project: Path) -> list[str]:
    return [name for name in (*DEEP, *SHALLOW) if (project / name).exists()]


def test_all_is_looked_through_after_a_build_that_did_not_end(project: Path) -> None:
    (project / MARK).touch()
    begin_writing(project)
    assert left(project) == [] and (project / "build/store/objects/7f/75e").exists()
    assert (project / MARK).exists() and holds_unfinished(project)


def test_little_is_looked_through_after_one_that_did(project: Path) -> None:
    begin_writing(project)
    assert left(project) == list(DEEP)
    end_writing(project)
    assert not holds_unfinished(project)


@pytest.mark.parametrize("name", SHALLOW)
def test_what_commands_leave_that_build_nothing_is_noticed(tmp_path: Path, name: str) -> None:
    assert not holds_unfinished(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert holds_unfinished(tmp_path)
