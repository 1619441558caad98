"""What a build says: lines for a log, objects for programs, a bar for a terminal."""

import errno
import io
import json
import os

import pytest

from precast.errors import BuildFailed, CompileError, Place, PlanFailed, SpecError, ToolError
from precast.progress.careful import CarefulReporter
from precast.progress.choosing import choose_reporter
from precast.progress.events import SilentReporter, Summary, tell_end
from precast.progress.json_lines import JsonReporter
from precast.progress.junit import JunitReporter
from precast.progress.places import Places
from precast.progress.plain import PlainReporter
from precast.progress.terminal import TerminalReporter

SUMMARY = Summary(built=1, reused=1, failed=1, units=3, release="")


def play(reporter):
    reporter.begin(3)
    reporter.warned("mind [this]")
    reporter.started("a@cuda:90")
    reporter.started("b@cuda:90")
    reporter.ended("a@cuda:90", 1.25, False)
    reporter.failed("b@cuda:90", CompileError("no", Place("k.py", 3, 5), unit="b@cuda:90", stage="ttgir"))
    reporter.started("c@cuda:90")
    reporter.ended("c@cuda:90", 0.5, True)
    reporter.finish(SUMMARY)


def test_plain_lines():
    stream = io.StringIO()
    play(PlainReporter(stream))
    assert stream.getvalue() == (
        "warning: mind [this]\n"
        "[1/3] a@cuda:90  1.2 s\n"
        "[2/3] b@cuda:90  FAILED\n"
        "[3/3] c@cuda:90  reused\n"
        "1 built, 1 reused, 1 failed\n"
    )


def test_json_lines():
    stream = io.StringIO()
    play(JsonReporter(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "begin", "warning", "started", "started", "ended", "failed", "started", "ended", "summary",
    ]  # fmt: skip
    assert events[5]["text"] == "k.py:3:5: error: no\n  unit:  b@cuda:90\n  stage: ttgir"
    assert events[-1] == {
        "event": "summary", "built": 1, "reused": 1, "failed": 1, "units": 3, "release": "",
        "reason": "complete", "message": "",
    }  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_shows_counts_failures_and_the_summary():
    stream = Terminal()
    play(TerminalReporter(stream))
    text = stream.getvalue()
    assert "3/3" in text and "failed: b@cuda:90" in text and "warning: mind [this]" in text
    assert text.rstrip().endswith("1 built, 1 reused, 1 failed")


def test_silence():
    play(SilentReporter())


def test_the_reporter_suits_the_stream():
    assert type(choose_reporter(io.StringIO())) is PlainReporter
    assert type(choose_reporter(Terminal())) is TerminalReporter
    assert type(choose_reporter(Terminal(), "json")) is JsonReporter
    assert type(choose_reporter(Terminal(), "plain")) is PlainReporter


def test_summary_names_the_release():
    assert Summary(0, 2, 0, 2, "/x/1").text == "0 built, 2 reused, 0 failed; release /x/1"


class FullDisk(io.StringIO):
    def flush(self):
        if self.getvalue():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("kind", [PlainReporter, JsonReporter, TerminalReporter])
def test_what_cannot_be_written_stops_the_build_once(kind):
    stops = []
    reporter = CarefulReporter(kind(FullDisk()), stop=lambda: stops.append(1))
    play(reporter)
    assert str(reporter.fault) == "cannot write to standard output: no space left on device"
    assert len(stops) == 1


def test_a_reader_that_is_gone_is_told(capsys):
    ours, theirs = os.pipe()
    os.close(ours)
    stops = []
    reporter = CarefulReporter(JsonReporter(os.fdopen(theirs, "w")), stop=lambda: stops.append(1))
    play(reporter)
    assert (str(reporter.fault), stops) == ("cannot write to standard output: broken pipe", [1])


def test_names_cannot_move_the_cursor():
    for kind in (PlainReporter, JsonReporter, TerminalReporter):
        stream = io.StringIO()
        reporter = kind(stream)
        reporter.begin(1)
        reporter.started("a\x1b[2J")
        reporter.warned("w\x1b]0;title\x07")
        reporter.failed("a\x1b[2J", CompileError("\x1bm", unit="a\x1b[2J"))
        reporter.finish(SUMMARY)
        assert "\x1b[2J" not in stream.getvalue() and "\x07" not in stream.getvalue()


def test_a_report_that_cannot_be_written_is_the_build_s_error(tmp_path):
    """And the others are written."""
    (tmp_path / "file").touch()
    stream = io.StringIO()
    places = Places(tmp_path, tmp_path, tmp_path)
    reports = [JunitReporter(tmp_path / "file" / "a.xml", places), JunitReporter(tmp_path / "b.xml", places)]
    reporter = CarefulReporter(*reports, PlainReporter(stream))
    play(reporter)
    assert str(reporter.fault) == f"cannot write {tmp_path}/file/a.xml: file exists"
    assert (tmp_path / "b.xml").exists() and stream.getvalue().endswith("1 failed\n")


def test_programs_get_a_failure_in_parts():
    stream = io.StringIO()
    error = CompileError(
        "no",
        Place("k.py", 3, 5),
        "mend it",
        unit="b@cuda:90",
        stage="ttgir",
        pass_name="mine",
        reproducer="build/repro/b-1",
    )
    JsonReporter(stream).failed("b@cuda:90", error)
    assert json.loads(stream.getvalue()) == {
        "event": "failed", "step": "b@cuda:90", "kind": "compile", "message": "no", "file": "k.py", "line": 3,
        "column": 5,
        "hint": "mend it", "unit": "b@cuda:90", "stage": "ttgir", "pass": "mine", "reproducer": "build/repro/b-1",
        "text": "k.py:3:5: error: no\n  unit:  b@cuda:90\n  stage: ttgir\n  pass:  mine\n"
        "  reproduce: precast repro build/repro/b-1\nhint: mend it",
    }  # fmt: skip


def end_with(error, **counts):
    """The events that `error` makes when it ends a build."""
    stream = io.StringIO()
    tell_end(JsonReporter(stream), error, counts=Summary(**counts))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_end_has_a_reason():
    assert end_with(KeyboardInterrupt(), built=2)[-1]["reason"] == "interrupted"
    fault = end_with(ValueError("no"))[-1]
    assert (fault["reason"], fault["message"]) == ("fault", "ValueError: no")
    failed, summary = end_with(SpecError("what", Place("a.toml", 2)))
    assert (failed["event"], failed["step"], failed["kind"], failed["line"]) == ("failed", "", "spec", 2)
    assert (summary["reason"], summary["message"]) == ("error", "what")


def test_all_that_is_wrong_with_a_project_is_told():
    errors = (SpecError("a"), PlanFailed((SpecError("b"), SpecError("c"))))
    events = end_with(PlanFailed(errors))
    assert [event["message"] for event in events[:-1]] == ["a", "b", "c"]
    assert events[-1]["message"] == "2 errors in the project"


def test_what_was_told_is_not_told_again():
    told = CompileError("no", unit="a")
    reporter = Recording()
    tell_end(reporter, BuildFailed((told, ToolError("full"))), (told,))
    assert reporter.failures == ["full"]


class Recording(SilentReporter):
    def __init__(self):
        self.failures = []

    def failed(self, step, error):
        self.failures.append(error.message)
