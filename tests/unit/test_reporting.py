"""What a build says: lines for a log, objects for programs, a bar for a terminal."""

import errno
import io
import json
import os

import pytest

from precast.errors import CompileError, Place
from precast.graph.reporting import (
    CarefulReporter,
    JsonReporter,
    PlainReporter,
    SilentReporter,
    Summary,
    choose_reporter,
)
from precast.graph.terminal import TerminalReporter

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
    assert events[-1] == {"event": "summary", "built": 1, "reused": 1, "failed": 1, "units": 3, "release": ""}


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
    reporter = CarefulReporter(kind(FullDisk()), lambda: stops.append(1))
    play(reporter)
    assert str(reporter.fault) == "cannot write to standard output: no space left on device"
    assert len(stops) == 1


def test_a_reader_that_is_gone_is_told(capsys):
    ours, theirs = os.pipe()
    os.close(ours)
    stops = []
    reporter = CarefulReporter(JsonReporter(os.fdopen(theirs, "w")), lambda: stops.append(1))
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
