"""An incremental build is a clean build: random edits of every kind of input, byte by byte."""

import pytest
from edits import EditedProject, differences

SEED = 20261130


def check_rounds(folder, rounds: int, seed: int) -> None:
    """Each round edits one to three times, with or without builds between, and builds; a copy is built from nothing."""
    print(f"seed {seed}")
    project = EditedProject(folder / "project", seed)
    assert project.tree.build().code == 0
    told = []
    for number in range(rounds):
        for _ in range(project.random.randint(1, 3)):
            told.append(project.edit())
            if project.random.random() < 0.25:
                project.tree.build()
        told.append("build")
        incremental, clean = project.tree.build(), project.clean_build(folder / "clean")
        story = f"seed {seed}, round {number}: {told[-12:]}"
        assert clean.code == 0, f"{story}\n{clean.out}{clean.err}"
        assert incremental.code == 0, f"{story}\n{incremental.out}{incremental.err}"
        assert incremental.release.name == clean.release.name, story
        assert differences(incremental.release, clean.release) == [], story
        again = project.tree.build()
        assert (again.code, again.steps) == (0, []), story


def test_incremental_builds_are_clean_builds(tmp_path):
    check_rounds(tmp_path, 15, SEED)


@pytest.mark.all
@pytest.mark.parametrize("part", range(3))
def test_more_incremental_builds_are_clean_builds(tmp_path, part):
    check_rounds(tmp_path, 20, SEED + 1 + part)


@pytest.mark.soak
def test_incremental_builds_are_clean_builds_for_hours(tmp_path):
    for part in range(100):
        check_rounds(tmp_path / str(part), 30, SEED + 1000 + part)
