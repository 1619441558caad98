"""A stage's output comes back from the store as it was put there, in every field; what is no record today is none."""

import dataclasses
import json

import pytest

from precast.artifact import DeviceBuffer, Finding, PassRun
from precast.engines import StageOutput
from precast.reads import Read, ReadKind
from precast.store import Store
from precast.worker.walk import keep, recall

OUTPUT = StageOutput(
    b"module {}",
    '{"shared":16}',
    (PassRun("mark", "python", "ttir", "end", (("depth", 2),), "12ab", True),),
    (Finding("count", '{"loads":3}'),),
    (DeviceBuffer("trace", 64),),
    (Read(ReadKind.DATA, "plugins/table.json", "34cd"),),
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_every_field_comes_back(store):
    """Each differs from its default, so that one which is forgotten shows; a new field has to be added here."""
    for field in dataclasses.fields(StageOutput):
        assert field.default is dataclasses.MISSING or getattr(OUTPUT, field.name) != field.default, field.name
    digest = keep(store, "key", OUTPUT, reproducible=True)
    record, output = recall(store, "key")
    assert output == OUTPUT and record.digest == digest and record.reproducible


@pytest.mark.parametrize("reproducible", [True, False])
def test_whether_it_was_made_by_luck_comes_back(store, reproducible):
    keep(store, "key", OUTPUT, reproducible)
    record, _ = recall(store, "key")
    assert record.reproducible is reproducible


@pytest.mark.parametrize("change", [{"format": 1}, {"format": None}, {"buffers": 3}, {"digest": "00" * 32}])
def test_a_record_of_another_kind_is_a_miss(store, change):
    keep(store, "key", OUTPUT, reproducible=True)
    record = json.loads(store.get_record("key"))
    store.put_record("key", json.dumps({**record, **change}).encode())
    assert recall(store, "key") is None


def test_a_record_whose_bytes_are_gone_is_a_miss(store):
    digest = keep(store, "key", OUTPUT, reproducible=True)
    store.object_path(digest).unlink()
    assert recall(store, "key") is None
