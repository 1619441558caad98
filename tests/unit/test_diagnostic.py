"""Errors as text, exactly."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from precast.diagnostic import format_error
from precast.errors import BuildFailed, CompileError, Place, SpecError, nearest_hint, relative_text


def test_error_with_place_caret_and_hint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.toml").write_text("[kernel.softmax]\nsorce = 'softmax.py:softmax'\n")
    error = SpecError("unknown key `sorce`", Place("softmax.toml", 2, 1, 5), nearest_hint("sorce", ["source", "grid"]))
    assert format_error(error) == (
        "softmax.toml:2:1: error: unknown key `sorce`\n"
        "    sorce = 'softmax.py:softmax'\n"
        "    ^~~~~\n"
        "hint: did you mean `source`?"
    )


def test_error_without_a_place():
    assert format_error(SpecError("no kernels")) == "error: no kernels"


def compile_error(unit: str) -> CompileError:
    return CompileError(
        "PassManager::run failed", hint="see the reproducer", unit=unit, stage="ttgir", pass_name="count-loads",
        reproducer="build/repro/softmax-1",
    )  # fmt: skip


def test_compile_error_names_unit_stage_pass_and_repro_command():
    assert format_error(compile_error("softmax:BLOCK=1024@cuda:90")) == (
        "error: PassManager::run failed\n"
        "  unit:  softmax:BLOCK=1024@cuda:90\n"
        "  stage: ttgir\n"
        "  pass:  count-loads\n"
        "  reproduce: precast repro build/repro/softmax-1\n"
        "hint: see the reproducer"
    )


def test_identical_failures_stand_once():
    failures = tuple(compile_error(f"softmax:BLOCK={block}@cuda:90") for block in (3, 0, 5, 1, 2, 4))
    assert format_error(BuildFailed(failures)) == (
        "error: PassManager::run failed\n"
        "  units: softmax:BLOCK=0@cuda:90, softmax:BLOCK=1@cuda:90, softmax:BLOCK=2@cuda:90, "
        "softmax:BLOCK=3@cuda:90 and 2 more\n"
        "  stage: ttgir\n"
        "  pass:  count-loads\n"
        "  reproduce: precast repro build/repro/softmax-1\n"
        "hint: see the reproducer"
    )


def test_failures_come_by_place_whatever_finished_first():
    late, early = SpecError("late", Place("a.toml", 10)), SpecError("early", Place("a.toml", 9))
    text = "error: no place\n\na.toml:9:1: error: early\n\na.toml:10:1: error: late"
    assert format_error(BuildFailed((late, early, SpecError("no place")))) == text


def test_paths_of_imports_are_relative(tmp_path):
    installed = next(path for path in sys.path if path.endswith("site-packages"))
    text = f"cannot import `x` ({tmp_path}/kernels/a.py, {installed}/jinja2/__init__.py, {tmp_path}else/b.py)"
    told = f"cannot import `x` (kernels/a.py, jinja2/__init__.py, {tmp_path}else/b.py)"
    assert relative_text(text, tmp_path) == told


def test_nearest_hint_lists_what_there_is_when_nothing_is_near():
    assert nearest_hint("zzz", ["grid", "source"], "keys") == "known keys: `grid`, `source`"


def test_a_long_message_is_cut_and_kept_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole = "\n".join(f"line {number}\x1b[2J" for number in range(5000))
    text = format_error(SpecError(whole, hint="shorter"))
    assert text.startswith("error: line 0\\x1b[2J\nline 1") and text.endswith("\nhint: shorter")
    assert len(text.splitlines()) == 62
    [place] = re.findall(r"\(of 5000 lines and \d+ characters; all of it: (.*)\)", text)
    assert Path(place).read_text() == whole.replace("\x1b", "\\x1b") and Path(place).parent == tmp_path
    assert format_error(SpecError("x" * 10**6)).count("x") < 7000


def test_a_long_message_of_a_unit_is_in_its_reproducer():
    error = compile_error("softmax:BLOCK=1024@cuda:90")
    error.message = "y" * 10_000
    assert "(of 1 lines and 10000 characters; all of it: build/repro/softmax-1/message.txt)" in format_error(error)


def test_a_long_message_is_cut_where_there_is_no_space_for_it(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc/no/such/place")
    assert format_error(SpecError("x" * 10_000)).endswith(" …\n  (of 1 lines and 10000 characters)")


def test_a_long_line_is_shown_around_the_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x" * 5000 + "HERE" + "y" * 5000 + "\n")
    lines = format_error(SpecError("no", Place("a.py", 1, 5001, 4))).splitlines()
    assert len(lines[1]) < 300 and lines[1][lines[2].index("^") :].startswith("HERE") and lines[2].endswith("^~~~")


@pytest.mark.parametrize("letter", ["\x1b", "\r", "\x9b", "\u202e", "\x07", "\x00", "\udcff"])
def test_no_control_character_reaches_a_terminal(tmp_path, monkeypatch, letter):
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_bytes(f"x = '{letter}'\n".encode("utf-8", "surrogateescape"))
    place = Place("a.py", 1)
    error = compile_error(f"k{letter}@cuda:90")
    error.message, error.hint, error.where, error.pass_name = (f"m{letter}", f"h{letter}", place, f"p{letter}")
    for text in (format_error(error), format_error(BuildFailed((error, error)))):
        assert letter not in text and text.encode()
    assert "\n" not in format_error(SpecError("m", dataclasses.replace(place, file="no\nfile"))) + letter[1:]
