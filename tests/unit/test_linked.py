"""What the shared cache has of a compiler's work is found by all that decides it, and taken as it was asked for."""

import json
import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from precast.cache.entries import Entry
from precast.graph import linked as linked_module
from precast.graph.compiler_files import CompilerFiles
from precast.graph.linked import Linked, LinkedSharing

OUTPUTS = ("build/lib/libdemo.so", "build/objects/demo.o")


class Machine:
    """A session and a cache, as far as sharing looks at them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.step, self.kept, self.damaged, self.noted = folder, "the step's key", {}, [], []
        self.digests = {"/usr/bin/cc": "12ab", "/usr/lib/crt1.o": "34cd"}
        self.compiler = CompilerFiles("cc 12", tuple(self.digests))
        self.counts: Counter[str] = Counter()
        monkeypatch.setattr(linked_module, "find_compiler_files", lambda *_: self.compiler)
        monkeypatch.setattr(linked_module, "note_made", lambda *words: self.noted.append(words[3]))

    def sharing(self, **environment: str) -> LinkedSharing:
        cache = SimpleNamespace(
            reads=True,
            writes=True,
            ask=lambda question: question(),
            get=self.kept.get,
            give=lambda make: self._keep(*make()),
            tell_damaged=self.damaged.append,
        )
        session = SimpleNamespace(
            key_of=lambda step: self.step,
            index=SimpleNamespace(digest=self.digests.get),
            scratch=SimpleNamespace(name=str(self.folder)),
            folder=self.folder,
            running=lambda step: nullcontext(),
            count=lambda step, outcome: self.counts.update([outcome]),
        )
        sharing = SimpleNamespace(cache=cache)
        return LinkedSharing(session, sharing, "cc -c", "cc -shared", {"PATH": "/bin", **environment})

    def _keep(self, key: str, entry: Entry, _: bool) -> None:
        self.kept[key] = entry

    def key(self, commands=("cc -O2",), outputs=OUTPUTS, **environment: str) -> str:
        return self.sharing(**environment).key(Linked(None, commands, outputs, ()))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_all_that_decides_what_is_made_is_in_its_key(machine):
    keys = [machine.key(), machine.key(commands=("cc -O3",)), machine.key(outputs=OUTPUTS[:1]), machine.key(LANG="C")]
    machine.step = "another"
    keys.append(machine.key())
    machine.digests["/usr/lib/crt1.o"] = "56ef"
    keys.append(machine.key())
    machine.compiler = CompilerFiles("cc 13", tuple(machine.digests))
    keys.append(machine.key())
    machine.compiler = CompilerFiles("cc 13", ("/usr/bin/cc",))
    keys.append(machine.key())
    assert len({*keys}) == len(keys) and all(keys)


def test_where_temporary_files_lie_is_in_no_key(machine):
    assert machine.key(TMPDIR="/one") == machine.key(TMPDIR="/two") == machine.key()


def test_what_cannot_be_told_has_no_key(machine):
    machine.step = ""
    assert machine.key() == ""
    machine.step, machine.compiler = "the step's key", None
    assert machine.key() == "" and not machine.sharing().may_take


def make_all(machine: Machine) -> Linked:
    for name in OUTPUTS:
        path = machine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return Linked(None, ("cc -O2",), OUTPUTS, ())


def test_what_was_given_is_taken_as_it_was(machine):
    linked, sharing = make_all(machine), machine.sharing()
    sharing.give(linked, sharing.key(linked))
    for name in OUTPUTS:
        (machine.folder / name).unlink()
    assert sharing.take(linked) and machine.noted == [OUTPUTS] and machine.counts == {"reused": 1}
    assert [(machine.folder / name).read_bytes().decode() for name in OUTPUTS] == [*OUTPUTS]
    assert [os.stat(machine.folder / name).st_mode & 0o777 for name in OUTPUTS] == [0o755, 0o644]


@pytest.mark.parametrize("begun", ["", "the key of what was there before"])
def test_what_was_made_of_something_else_is_not_given(machine, begun):
    machine.sharing().give(make_all(machine), begun)
    assert machine.kept == {}


ENTRIES = {
    "other names": Entry(json.dumps(["build/lib/libother.so", OUTPUTS[1]]).encode(), (b"1", b"2")),
    "another order": Entry(json.dumps(OUTPUTS[::-1]).encode(), (b"1", b"2")),
    "too few": Entry(json.dumps(OUTPUTS).encode(), (b"1",)),
    "no names": Entry(b"{", (b"1", b"2")),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_something_else_is_not_taken(machine, entry):
    linked, sharing = make_all(machine), machine.sharing()
    machine.kept[sharing.key(linked)] = ENTRIES[entry]
    assert not sharing.take(linked) and machine.damaged == [f"ac/{sharing.key(linked)}"] and not machine.noted
    assert [(machine.folder / name).read_bytes().decode() for name in OUTPUTS] == [*OUTPUTS]
