"""What a build reads may be anything: kind and size first, at their limits, and nothing is waited for."""

import errno
import os

import pytest

from precast.bounded import IrregularFileError, chunks_of, digest_bounded, holds, open_bounded, read_bounded


def refusal(path, **how):
    with pytest.raises(IrregularFileError) as caught:
        read_bounded(path, **how)
    assert caught.value.filename == str(path)
    return caught.value.errno


def test_a_file_may_have_the_most_bytes_and_not_one_more(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_bounded(path, 10) == b"x" * 10
    assert refusal(path, most=9) == errno.EFBIG


def test_a_file_that_grows_while_it_is_read_is_read_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    for more, fits in ((0, True), (1, True), (2, False)):
        with open_bounded(path, 11) as stream:
            path.write_bytes(b"x" * (10 + more))
            if fits:
                assert b"".join(chunks_of(stream, path, 11)) == b"x" * (10 + more)
            else:
                with pytest.raises(IrregularFileError):
                    list(chunks_of(stream, path, 11))
        path.write_bytes(b"x" * 10)


def test_a_link_is_followed_where_it_may_be_one(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"x")
    link.symlink_to(path)
    assert read_bounded(link) == b"x" and digest_bounded(link) == digest_bounded(path)
    assert refusal(link, follow=False) == errno.ELOOP
    assert holds(link, b"x") and not holds(link, b"x", follow=False) and not holds(path, b"y")


def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert refusal(tmp_path / "pipe") == errno.EINVAL
    assert refusal(tmp_path) == errno.EISDIR
    assert refusal("/dev/zero") == errno.EINVAL


def change_before_opening(monkeypatch, path, change):
    """What lies at a path is another thing when it is opened than when it was looked at."""
    really_open = os.open

    def open_late(name, flags):
        path.unlink()
        change(path)
        return really_open(name, flags)

    monkeypatch.setattr(os, "open", open_late)


def test_what_takes_a_files_place_before_it_is_opened_is_looked_at_again(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    change_before_opening(monkeypatch, path, os.mkfifo)
    assert refusal(path) == errno.EINVAL


def test_a_link_that_takes_a_files_place_is_not_followed(tmp_path, monkeypatch):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"x")
    other.write_bytes(b"y")
    change_before_opening(monkeypatch, path, lambda path: path.symlink_to(other))
    with pytest.raises(OSError, match="symbolic links"):
        read_bounded(path, follow=False)
