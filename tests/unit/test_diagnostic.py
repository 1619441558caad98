"""Errors as text, exactly."""

import sys

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
