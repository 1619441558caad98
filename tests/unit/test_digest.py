"""Digests of files: remembered between runs, never wrong for it."""

import hashlib
import json
import os
import time
from itertools import product
from types import SimpleNamespace

import pytest

from precast.digest import FileDigests, digest_pairs, digest_text, look_at, seal, unseal

OLD_NS = time.time_ns() - 10**11
NOW = time.time_ns


def write_old(path, text):
    """Again until the file system's clock has gone on: two changes within a step of it look like one."""
    before = path.stat().st_ctime_ns if path.exists() else 0
    while not path.exists() or path.stat().st_ctime_ns == before:
        path.write_text(text)
        os.utime(path, ns=(OLD_NS, OLD_NS))


@pytest.fixture(autouse=True)
def later(monkeypatch):
    """What a test writes, it wrote ten seconds ago."""
    monkeypatch.setattr(time, "time_ns", lambda: NOW() + 10**10)


class Watched(FileDigests):
    """Counts how often a content was read."""

    reads = 0

    def record(self, kind, path, make):
        def counted(data):
            self.reads += 1
            return make(data)

        return super().record(kind, path, counted)


def test_digest_is_sha256(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    assert FileDigests().digest(tmp_path / "a") == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert digest_text("ü") == hashlib.sha256("ü".encode()).hexdigest()
    assert digest_pairs([("a", "1"), ("b", "2")]) != digest_pairs([("b", "2"), ("a", "1")])


def test_what_is_remembered(tmp_path):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    write_old(file, "one")
    first = Watched(memory)
    assert first.record("length", file, len) == 3
    first.save()
    again = Watched(memory)
    assert (again.record("length", file, len), again.reads) == (3, 0)


def test_a_change_of_same_size_and_time_is_noticed(tmp_path):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    write_old(file, "one")
    first = FileDigests(memory)
    before = first.digest(file)
    first.save()
    write_old(file, "two")
    assert FileDigests(memory).digest(file) != before


def test_a_file_that_was_just_written_is_not_remembered(tmp_path, monkeypatch):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    file.write_text("one")
    monkeypatch.setattr(time, "time_ns", lambda: file.stat().st_ctime_ns + 10**9)
    digests = FileDigests(memory)
    digests.digest(file)
    digests.save()
    assert not memory.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 0}', '{"format": 1, "files": 3, "records": {}}'])
def test_a_damaged_memory_costs_time_alone(tmp_path, content):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    write_old(file, "one")
    memory.write_text(content)
    digests = FileDigests(memory)
    assert digests.digest(file) == hashlib.sha256(b"one").hexdigest()
    digests.save()
    assert remembered(memory)


def remembered(memory):
    return json.loads(unseal(memory.read_bytes()))["files"]


def test_a_flipped_digit_in_the_memory_is_not_believed(tmp_path):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    write_old(file, "one")
    first = FileDigests(memory)
    right = first.digest(file)
    first.save()
    damaged = memory.read_text().replace(right, right[:-1] + ("0" if right[-1] != "0" else "1"))
    assert damaged != memory.read_text() and json.loads(damaged.partition("\n")[2])
    memory.write_text(damaged)
    assert FileDigests(memory).digest(file) == right


def test_a_sealed_text_comes_back_whole_or_not_at_all():
    content = seal(b"some\nbytes")
    assert unseal(content) == b"some\nbytes" and unseal(b"") is None
    for place in range(len(content)):
        assert unseal(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]) is None


@pytest.fixture(params=[10**9, 2 * 10**9], ids=["1s", "2s"])
def coarse_times(request, monkeypatch):
    """The clock stands in the middle of a step, and every file that is asked about was written in that step."""
    now = time.time_ns() // request.param * request.param + request.param // 2
    step = now // request.param * request.param
    monkeypatch.setattr(time, "time_ns", lambda: now)
    for name in ("stat", "lstat", "fstat"):
        real = getattr(os, name)

        def told(*words, real=real, **more):
            return os.stat_result(real(*words, **more), {"st_mtime_ns": step, "st_ctime_ns": step})

        monkeypatch.setattr(os, name, told)


def test_an_edit_within_one_step_of_the_clock_is_noticed(tmp_path, coarse_times):
    file = tmp_path / "a"
    file.write_text("one")
    first = look_at(file)
    file.write_text("two")
    assert look_at(file, first).digest == digest_text("two")


def test_a_file_is_settled_only_when_both_times_are_older_than_any_step(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("one")
    now = time.time_ns()
    for mtime, ctime in product((1.0, 1.9, 2.0, 3.0, -60.0), repeat=2):
        status = os.stat(file)
        times = {"st_mtime_ns": now - int(mtime * 1e9), "st_ctime_ns": now - int(ctime * 1e9)}
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", lambda _, s=status, t=times: os.stat_result(s, t))
            patch.setattr(time, "time_ns", lambda: now)
            assert look_at(file).settled == (mtime == ctime == 3.0)


def test_a_file_that_moves_while_it_is_read_is_not_remembered_under_the_wrong_digest(tmp_path):
    file = tmp_path / "a"
    write_old(file, "one")
    digests = FileDigests()
    assert digests.digest(file) == digest_text("one")

    file.write_text("three")
    assert digests.record("length", file, len) == 5
    file.write_text("one")
    assert digests.record("length", file, len) == 3


def test_a_pipe_has_no_digest(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        look_at(tmp_path / "pipe")


def test_what_is_not_used_any_more_is_forgotten(tmp_path):
    memory = tmp_path / "m.json"
    for name in "ab":
        write_old(tmp_path / name, name)
    first = FileDigests(memory)
    first.digest(tmp_path / "a")
    first.save()
    second = FileDigests(memory)
    second.digest(tmp_path / "b")
    second.save()
    assert [os.path.basename(name) for name in remembered(memory)] == ["b"]


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(OSError):
        FileDigests().digest(tmp_path / "gone")


def test_a_file_is_asked_about_once(tmp_path, monkeypatch):
    memory, files = tmp_path / "m.json", [tmp_path / str(number) for number in range(50)]
    for file in files:
        write_old(file, file.name)
    first = FileDigests(memory)
    for file in files:
        first.record("length", file, len)
    first.save()
    again, asked, real = FileDigests(memory), [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: asked.append(str(path)) or real(path, **more))
    for file in files * 2:
        assert (again.record("length", file, len), again.digest(file)) == (len(file.name), digest_text(file.name))
    assert sorted(set(asked)) == sorted(asked) == sorted(map(str, files))


@pytest.mark.parametrize("field", ["st_size", "st_mtime_ns", "st_ctime_ns", "st_ino"])
def test_a_file_that_differs_in_anything_is_read_again(tmp_path, field):
    write_old(tmp_path / "a", "one")
    status = (tmp_path / "a").stat()
    state = look_at(tmp_path / "a")
    same = {name: getattr(status, name) for name in ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")}
    assert state.matches(SimpleNamespace(**same))
    assert not state.matches(SimpleNamespace(**{**same, field: same[field] + 1}))
