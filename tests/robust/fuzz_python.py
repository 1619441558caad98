"""Fuzzing what Python reads: manifests, packs, specs, TOML. Each round depends on the seed and its number alone.

A round changes something that is good, repairs the digests that would give the change away, and hands it to what reads
it: the answer is a value or an error of the user's, never another exception.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from open_setup import TESTS, make_packaged

from precast.cli import main
from precast.errors import PrecastError
from precast.launch.formats import write_pack
from precast.launch.formats.pack import read_pack
from precast.plan import plan_project
from precast.project import read_project
from precast.release.manifest import MANIFEST
from precast.spec.toml import parse_document

sys.path.insert(0, str(TESTS / "unit"))
from small_projects import KERNEL, SETTINGS, SPEC

ODD = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 1.5, float("inf"), float("nan"), "", "x", "../x",
    "/x", "\n", "\x1b[2J", "\ud800", "a" * 5000, [], {}, [[]], {"a": 1}, "cuda:90", "index.bin", MANIFEST, "0" * 64,
)  # fmt: skip
SIGNS = "\"'[]{}=,.#\\\n\t \0é%*1x-+:/"
Fuzz = Callable[[random.Random], None]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def _change_value(body: Any, generator: random.Random) -> None:
    container, key = generator.choice(list(_places(body)))
    kind = generator.randrange(6)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(key, copy.deepcopy(generator.choice(container)))
    elif kind == 2:
        other, place = generator.choice(list(_places(body)))
        container[key] = copy.deepcopy(other[place])
    elif kind == 3 and isinstance(container, dict):
        container[generator.choice(("x", "", key + "x", "schema", "content"))] = generator.choice(ODD)
    elif kind == 4 and isinstance(container[key], str):
        container[key] = change_text(container[key], generator)
    else:
        container[key] = copy.deepcopy(generator.choice(ODD))


def change_text(text: str, generator: random.Random) -> str:
    for _ in range(generator.choice((1, 1, 2, 4))):
        place, length = generator.randrange(len(text) + 1), generator.randrange(12)
        kind = generator.randrange(4)
        if kind == 0:
            text = text[:place] + text[place + length :]
        elif kind == 1:
            text = text[:place] + generator.choice(SIGNS) + text[place + generator.randrange(2) :]
        elif kind == 2:
            start = generator.randrange(len(text) + 1)
            text = text[:place] + text[start : start + length] + text[place:]
        else:
            text = text[:place] + generator.choice(SIGNS) * generator.choice((2, 100)) + text[place:]
    return text


def _reseal(body: dict[str, Any]) -> bytes:
    body.pop("content", None)
    compact = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    body["content"] = hashlib.sha256(compact.encode("utf-8", "surrogatepass")).hexdigest()
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
    return text.encode("utf-8", "surrogatepass")


def fuzz_manifest(folder: Path) -> Fuzz:
    """`precast verify` and `package` on a release whose manifest was changed."""
    release = make_packaged(folder).rename(folder / "release")
    path, whole = release / MANIFEST, (release / MANIFEST).read_bytes()
    path.unlink()

    def run(generator: random.Random) -> None:
        if generator.random() < 0.2:
            data = change_text(whole.decode(), generator).encode("utf-8", "surrogatepass")
        else:
            body = json.loads(whole)
            for _ in range(generator.choice((1, 1, 2, 3))):
                _change_value(body, generator)
            data = _reseal(body)
        path.write_bytes(data)
        before = set(os.listdir(folder))
        commands = [["verify", str(release)], ["package", str(release), "--out", str(folder / "dist")]]
        for words in commands[: generator.choice((1, 1, 1, 2))]:
            said = _run_command(words)
            assert all(sign == "\n" or sign.isprintable() for sign in said), said
        assert set(os.listdir(folder)) - {"dist"} == before - {"dist"}
        shutil.rmtree(folder / "dist", ignore_errors=True)

    return run


def _run_command(words: list[str]) -> str:
    """What a command says; it must be good, or a user's error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    assert code in (0, 1), err.getvalue()
    return out.getvalue() + err.getvalue()


def fuzz_pack(folder: Path) -> Fuzz:
    """`read_pack` on a pack with other bytes, whose digests are mostly right; what is taken is written as it was."""
    whole = write_pack([(f"k:BLOCK={size}@cuda:90", bytes([size]) * size * 30) for size in (16, 32, 64, 128)])
    entry = struct.Struct("<32sQQQ8x")

    def run(generator: random.Random) -> None:
        data = bytearray(whole)
        for _ in range(generator.choice((1, 1, 2, 3))):
            place = generator.randrange(len(data) if generator.random() < 0.3 else min(600, len(data)))
            width = generator.choice((1, 2, 4, 8))
            data[place : place + width] = generator.choice((0, 1, 255, 4096, len(data), 2**63)).to_bytes(8, "little")[
                :width
            ]
        if generator.random() < 0.2:
            del data[generator.randrange(len(data)) :]
        if generator.random() < 0.9 and len(data) > 400:
            struct.pack_into("<Q", data, 24, len(data))
            for number in range(4):
                _, offset, size, name = entry.unpack_from(data, 64 + entry.size * number)
                digest = hashlib.sha256(data[offset : offset + size]).digest() if size < 2**32 else bytes(32)
                entry.pack_into(data, 64 + entry.size * number, digest, offset, size, name)
        with contextlib.suppress(PrecastError):
            entries = read_pack(bytes(data))
            images = [(each.unit, bytes(data[each.offset : each.offset + each.size])) for each in entries]
            assert write_pack(images) == data

    return run


WORDS = (
    "source", "grid", "only", "args", "matrix", "constants", "configs", "options", "target", "exclude", "type", "align",
    "range32", "specialize", "each", "num_warps", "BLOCK", "dtype", "name", "version", "targets", "kernels", "defaults",
    "pass", "use", "tools", "triton", "hints", "requires",
)  # fmt: skip
VALUES = (
    '""', '"x"', "0", "-1", "9223372036854775807", "9223372036854775808", "1e400", "nan", "true", "[]", "{}", "[[]]",
    '[1, "a", true]', "1979-05-27", "07:32:00", '"*fp32"', '"{dtype}"', '"{"', '"*{dtype}"', '["fp16", "fp16"]',
    '"i32"', '{ type = "i32" }', '{ type = "*fp32", align = 3 }', '["n // 0", "1", "1"]', '["1"]', '"cdiv(n, 0)"',
    '"tensordesc<fp16[4]>"', '"(i32, (*fp16, constexpr))"', '"' + "(" * 200 + '"', "[" * 60 + "]" * 60,
    '["' + "n+" * 300 + 'n", "1", "1"]', '"\\u001b[2J"', "'''\n'''", "0x_1", "+1", "1_0",
    '[["x%16", "n==1"], []]', '["n <= BLOCK", "n"]', '["' + "n<" * 300 + 'n"]',
)  # fmt: skip


def _change_toml(text: str, generator: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(generator.choice((1, 1, 2, 3))):
        lines = lines or [""]
        place = generator.randrange(len(lines))
        kind = generator.randrange(6)
        if kind == 0:
            lines.insert(place, f"{generator.choice(WORDS)} = {generator.choice(VALUES)}")
        elif kind == 1 and "=" in lines[place]:
            lines[place] = f"{lines[place].split('=', 1)[0]}= {generator.choice(VALUES)}"
        elif kind == 2 and "=" in lines[place]:
            lines[place] = f"{generator.choice(WORDS)} ={lines[place].split('=', 1)[1]}"
        elif kind == 3:
            name = generator.choice(("scale", "x", "é", '"a.b"', "open", "class"))
            table = generator.choice(("", ".args", ".matrix", ".options", ".target.cpu"))
            lines.insert(place, f"[kernel.{name}{table}]")
        elif kind == 4:
            lines[place : place + 1] = generator.choice(([], [lines[place]] * 2))
        else:
            lines[place] = change_text(lines[place], generator)
    return "\n".join(lines)


def fuzz_spec(folder: Path) -> Fuzz:
    """Planning a project whose spec, and sometimes whose settings, were changed."""
    (folder / "kernels").mkdir()
    (folder / "kernels/scale.py").write_text(KERNEL)

    def run(generator: random.Random) -> None:
        settings = _change_toml(SETTINGS, generator) if generator.random() < 0.2 else SETTINGS
        (folder / "pyproject.toml").write_text(settings, "utf-8", "surrogatepass")
        (folder / "kernels/scale.toml").write_text(_change_toml(SPEC, generator), "utf-8", "surrogatepass")
        with contextlib.suppress(PrecastError):
            plan_project(read_project(folder))

    return run


def fuzz_toml(folder: Path) -> Fuzz:
    """Any text at all, near what a spec is."""
    every_word = "\n".join(f"{word} = {value}" for word, value in zip(WORDS, VALUES, strict=False))

    def run(generator: random.Random) -> None:
        text = generator.choice((SPEC, SETTINGS, every_word))
        for _ in range(generator.choice((1, 3, 9))):
            text = change_text(_change_toml(text, generator), generator)
        with contextlib.suppress(PrecastError):
            parse_document(text, "spec.toml")

    return run


TARGETS: dict[str, Callable[[Path], Fuzz]] = {
    "manifest": fuzz_manifest, "pack": fuzz_pack, "spec": fuzz_spec, "toml": fuzz_toml,
}  # fmt: skip


def fuzz(target: str, folder: Path, seed: int, rounds: int) -> None:
    """Runs rounds of one target; the first that ends in anything else says how it is run again."""
    folder.mkdir(parents=True, exist_ok=True)
    run = TARGETS[target](folder)
    for number in range(rounds):
        try:
            run(random.Random(f"{target} {seed} {number}"))
        except Exception as error:
            raise AssertionError(f"{target}: round {number} of seed {seed}") from error
