"""Digests of files: remembered between runs, never wrong for it."""

import hashlib
import json
import os
import time

import pytest

from precast.digest import FileDigests, digest_pairs, digest_text

OLD_NS = time.time_ns() - 10**11


def write_old(path, text):
    path.write_text(text)
    os.utime(path, ns=(OLD_NS, OLD_NS))


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


def test_a_file_that_was_just_written_is_not_remembered(tmp_path):
    memory, file = tmp_path / "m.json", tmp_path / "a"
    file.write_text("one")
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
    assert json.loads(memory.read_text())["files"]


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
    assert [os.path.basename(name) for name in json.loads(memory.read_text())["files"]] == ["b"]


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(OSError):
        FileDigests().digest(tmp_path / "gone")
