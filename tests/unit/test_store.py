"""The store: verified reads, writes that are whole or absent, bad disks told in one sentence."""

import os
import resource
import subprocess
import sys
import threading

import pytest

from precast.errors import ToolError
from precast.store import Store, digest_bytes, link_file, remove_drafts, sync_tree, write_file


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def damage(path, offset=0):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def test_bytes_come_back_by_digest(store):
    digest = store.put(b"image")
    assert digest == digest_bytes(b"image")
    assert store.get(digest) == b"image"
    assert store.get(digest_bytes(b"other")) is None


def test_damaged_object_is_removed_and_absent(store):
    digest = store.put(b"image")
    damage(store.object_path(digest))
    assert store.get(digest) is None
    assert not store.object_path(digest).exists()


def test_put_replaces_damaged_object_of_same_size(store):
    digest = store.put(b"image")
    damage(store.object_path(digest))
    assert store.put(b"image") == digest
    assert store.get(digest) == b"image"


def test_record_comes_back_and_later_value_wins(store):
    key = digest_bytes(b"key")
    assert store.get_record(key) is None
    store.put_record(key, b"one\ntwo")
    assert store.get_record(key) == b"one\ntwo"
    store.put_record(key, b"")
    assert store.get_record(key) == b""


def test_values_that_come_together_are_one_file_with_several_names(store):
    values = {digest_bytes(name): name * 3 for name in (b"one", b"", b"th\nree: ")}
    store.put_records(values)
    assert {key: store.get_record(key) for key in values} == values
    paths = [store.record_path(key) for key in values]
    assert len({path.stat().st_ino for path in paths}) == 1
    first, *others = values
    store.put_record(first, b"another")  # which is no matter of theirs
    assert store.get_record(first) == b"another" and [store.get_record(key) for key in others] == [*values.values()][1:]
    damage(paths[1], -1)
    assert [store.get_record(key) for key in values] == [b"another", None, None]
    assert [path.exists() for path in paths] == [True, False, False]


@pytest.mark.parametrize("offset", [0, 64, 65, 67])
def test_damaged_record_is_removed_and_absent(store, offset):
    key = digest_bytes(b"key")
    store.put_record(key, b"one")
    damage(store.record_path(key), offset)
    assert store.get_record(key) is None
    assert not store.record_path(key).exists()


def test_record_in_the_place_of_another_is_absent(store):
    one, other = digest_bytes(b"one"), digest_bytes(b"other")
    store.put_record(one, b"value")
    store.record_path(other).parent.mkdir(parents=True)
    store.record_path(one).rename(store.record_path(other))
    assert store.get_record(other) is None


def test_device_that_fails_is_told(store, monkeypatch):
    digest = store.put(b"image")

    def fail(*_):
        raise OSError(5, os.strerror(5))

    with monkeypatch.context() as patch, pytest.raises(ToolError) as caught:
        patch.setattr(os, "open", fail)
        store.get(digest)
    assert str(caught.value) == f"cannot read {store.object_path(digest)}: input/output error"
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ToolError) as caught:
        write_file(store.root / "file", b"")
    assert str(caught.value) == f"cannot write {store.root / 'file'}: input/output error"


def test_durable_file_is_on_the_disk_before_its_name_is(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *words, name=name, real=real: done.append(name) or real(*words))
    write_file(tmp_path / "a", b"image", durable=True)
    assert done == ["fsync", "replace", "fsync"]
    done.clear()
    sync_tree(tmp_path)
    assert done == ["fsync", "fsync"]


def test_link_places_bytes_and_replaces_what_was_there(store, tmp_path):
    place = tmp_path / "deep" / "image.cubin"
    store.link(store.put(b"old"), place)
    store.link(store.put(b"new"), place)
    assert place.read_bytes() == b"new"
    assert store.get(digest_bytes(b"old")) == b"old"
    assert [each.name for each in place.parent.iterdir()] == ["image.cubin"]


def test_link_of_damaged_object_is_refused(store, tmp_path):
    digest = store.put(b"image")
    damage(store.object_path(digest))
    with pytest.raises(ToolError) as caught:
        store.link(digest, tmp_path / "image")
    assert str(caught.value) == f"the store has lost {digest[:12]}, meant for {tmp_path / 'image'}"
    assert not (tmp_path / "image").exists()


def test_link_copies_where_hard_links_are_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(18, os.strerror(18))

    monkeypatch.setattr(os, "link", refuse)
    write_file(tmp_path / "a", b"image")
    link_file(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"image"


def test_writers_of_one_entry_agree(store):
    threads = [threading.Thread(target=lambda: [store.put(b"x" * 10_000) for _ in range(50)]) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    digest = digest_bytes(b"x" * 10_000)
    assert store.get(digest) == b"x" * 10_000
    assert [each.name for each in store.object_path(digest).parent.iterdir()] == [digest[2:]]


FULL_DISK = """
import pathlib, sys
from precast.errors import ToolError
from precast.store import write_file
path = pathlib.Path(sys.argv[1])
try:
    write_file(path, b"y" * 100_000)
except ToolError as error:
    print(error, error.hint, sep="|", end="")
"""


def test_full_disk_leaves_old_content_and_no_draft(tmp_path):
    path = tmp_path / "output"
    path.write_bytes(b"old")
    told = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == f"no space left to write {path}|free some space, then run the same again"
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["output"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_read_only_folder_is_told(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    with pytest.raises(ToolError, match=r"cannot write .*closed/output: permission denied"):
        write_file(closed / "output", b"x")


def test_drafts_go_and_nothing_else_does(tmp_path, monkeypatch):
    """What a writer leaves that is killed, or that cannot remove it; what a link leads to is somebody else's."""
    monkeypatch.setattr(os, "replace", lambda *names: os._exit(9))
    for name in ("top", "a/b/c/deep", "elsewhere/other"):
        if os.fork() == 0:
            write_file(tmp_path / "in" / name if name[0] != "e" else tmp_path / name, b"half")
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
    (tmp_path / "in/link").symlink_to(tmp_path / "elsewhere")
    for name in (".hidden", "a/table.tmp", "a/b/c/whole"):
        (tmp_path / "in" / name).touch()
    remove_drafts(tmp_path / "in")
    remove_drafts(tmp_path / "absent")
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left[:1] == [next((tmp_path / "elsewhere").iterdir()).relative_to(tmp_path).as_posix()]
    assert left[1:] == ["in/.hidden", "in/a/b/c/whole", "in/a/table.tmp"]
