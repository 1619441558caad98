"""What has moved while a build was at work: each state that somebody saw counts, not the last that was seen."""

import os
from types import SimpleNamespace

import pytest

from precast import digest as digest_module
from precast.digest import look_at
from precast.graph import moved
from precast.reads import Looks, digest_file

PROJECT = SimpleNamespace(settings=SimpleNamespace(ptxas=""))
STATES = [("a", "a", []), ("b", "b", ["f"]), ("b", "a", ["f"]), ("a", "b", ["f"])]


@pytest.mark.parametrize(("planned", "read", "found"), STATES)
def test_every_state_that_was_seen_counts(tmp_path, monkeypatch, planned, read, found):
    digests = {}
    for text in "ab":
        (tmp_path / text).write_text(text)
        digests[text] = digest_file(tmp_path / text)
    monkeypatch.setattr(moved, "_read_of_plan", lambda session: iter([("f", digests[planned])]))
    monkeypatch.setattr(moved, "_read_by_units", lambda session: iter([("f", digests[read])]))
    index = SimpleNamespace(digest_content=lambda name: digests["a"])
    plan = SimpleNamespace(looks=Looks())
    session = SimpleNamespace(index=index, plan=plan, probes=(), folder=tmp_path, project=PROJECT, narrow=None)
    assert moved.find_moved(session) == found


def test_a_file_that_the_plan_looked_at_is_read_again_only_where_it_may_have_moved(tmp_path, monkeypatch):
    files = {name: tmp_path / name for name in ("same", "edited", "gone", "fresh")}
    for path in files.values():
        path.write_text("a")
        os.utime(path, (1, 1))
    states = {str(path): look_at(path)._replace(mtime=path.stat().st_mtime_ns) for path in files.values()}
    states[str(files["fresh"])] = states[str(files["fresh"])]._replace(mtime=-1)
    files["edited"].write_text("b")
    files["gone"].unlink()
    read, digest = [], digest_module.digest_stream
    monkeypatch.setattr(digest_module, "digest_stream", lambda stream, path: read.append(path) or digest(stream, path))
    session = SimpleNamespace(
        index=None, plan=SimpleNamespace(looks=Looks(states)), probes=(), folder=tmp_path, origin="/",
        steps=SimpleNamespace(all=()), name_from_here=os.path.basename, project=PROJECT, narrow=None,
    )  # fmt: skip
    assert moved.find_moved(session) == ["edited", "gone"]
    assert [os.path.basename(path) for path in read] == ["edited", "fresh"]


def put_back(path, how):
    """Has another file in the place of `path` for a while; all that can be set afterwards is as it was."""
    status, data = path.stat(), path.read_bytes()
    if how == "moved":
        path.rename(path.with_name("away"))
        path.write_bytes(b"other")
        path.with_name("away").rename(path)
    else:
        path.write_bytes(b"other")
        path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("how", ["moved", "written"])
def test_an_assembler_that_was_another_for_a_while_has_moved(tmp_path, how):
    """A source has not: who reads one tells what it read."""
    files = {name: tmp_path / name for name in ("ptxas", "source.py")}
    states = {}
    for path in files.values():
        path.write_text("a")
        states[str(path)] = look_at(path)
    for path in files.values():
        while path.stat().st_ctime_ns == states[str(path)].ctime:  # which goes in steps
            put_back(path, how)
    session = SimpleNamespace(
        index=None, plan=SimpleNamespace(looks=Looks(states)), probes=(), folder=tmp_path, origin="/",
        steps=SimpleNamespace(all=()), name_from_here=os.path.basename,
        project=SimpleNamespace(settings=SimpleNamespace(ptxas=str(files["ptxas"]))), narrow=None,
    )  # fmt: skip
    assert moved.find_moved(session) == ["ptxas"]
