"""The index: fresh only when key, inputs and outputs are as they were, whatever a file's times say."""

import os
import sqlite3
import time

import pytest

from precast.errors import ToolError
from precast.graph.index import Index


@pytest.fixture
def open_index(tmp_path):
    return lambda: Index(tmp_path / "build" / "index.sqlite", tmp_path)


def make(tmp_path, name, text="text"):
    (tmp_path / name).write_text(text)
    return name


def settle(tmp_path, name):
    """Gives a file times that are old enough to be trusted."""
    past = time.time_ns() - 10**9
    os.utime(tmp_path / name, ns=(past, past))
    time.sleep(0.06)


def test_recorded_step_is_fresh_after_reopening(tmp_path, open_index):
    output, source = make(tmp_path, "output"), make(tmp_path, "source")
    first = open_index()
    first.record("unit:a", "k1", first.digests([source]), [output], "note")
    again = open_index()
    assert again.is_fresh("unit:a", "k1")
    assert not again.is_fresh("unit:a", "k2")
    assert not again.is_fresh("unit:b", "k1")
    assert again.step("unit:a").note == "note"


@pytest.mark.parametrize("name", ["output", "source"])
def test_edit_of_same_size_and_mtime_is_noticed(tmp_path, open_index, name):
    output, source = make(tmp_path, "output"), make(tmp_path, "source")
    settle(tmp_path, name)
    index = open_index()
    index.record("unit:a", "k", index.digests([source]), [output])
    status = os.stat(tmp_path / name)
    (tmp_path / name).write_text("tex!")
    os.utime(tmp_path / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not index.is_fresh("unit:a", "k")


def test_edit_right_after_digest_is_noticed(tmp_path, open_index):
    index = open_index()
    for turn in range(20):
        output = make(tmp_path, "output", f"{turn:04}")
        index.record("unit:a", "k", {}, [output])
        make(tmp_path, "output", f"{turn + 1:04}")
        assert not index.is_fresh("unit:a", "k")


def test_touch_without_change_stays_fresh(tmp_path, open_index):
    output = make(tmp_path, "output")
    index = open_index()
    index.record("unit:a", "k", {}, [output])
    os.utime(tmp_path / output)
    assert index.is_fresh("unit:a", "k")


def test_absent_output_is_stale_and_cannot_be_recorded(tmp_path, open_index):
    output = make(tmp_path, "output")
    index = open_index()
    index.record("unit:a", "k", {}, [output])
    (tmp_path / output).unlink()
    assert not index.is_fresh("unit:a", "k")
    with pytest.raises(ToolError, match="output is gone"):
        index.record("unit:a", "k", {}, [output])


def test_link_that_moved_is_noticed(tmp_path, open_index):
    os.symlink("one", tmp_path / "current")
    index = open_index()
    index.record("release", "k", {}, ["current"])
    assert index.is_fresh("release", "k")
    (tmp_path / "current").unlink()
    os.symlink("two", tmp_path / "current")
    assert not index.is_fresh("release", "k")


def test_forgotten_steps_are_gone_after_reopening(tmp_path, open_index):
    output = make(tmp_path, "output")
    index = open_index()
    index.record("unit:a", "k", {}, [output])
    index.forget(["unit:a"])
    (tmp_path / output).unlink()
    index.forget_absent_files()
    assert open_index().steps == ()


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look at", b""])
def test_damaged_index_is_made_anew(tmp_path, open_index, content):
    index = open_index()
    index.record("unit:a", "k", {}, [make(tmp_path, "output")])
    index.close()
    (tmp_path / "build" / "index.sqlite").write_bytes(content)
    assert open_index().steps == ()


def test_index_of_another_version_is_made_anew(tmp_path, open_index):
    open_index().close()
    with sqlite3.connect(tmp_path / "build" / "index.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert open_index().steps == ()
