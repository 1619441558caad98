"""`precast cache` asked of places that are none: a sentence each, and an exit code of the user's mistakes."""

import pytest
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem

from precast.cli import main


def make_absent(folder):
    return folder / "nowhere"


def make_file(folder):
    path = folder / "file"
    path.write_text("")
    return path


def make_file_in_place_of_a_kind(folder):
    path = folder / "cache"
    path.mkdir()
    (path / "cas").write_text("")
    return path


PLACES = {
    "absent": (make_absent, "there is no such folder"),
    "a file": (make_file, "it is no folder"),
    "below a file": (lambda folder: make_file(folder) / "cache", "there is no such folder"),
    "a file within": (make_file_in_place_of_a_kind, "not a directory"),
}


@pytest.mark.parametrize("words", [["stats"], ["verify"], ["gc", "--limit", "1GB"]], ids=lambda words: words[0])
@pytest.mark.parametrize(("make", "cause"), PLACES.values(), ids=PLACES)
def test_a_place_that_holds_no_cache_is_told(tmp_path, capsys, words, make, cause):
    place = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["cache", *words, "--cache", str(place)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: the cache at {place} fails: {cause}\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_anything_is_an_empty_cache(tmp_path, capsys):
    assert main(["cache", "stats", "--cache", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "0 entries, 0 blobs, 0 B\n"


def test_a_bucket_that_is_not_there_is_told(capsys, monkeypatch):
    files = AsyncFileSystemWrapper(MemoryFileSystem())
    monkeypatch.setattr("fsspec.filesystem", lambda scheme, **options: files)
    assert main(["cache", "stats", "--cache", "s3://nobody/x"]) == 1
    assert capsys.readouterr().err == "error: the cache at s3://nobody/x fails: there is no such bucket\n"


SECRET = "ann:sec/ret@"
ADDRESSES = {
    f"http://{SECRET}host:port/x": "`http://host:port/x` is no address of a cache: it is no address",
    f"ftp://{SECRET}host/x": "`ftp://host/x` is no address of a cache",
    f"s3:/{SECRET}bucket": "is no address of a cache: two slashes come after `s3:`",
    "ftp://host/x": "`ftp://` is no place that Precast knows",
    "s3://": "it names no host or bucket",
    "http://": "it names no host or bucket",
}


@pytest.mark.parametrize("action", ["stats", "warm"])
@pytest.mark.parametrize(("address", "cause"), ADDRESSES.items())
def test_an_address_that_is_none_is_told(capsys, action, address, cause):
    assert main(["cache", action, "--cache", address]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and cause in err.splitlines()[0]
    assert "sec" not in err


def test_a_server_that_does_not_list_and_a_size_that_is_none(tmp_path, capsys):
    assert main(["cache", "verify", "--cache", "http://127.0.0.1:1/"]) == 1
    assert "does not say what it holds" in capsys.readouterr().err
    assert main(["cache", "gc", "--cache", str(tmp_path), "--limit", "many"]) == 1
    assert capsys.readouterr().err.startswith("error: `many` is no size\n")
