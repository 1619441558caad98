"""What has moved while a build was at work: each state that somebody saw counts, not the last that was seen."""

from types import SimpleNamespace

import pytest

from precast.graph import moved
from precast.reads import digest_file

STATES = [("a", "a", []), ("b", "b", ["f"]), ("b", "a", ["f"]), ("a", "b", ["f"])]


@pytest.mark.parametrize(("planned", "read", "found"), STATES)
def test_every_state_that_was_seen_counts(tmp_path, monkeypatch, planned, read, found):
    digests = {}
    for text in "ab":
        (tmp_path / text).write_text(text)
        digests[text] = digest_file(tmp_path / text)
    monkeypatch.setattr(moved, "_seen_by_plan", lambda session: iter([("f", digests[planned])]))
    monkeypatch.setattr(moved, "_read_by_units", lambda session: iter([("f", digests[read])]))
    index = SimpleNamespace(digest_content=lambda name: digests["a"])
    assert moved.find_moved(SimpleNamespace(index=index, probes=(), folder=tmp_path)) == found
