"""The index: fresh only when key, inputs and outputs are as they were, whatever a file's times say."""

import os
import random
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


def settle(monkeypatch):
    """Lets so much time go by that the times of files can be trusted."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)


def until_ctime_moves(path, change):
    """Makes a change, again until the file system's clock has gone on: two within a step of it look like one."""
    before = os.stat(path).st_ctime_ns
    while os.stat(path).st_ctime_ns == before:
        change()


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
def test_edit_of_same_size_and_mtime_is_noticed(tmp_path, open_index, monkeypatch, name):
    output, source = make(tmp_path, "output"), make(tmp_path, "source")
    settle(monkeypatch)
    index = open_index()
    index.record("unit:a", "k", index.digests([source]), [output])
    status = os.stat(tmp_path / name)

    def edit():
        (tmp_path / name).write_text("tex!")
        os.utime(tmp_path / name, ns=(status.st_atime_ns, status.st_mtime_ns))

    until_ctime_moves(tmp_path / name, edit)
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


def test_file_just_written_is_not_trusted(tmp_path, open_index, monkeypatch):
    """Its times may stay the same when it is written again: here they do, always."""
    output = make(tmp_path, "output")
    now = time.time_ns()
    times = {"st_mtime_ns": now, "st_ctime_ns": now}
    monkeypatch.setattr(time, "time_ns", lambda: now)
    for name in ("lstat", "fstat"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *words, real=real: os.stat_result(real(*words), times))
    index = open_index()
    index.record("unit:a", "k", {}, [output])
    make(tmp_path, "output", "tex!")
    assert not index.is_fresh("unit:a", "k")
    index.close()
    assert not open_index().is_fresh("unit:a", "k")


def test_file_that_settled_is_not_read_again(tmp_path, open_index, monkeypatch):
    output = make(tmp_path, "output")
    settle(monkeypatch)
    index = open_index()
    index.record("unit:a", "k", {}, [output])
    index.close()
    until_ctime_moves(tmp_path / output, lambda: (tmp_path / output).chmod(0o644))
    opened, real = [], os.open
    monkeypatch.setattr(os, "open", lambda *words, **more: opened.append(words) or real(*words, **more))
    again = open_index()
    assert again.is_fresh("unit:a", "k") and len(opened) == 1  # the mode moved the ctime: looked at once more
    assert again.is_fresh("unit:a", "k") and len(opened) == 1


ROWS = {
    "key": "UPDATE steps SET key = 'k2'",
    "output": "UPDATE steps SET outputs = replace(outputs, 'a', 'b')",
    "input": "UPDATE steps SET inputs = '{}'",
    "note": "UPDATE steps SET note = 'other'",
    "kind": "UPDATE steps SET outputs = 5",
    "nothing": "UPDATE steps SET inputs = NULL",
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_row_with_a_changed_word_is_as_if_it_had_never_been(tmp_path, open_index, change):
    index = open_index()
    make(tmp_path, "source")
    index.record("unit:a", "k1", index.digests(["source"]), [make(tmp_path, "aaa")], "note")
    index.close()
    with sqlite3.connect(tmp_path / "build" / "index.sqlite") as connection:
        connection.execute(change)
    again = open_index()
    assert again.steps == () and not again.is_fresh("unit:a", "k1") and not again.is_fresh("unit:a", "k2")


def test_wrong_digest_of_a_file_is_not_believed(tmp_path, open_index, monkeypatch):
    output = make(tmp_path, "output")
    settle(monkeypatch)
    index = open_index()
    right = index.digest(output)
    index.close()
    with sqlite3.connect(tmp_path / "build" / "index.sqlite") as connection:
        changed = connection.execute("UPDATE files SET digest = replace(digest, substr(digest, 1, 4), 'beef')")
        assert changed.rowcount == 1
    assert open_index().digest(output) == right


def test_any_flipped_byte_costs_time_alone(tmp_path, open_index):
    """Whatever byte is wrong, what the index still says is true, and it can be written to."""
    outputs = [make(tmp_path, f"output{number}") for number in range(8)]
    index = open_index()
    for number, output in enumerate(outputs):
        index.record(f"unit:{number}", f"key{number}", index.digests(outputs[:number]), [output])
    kept = {name: index.step(name) for name in index.steps}
    index.close()
    place = tmp_path / "build" / "index.sqlite"
    whole = place.read_bytes()
    used = [number for number, byte in enumerate(whole) if byte]
    print("seed 7,", len(used), "bytes in use")
    for number in random.Random(7).sample(used, 150):
        place.write_bytes(whole[:number] + bytes([whole[number] ^ 0x11]) + whole[number + 1 :])
        again = open_index()
        assert all(again.step(name) == kept.get(name) for name in again.steps)
        again.record("unit:new", "key", {}, outputs)
        again.close()
        assert "unit:new" in open_index().steps


def test_a_header_that_speaks_of_another_sqlite_costs_time_alone(tmp_path, open_index):
    """SQLite calls a file that a later version may have written read-only, and some damage an error of the disk."""
    index = open_index()
    index.record("unit:a", "k", {}, [make(tmp_path, "output")])
    index.close()
    place = tmp_path / "build" / "index.sqlite"
    whole = place.read_bytes()
    for number in range(100):
        place.write_bytes(whole[:number] + b"\x09" + whole[number + 1 :])
        again = open_index()
        again.record("unit:new", "key", {}, [])
        again.close()
        assert "unit:new" in open_index().steps


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
