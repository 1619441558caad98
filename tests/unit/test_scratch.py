"""Temporary folders: whoever makes one has it, whatever other builds collect meanwhile."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from precast.scratch import Scratch, remove_abandoned


def collect(place: str, held: list[int]) -> None:
    """What another build does to a folder that nobody has locked yet, from start to end."""
    remove_abandoned()
    assert not Path(place).exists()


def take(place: str, held: list[int]) -> None:
    """The same, as far as the lock: that build is about to remove the folder."""
    held.append(os.open(place, os.O_RDONLY))
    fcntl.flock(held[0], fcntl.LOCK_EX)


@pytest.mark.parametrize("meanwhile", [collect, take])
def test_a_folder_that_others_take_before_it_is_locked_is_not_used(tmp_path, monkeypatch, meanwhile):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, held, make = [], [], tempfile.mkdtemp

    def mkdtemp(**words: str) -> str:
        made.append(make(**words))
        if len(made) == 1:
            meanwhile(made[0], held)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    mine = Scratch()
    assert [mine.name] == made[1:]
    for each in held:
        os.close(each)
    remove_abandoned()
    assert [str(path) for path in tmp_path.iterdir()] == [mine.name]
    mine.remove()
    assert not list(tmp_path.iterdir())
