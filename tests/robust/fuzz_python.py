"""Fuzzing what Python reads: manifests, packs, specs, TOML, grids, sources. A round depends on seed and number alone.

A round changes something that is good, repairs the digests that would give the change away, and hands it to what reads
it: the answer is a value or an error of the user's, never another exception. What did harm once lies in `corpus`, in a
folder for each target, and is read again in each run.
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
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from open_setup import TESTS, make_packaged

from precast.cli import main
from precast.errors import PrecastError
from precast.grid import compile_grid, evaluate, parse_grid, parse_requirement
from precast.launch.context import describe_library
from precast.launch.formats import describe_interface, write_pack
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
CORPUS = Path(__file__).parent / "corpus"


class Target(NamedTuple):
    """How an input is made, and what reads it."""

    change: Callable[[random.Random], bytes]
    read: Callable[[bytes], None]


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


def fuzz_manifest(folder: Path) -> Target:
    """`precast verify`, and now and then `package`, on a release whose manifest was changed."""
    release = make_packaged(folder).rename(folder / "release")
    path, whole = release / MANIFEST, (release / MANIFEST).read_bytes()
    path.unlink()

    def change(generator: random.Random) -> bytes:
        if generator.random() < 0.2:
            return change_text(whole.decode(), generator).encode("utf-8", "surrogatepass")
        body = json.loads(whole)
        for _ in range(generator.choice((1, 1, 2, 3))):
            _change_value(body, generator)
        return _reseal(body)

    def read(data: bytes) -> None:
        path.write_bytes(data)
        before = set(os.listdir(folder))
        commands = [["verify", str(release)], ["package", str(release), "--out", str(folder / "dist")]]
        for words in commands[: 1 + (zlib.crc32(data) % 4 == 0)]:
            said = _run_command(words)
            assert all(sign == "\n" or sign.isprintable() for sign in said), said
        assert set(os.listdir(folder)) - {"dist"} == before - {"dist"}
        shutil.rmtree(folder / "dist", ignore_errors=True)

    return Target(change, read)


def _run_command(words: list[str]) -> str:
    """What a command says; it must be good, or a user's error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    assert code in (0, 1), err.getvalue()
    return out.getvalue() + err.getvalue()


def fuzz_pack(folder: Path) -> Target:
    """`read_pack` on a pack with other bytes, whose digests are mostly right; what is taken is written as it was."""
    whole = write_pack([(f"k:BLOCK={size}@cuda:90", bytes([size]) * size * 30) for size in (16, 32, 64, 128)])
    entry = struct.Struct("<32sQQQ8x")

    def change(generator: random.Random) -> bytes:
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
        return bytes(data)

    def read(data: bytes) -> None:
        with contextlib.suppress(PrecastError):
            entries = read_pack(data)
            images = [(each.unit, data[each.offset : each.offset + each.size]) for each in entries]
            assert write_pack(images) == data

    return Target(change, read)


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


def fuzz_spec(folder: Path) -> Target:
    """Planning a project whose spec, and sometimes whose settings, were changed: settings, a page break, spec."""
    (folder / "kernels").mkdir()
    (folder / "kernels/scale.py").write_text(KERNEL)

    def change(generator: random.Random) -> bytes:
        settings = _change_toml(SETTINGS, generator) if generator.random() < 0.2 else SETTINGS
        return f"{settings}\f{_change_toml(SPEC, generator)}".encode("utf-8", "surrogatepass")

    def read(data: bytes) -> None:
        settings, _, spec = data.partition(b"\f")
        (folder / "pyproject.toml").write_bytes(settings)
        (folder / "kernels/scale.toml").write_bytes(spec)
        with contextlib.suppress(PrecastError):
            plan = plan_project(read_project(folder))
            describe_library(describe_interface("demo", [each.unit for each in plan.units]), "1.0", [])

    return Target(change, read)


LINES = (
    "@triton.jit", "@triton.heuristics({'X': lambda a: 1})", "@triton.autotune(configs=[], key=[])", "*args", "**more",
    "BLOCK = tl.constexpr(BLOCK)", "A = B\nB = A", "from scale import *", "from . import x", "X = tl.constexpr(X)",
    "import scale as scale", "scale_kernel = triton.jit(scale_kernel)", "scale_kernel = scale_kernel", "lambda: 0",
    "class scale_kernel: pass", "async def scale_kernel(): pass", "\0", "\x0c", "# coding: latin-1", "# coding: rot13",
    "\ufeff", "é = 1", "x = " + "(" * 90 + "1" + ")" * 90, "x = " + "-" * 3000 + "1", "x = " + "1+" * 3000 + "1",
    "def scale_kernel(x, /, out, *, n=1): pass", "if 1:\n  def scale_kernel(x): pass", "match x:\n  case 1: pass",
    "f'{'", "'''", "global x", "0777", "BLOCK: tl.constexpr = 1e999", "EVEN = tl.constexpr(" + "9" * 5000 + ")",
    "def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = EVEN): pass",
    "x = " + "a." * 3000 + "b",
)  # fmt: skip


def fuzz_source(folder: Path) -> Target:
    """Planning a project whose kernel's file was changed."""
    (folder / "kernels").mkdir()
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "kernels/scale.toml").write_text(SPEC)

    def change(generator: random.Random) -> bytes:
        lines = KERNEL.split("\n")
        for _ in range(generator.choice((1, 1, 2, 3))):
            place = generator.randrange(len(lines) + 1)
            lines[place : place + generator.randrange(2)] = generator.choice(([], [generator.choice(LINES)]))
        text = "\n".join(lines)
        return (change_text(text, generator) if generator.random() < 0.3 else text).encode("utf-8", "surrogatepass")

    def read(data: bytes) -> None:
        (folder / "kernels/scale.py").write_bytes(data)
        with contextlib.suppress(PrecastError):
            plan_project(read_project(folder))

    return Target(change, read)


def fuzz_toml(folder: Path) -> Target:
    """Any text at all, near what a spec is."""
    every_word = "\n".join(f"{word} = {value}" for word, value in zip(WORDS, VALUES, strict=False))

    def change(generator: random.Random) -> bytes:
        text = generator.choice((SPEC, SETTINGS, every_word))
        for _ in range(generator.choice((1, 3, 9))):
            text = change_text(_change_toml(text, generator), generator)
        return text.encode("utf-8", "surrogatepass")

    def read(data: bytes) -> None:
        with contextlib.suppress(PrecastError):
            parse_document(data.decode("utf-8", "surrogatepass"), "spec.toml")

    return Target(change, read)


GRID_WORDS = (
    "n", "m", "BLOCK", "(", ")", "+", "-", "*", "//", "%", ",", "min(", "max(", "cdiv(", "1", "0", "-1", "min", "cdiv",
    str(2**63 - 1), str(2**63), str(10**25), "/", "**", ".", "x", "é", '"', "  ", "1e5", "0x1", "٣", "²", "_n", "n.m",
    "\n", "\0", "<", "<=", "==", "n" * 300, "(" * 300, "-" * 300,
)  # fmt: skip


def fuzz_grid(folder: Path) -> Target:
    """A grid's text, compiled and evaluated at numbers that are at the edge of what there is."""

    def change(generator: random.Random) -> bytes:
        glue = generator.choice((" ", " ", ""))
        return glue.join(generator.choice(GRID_WORDS) for _ in range(generator.randrange(1, 30))).encode()

    def read(data: bytes) -> None:
        for parse in (parse_grid, parse_requirement):
            with contextlib.suppress(PrecastError):
                expression = parse(data.decode(), ("n", "m", "BLOCK"))
                compile_grid(expression, ("n", "m"), {"BLOCK": 64})
                for n in (0, 1, -5, 2**63 - 1, -(2**63)):
                    with contextlib.suppress(PrecastError):
                        evaluate(expression, {"n": n, "m": 7, "BLOCK": 64})

    return Target(change, read)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "manifest": fuzz_manifest, "pack": fuzz_pack, "spec": fuzz_spec, "source": fuzz_source, "toml": fuzz_toml,
    "grid": fuzz_grid,
}  # fmt: skip


def fuzz(target: str, folder: Path, seed: int, rounds: int) -> None:
    """Runs rounds of one target; of the first that ends in anything else the input is told, for the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    change, read = TARGETS[target](folder)
    for number in range(rounds):
        data = change(random.Random(f"{target} {seed} {number}"))
        try:
            read(data)
        except Exception as error:
            raise AssertionError(f"{target}: round {number} of seed {seed}: {data!r}") from error


def read_corpus(target: str, folder: Path) -> int:
    """Reads all that once did harm; how much that is."""
    folder.mkdir(parents=True, exist_ok=True)
    read, files = TARGETS[target](folder).read, sorted((CORPUS / target).iterdir())
    for file in files:
        try:
            read(file.read_bytes())
        except Exception as error:
            raise AssertionError(f"{target}: {file.name}") from error
    return len(files)
