"""Entries through every kind of place and through bad ones: what comes back is what was given, or nothing, and one
warning says why."""

import contextlib
import hashlib
import os
import random
import threading
import time
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from strict_server import StrictServer

from precast.cache import web
from precast.cache.action_result import ActionResult, OutputFile, encode_action_result, parse_action_result
from precast.cache.entries import MOST_INLINE_BYTES, Entry, pack_entry, parse_message
from precast.cache.folder import FolderPlace
from precast.cache.lanes import Lanes
from precast.cache.settings import CacheSettings, find_address_fault, format_size, parse_size, shown
from precast.cache.shared import SharedCache
from precast.cache.upkeep import count_items, find_damaged, shrink
from precast.digest import seal

KEY, OTHER = hashlib.sha256(b"key").hexdigest(), hashlib.sha256(b"other").hexdigest()
ENTRY = Entry(b'{"facts":1}', (b"ttir text" * 20, b"\x7fELF image"))
LARGE = Entry(b"value", (random.Random(1).randbytes(MOST_INLINE_BYTES + 1), b"small"))


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Nothing is too slow for these tests but what they say is."""
    for name in ("web.CONNECT_SECONDS", "web.ANSWER_SECONDS", "web.BODY_SECONDS", "shared.STALL_SECONDS",
                 "shared.SLOW_SECONDS"):  # fmt: skip
        monkeypatch.setattr(f"precast.cache.{name}", 600.0)


@pytest.fixture
def server():
    made = StrictServer()
    yield made
    made.stop()


class Cache(SharedCache):
    """A cache that keeps its warnings."""

    def __init__(self, url: str, **settings: bool) -> None:
        self.warnings: list[str] = []
        super().__init__(CacheSettings(url, **settings), Path(), self.warnings.append)


# The message, by hand from the protocol's definition: output_files = 2 {path = 1, digest = 2 {hash = 1, size = 2}},
# stdout_raw = 5.
MESSAGE = b"\x12\x0c\x0a\x01a\x12\x07\x0a\x02ff\x10\xac\x02" + b"\x2a\x03out"


def test_a_message_is_what_the_protocol_defines():
    result = ActionResult(b"out", (OutputFile("a", "ff", 300),))
    assert encode_action_result(result) == MESSAGE
    # A server adds the exit code (4), execution metadata (9) with anything in it, and fields of other wire types.
    more = b"\x20\x05" + b"\x4a\x03xyz" + b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    assert parse_action_result(more + MESSAGE) == result


@given(st.binary(max_size=300), st.lists(st.tuples(st.text(max_size=5), st.integers(0, 2**63 - 1)), max_size=3))
def test_messages_come_back(stdout, files):
    result = ActionResult(stdout, tuple(OutputFile(path, KEY, size) for path, size in files))
    assert parse_action_result(encode_action_result(result)) == result


@given(st.binary(max_size=60) | st.binary(max_size=6).map(lambda noise: MESSAGE[:9] + noise + MESSAGE[9:]))
def test_what_is_no_message_is_a_value_error_or_another_message(data):
    with contextlib.suppress(ValueError):
        parse_action_result(data)


@pytest.mark.parametrize("entry", [ENTRY, LARGE, Entry(b""), Entry(b"v", (b"", b"same", b"same"))])
@pytest.mark.parametrize("whole", [True, False])
def test_entries_come_back_by_folder_and_server(tmp_path, server, entry, whole):
    for url in (str(tmp_path / "cache"), f"file://{tmp_path}/other", server.url, f"{server.url}/"):
        cache = Cache(url)
        assert cache.get(KEY) is None
        cache.put(KEY, entry, whole=whole)
        assert (cache.get(KEY), cache.get(OTHER), cache.warnings) == (entry, None, [])
        server.held.clear()
    assert not server.refusals


def test_a_small_entry_is_one_question_and_a_large_one_lies_in_blobs(server):
    cache = Cache(server.url)
    cache.put(KEY, ENTRY, whole=True)
    assert cache.get(KEY) == ENTRY
    assert server.requests == {"PUT ac": 1, "GET ac": 1}
    cache.put(OTHER, LARGE, whole=True)
    assert cache.get(OTHER) == LARGE
    assert server.requests == {"PUT ac": 2, "GET ac": 2, "PUT cas": 2, "GET cas": 2}


@pytest.mark.parametrize("spoil", ["ac", "cas"])
@pytest.mark.parametrize("whole", [True, False])
def test_damage_at_the_place_is_refused_told_once_and_mended(server, spoil, whole):
    cache = Cache(server.url)
    for key in (KEY, OTHER):
        cache.put(key, ENTRY, whole=whole)
    names = server.names(spoil)
    server.spoil(spoil)
    hurt = bool(names)
    for key in (KEY, OTHER):
        assert cache.get(key) == (None if hurt else ENTRY)
    assert len(cache.warnings) == hurt
    if hurt:
        assert cache.warnings[0].startswith(f"the cache at {server.url} holds what is damaged or forged ({spoil}/")
    cache.put(KEY, ENTRY, whole=whole)
    assert cache.get(KEY) == ENTRY


def test_what_came_under_another_key_is_refused(server):
    cache = Cache(server.url)
    cache.put(OTHER, ENTRY, whole=True)
    server.held[f"ac/{KEY}"] = server.held[f"ac/{OTHER}"]
    assert cache.get(KEY) is None and len(cache.warnings) == 1


def test_every_bit_of_a_message_counts():
    message, _ = pack_entry(KEY, Entry(b"value", (b"blob",)), whole=True)
    for place in range(len(message)):
        for bit in range(8):
            changed = message[:place] + bytes([message[place] ^ 1 << bit]) + message[place + 1 :]
            try:
                parse_message(KEY, changed)
            except ValueError:
                continue
            assert parse_action_result(changed).stdout == parse_action_result(message).stdout


HEADS = [b"5", b'{"0":1}', b'[1,"x"]', b"[1,-5]", b"[1,0.5]", b"[1,1e400]", b"null", b"[]", b"[1]", b"[1,9]", b'"1"',
         b"\xff", b"[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("head", HEADS, ids=lambda head: repr(head[:9]))
def test_a_message_that_was_forged_with_all_its_digests_is_refused(server, head):
    packed = zstandard.ZstdCompressor().compress(head + b"\nrest")
    server.held[f"ac/{KEY}"] = encode_action_result(ActionResult(seal(KEY.encode() + b"\n" + packed)))
    cache = Cache(server.url)
    assert cache.get(KEY) is None
    assert cache.warnings == [f"the cache at {server.url} holds what is damaged or forged (ac/{KEY}): not used"]


@pytest.mark.parametrize("digest", ["../" * 21 + "x", "A" * 64, "é" * 64, "0" * 63])
def test_a_message_names_nothing_but_blobs(server, digest):
    message = parse_action_result(pack_entry(KEY, Entry(b"v"), whole=False)[0])
    forged = ActionResult(message.stdout, (OutputFile("0", digest, 1),))
    server.held[f"ac/{KEY}"] = encode_action_result(forged)
    cache = Cache(server.url)
    assert cache.get(KEY) is None and len(cache.warnings) == 1
    assert server.requests == {"GET ac": 1} and not server.refusals


def test_an_entry_of_another_format_is_absent(server, monkeypatch):
    cache = Cache(server.url)
    monkeypatch.setattr("precast.cache.entries.FORMAT", 99)
    cache.put(KEY, ENTRY, whole=True)
    monkeypatch.undo()
    assert cache.get(KEY) is None and not cache.warnings


def test_a_blob_that_is_gone_makes_its_entry_absent(server):
    cache = Cache(server.url)
    cache.put(KEY, ENTRY, whole=False)
    del server.held[server.names("cas")[0]]
    assert cache.get(KEY) is None and not cache.warnings


REFUSES = "; credentials come from netrc or PRECAST_CACHE_TOKEN"


@pytest.mark.parametrize(
    "wrong, cause, limit",
    [
        ({"status": {"GET": 401}}, f"it answers 401 Unauthorized{REFUSES}", ""),
        ({"status": {"GET": 403}}, f"it answers 403 Forbidden{REFUSES}", ""),
        ({"status": {"GET": 500}}, "it answers 500 Internal Server Error", ""),
        ({"status": {"GET": 503}}, "it answers 503 Service Unavailable", ""),
        ({"status": {"GET": 302}}, "it answers 302 Found", ""),
        ({"status": {"GET": 299}}, "it answers 299", ""),
        ({"breaks_off": True}, "it breaks off", ""),
        ({"encoding": "br"}, "it answers in the encoding `br`, which nobody asked for", ""),
        ({"wait": 600.0}, "it does not answer", "ANSWER_SECONDS"),
        ({"drips": 0.05}, "it is too slow", "BODY_SECONDS"),
    ],
)
def test_a_place_that_fails_is_left_alone_with_one_warning(server, monkeypatch, wrong, cause, limit):
    cache = Cache(server.url)
    cache.put(KEY, LARGE, whole=False)
    if limit:
        monkeypatch.setattr(web, limit, 0.2)
    with server.behaving(**wrong):
        for key in (KEY, OTHER, KEY):
            assert cache.get(key) is None
        cache.put(OTHER, ENTRY, whole=True)
    assert cache.warnings == [f"the cache at {server.url} is not used from here on: {cause}"]
    assert not cache.reads and not cache.writes
    asked = server.requests.total()
    assert cache.get(KEY) is None
    cache.put(OTHER, ENTRY, whole=True)
    assert server.requests.total() == asked


@pytest.mark.parametrize("status, words", [(507, "507 Insufficient Storage"), (413, "413 "), (403, "403 Forbidden")])
def test_a_place_that_takes_nothing_is_still_read(server, status, words):
    cache = Cache(server.url)
    cache.put(KEY, ENTRY, whole=True)
    with server.behaving(status={"PUT": status}):
        for _ in range(3):
            cache.put(OTHER, ENTRY, whole=True)
        assert cache.get(KEY) == ENTRY
    (warning,) = cache.warnings
    assert warning.startswith(f"the cache at {server.url} takes nothing from here on: it answers {words}")


def test_nobody_listens():
    cache = Cache("http://127.0.0.1:9")
    assert cache.get(KEY) is None and cache.get(KEY) is None
    assert cache.warnings == ["the cache at http://127.0.0.1:9 is not used from here on: no connection"]


def test_a_name_that_is_no_host():
    cache = Cache("http://cache.invalid/x")
    assert cache.get(KEY) is None
    assert cache.warnings == ["the cache at http://cache.invalid/x is not used from here on: its host is not known"]


def test_a_gateway_that_failed_once_is_asked_again(server, monkeypatch):
    cache = Cache(server.url)
    cache.put(KEY, ENTRY, whole=True)
    answers = iter([503, 200])
    send = server._server.RequestHandlerClass._send
    monkeypatch.setattr(
        server._server.RequestHandlerClass,
        "_send",
        lambda self, status, data=b"": send(self, status, data) if next(answers, 200) == 200 else send(self, 503),
    )
    assert cache.get(KEY) == ENTRY and not cache.warnings


def test_read_only_and_write_only(server):
    Cache(server.url).put(KEY, ENTRY, whole=True)
    reader, writer = Cache(server.url, write=False), Cache(server.url, read=False)
    reader.put(OTHER, ENTRY, whole=True)
    assert server.names("ac") == [f"ac/{KEY}"] and reader.get(KEY) == ENTRY
    writer.put(OTHER, ENTRY, whole=True)
    assert len(server.names("ac")) == 2 and writer.get(KEY) is None


@pytest.mark.parametrize(
    "user, environment, netrc, expected",
    [
        ("ann:p%40ss@", {}, "", "Basic YW5uOnBAc3M="),
        ("", {"PRECAST_CACHE_TOKEN": "secret\n"}, "", "Bearer secret"),
        ("", {}, "machine 127.0.0.1 login ann password p@ss\n", "Basic YW5uOnBAc3M="),
        ("", {}, "machine elsewhere login ann password p@ss\n", None),
        ("", {}, "machine 127.0.0.1 login\n", None),
    ],
)
def test_credentials(server, tmp_path, monkeypatch, user, environment, netrc, expected):
    (tmp_path / ".netrc").write_text(netrc)
    (tmp_path / ".netrc").chmod(0o600)
    for name in ("PRECAST_CACHE_TOKEN", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(tmp_path), **environment}.items():
        monkeypatch.setenv(name, value)
    url = server.url.replace("http://", f"http://{user}")
    cache = Cache(url)
    with server.behaving(wants=expected or "something else"):
        cache.put(KEY, ENTRY, whole=True)
    assert bool(server.held) is bool(expected)
    assert all("p%40ss" not in each and server.url in each for each in cache.warnings)
    assert len(cache.warnings) == (not expected)


def test_bodies_are_compressed_where_the_server_says_so(server):
    cache = Cache(server.url)
    with server.behaving(takes_zstd=True):
        cache.put(KEY, LARGE, whole=False)
        assert cache.get(KEY) == LARGE
        cache.put(OTHER, ENTRY, whole=False)
    assert server.encodings == {"": 1, "zstd": 5} and not cache.warnings
    assert cache.get(OTHER) == ENTRY  # kept as they are, whatever they travelled as


def test_many_are_asked_at_once_over_few_connections(server):
    cache = Cache(server.url)
    for number in range(40):
        cache.put(hashlib.sha256(bytes([number])).hexdigest(), ENTRY, whole=True)
    keys = [hashlib.sha256(bytes([number])).hexdigest() for number in range(40)]
    with server.behaving(until=lambda: server.most_at_once >= 24):
        found = dict(cache.ask_all({key: lambda key=key: cache.get(key) for key in keys}))
    assert list(map(found.get, keys)) == [ENTRY] * 40
    assert server.most_at_once == 24


def test_what_hangs_is_waited_for_once(server, monkeypatch):
    monkeypatch.setattr("precast.cache.shared.STALL_SECONDS", 0.2)
    cache = Cache(server.url)
    with server.behaving(wait=600.0):
        assert list(cache.ask_all({key: lambda key=key: cache.get(key) for key in (KEY, OTHER)})) == []
        assert cache.ask(lambda: cache.get(KEY)) is None
        assert server.answered == 0  # so nobody has waited for it
    assert cache.warnings == [f"the cache at {server.url} is not used from here on: it is too slow"]


def test_one_errand_a_second_is_too_slow(server, monkeypatch):
    monkeypatch.setattr("precast.cache.shared.SLOW_SECONDS", 0.1)
    cache = Cache(server.url)
    with server.behaving(wait=600.0):
        for _ in range(3):
            cache.give(lambda: (KEY, ENTRY, True))
        cache.finish()
    assert cache.warnings == [f"the cache at {server.url} takes nothing from here on: it is too slow"]


def test_lanes_end_what_waits_and_nothing_else():
    lanes, gate = Lanes(1), threading.Event()
    running, waiting = lanes.submit(gate.wait), lanes.submit(gate.wait)
    while not running.running():
        time.sleep(0.001)
    lanes.close()
    assert waiting.cancelled() and lanes.submit(gate.wait).cancelled()
    gate.set()
    assert running.result(300)


def test_eight_writers_and_readers_of_a_folder_agree(tmp_path):
    wrong: list[object] = []

    def write(number: int) -> None:
        cache = Cache(str(tmp_path))
        for _ in range(6):
            cache.put(KEY, LARGE if number % 2 else ENTRY, whole=number % 3 == 0)
            if cache.get(KEY) not in (LARGE, ENTRY) or cache.warnings:
                wrong.append(cache.warnings)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(path.suffix for path in tmp_path.rglob("*") if path.name.startswith(".")) == []


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file"))
    assert cache.get(KEY) is None and not cache.warnings
    for _ in range(2):
        cache.put(KEY, ENTRY, whole=True)
    (warning,) = cache.warnings
    assert warning.startswith(f"the cache at {tmp_path}/file takes nothing from here on: cannot write ")


def test_upkeep_counts_removes_the_oldest_and_finds_damage(tmp_path):
    place, cache = FolderPlace(tmp_path), Cache(str(tmp_path))
    cache.put(KEY, Entry(b"v", (b"a" * 1000,)), whole=False)
    cache.put(OTHER, Entry(b"w", (b"b" * 1000,)), whole=False)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    assert cache.get(OTHER) is not None  # used now
    before = count_items(place)
    assert (before.entries, before.blobs) == (2, 2) and not list(find_damaged(place))
    gone = shrink(place, before.bytes - 1)
    assert (gone.entries, gone.blobs) in ((1, 0), (0, 1))
    assert cache.get(OTHER) is not None
    shrink(place, before.bytes // 2)
    assert (cache.get(KEY), cache.get(OTHER) is not None) == (None, True)
    (blob,) = (tmp_path / "cas").iterdir()
    blob.write_bytes(b"c" * 1000)
    assert [(item.kind, item.name) for item in find_damaged(place)] == [("cas", blob.name)]
    assert count_items(place).entries == 1


def test_upkeep_leaves_alone_what_is_no_part_of_a_cache(tmp_path):
    place, cache = FolderPlace(tmp_path), Cache(str(tmp_path))
    cache.put(KEY, ENTRY, whole=False)
    others = [tmp_path / kind / name for kind in ("ac", "cas") for name in ("README", KEY.upper(), f".{KEY}.new.tmp")]
    drafts = [tmp_path / "ac" / f".{KEY}.old.tmp", tmp_path / "cas" / f".{OTHER}.old.tmp"]
    for path in (*others, *drafts):
        path.write_text("somebody's")
    for path in drafts:  # of a writer that was killed, two days ago
        os.utime(path, (time.time() - 2 * 86400,) * 2)
    assert not list(find_damaged(place)) and count_items(place).entries == 1
    shrink(place, 0)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(others)


def test_upkeep_beside_readers_and_writers(tmp_path):
    """What is read while everything goes is whole or absent, and nobody is told of damage."""
    place, wrong, over = FolderPlace(tmp_path), [], threading.Event()
    keys = [hashlib.sha256(bytes([number])).hexdigest() for number in range(8)]

    def use(number: int) -> None:
        cache, entry = Cache(str(tmp_path)), ENTRY if number else LARGE
        while not over.is_set():
            cache.put(keys[number], entry, whole=False)
            found = [cache.get(key) for key in keys]
            if any(each not in (None, LARGE, ENTRY) for each in found) or cache.warnings:
                wrong.append(cache.warnings)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        shrink(place, 0)
        wrong += [item for item in find_damaged(place)]
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "url, fault",
    [
        ("/srv/cache", ""), ("cache", ""), ("file:///srv", ""), ("https://host:80/x", ""), ("s3://bucket/x", ""),
        ("", "it is empty"), ("http://", "it names no host or bucket"), ("http://[x/", "it is no address"),
        ("http://host:x", "it is no address"), ("ftp://host", "`ftp://` is no place that Precast knows"),
        ("file://host/x", "a folder's address is its path, or begins with `file:///`"),
        ("s3:/bucket/x", "two slashes come after `s3:`"), ("https:host/x", "two slashes come after `https:`"),
        ("here: a/b", ""), ("HTTP://host", "`HTTP://` is no place that Precast knows"),
        ("https://host/x?a=b", "it has more than a path: entries have names below one"),
        ("https://host/x#a", "it has more than a path: entries have names below one"),
        ("a\0b", "it holds a control character"), ("http://host/\n", "it holds a control character"),
    ],
)  # fmt: skip
def test_addresses(url, fault):
    assert find_address_fault(url) == fault


def test_words():
    assert shown("https://ann:secret@host/x@y") == "https://host/x@y" and shown("/a@b") == "/a@b"
    assert shown("https://ann:sec/ret@host/x", whole=False) == "https://host/x"
    assert [parse_size(text) for text in ("5", "1.5 kB", "2GiB", "10G")] == [5, 1500, 2 << 30, 10**10]
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 1_560_000: "1.6 MB", 2e12: "2.0 TB"}
    assert [format_size(size) for size in sizes] == list(sizes.values())
    for text in ("", "x", "-1", "1QB", "1e9"):
        with pytest.raises(ValueError):
            parse_size(text)
