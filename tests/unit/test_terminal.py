"""What a build shows on a terminal of any width, by an emulator's screen; real builds on one are in tests/robust."""

import io
import itertools
import re

import pyte
import pytest

from precast.errors import CompileError
from precast.progress.events import Summary
from precast.progress.terminal import TerminalReporter

LONG = [f"k{'_long' * 30}{number}:BLOCK=128@cuda:90" for number in range(6)]
ODD = ["核" * 90 + "@cuda:90", '[red]k:layout="[/]"@cuda:90', "a\x1b[2J@cuda:90"]
PATH = "/a/release/of/a/long/name" * 9


class Screen(io.StringIO):
    """A terminal's stream, and what the terminal shows."""

    def __init__(self, columns):
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, 24, history=1000)
        self.emulator = pyte.Stream(self.screen)

    def isatty(self):
        return True

    def write(self, text):
        self.emulator.feed(text.replace("\n", "\r\n"))
        return super().write(text)

    @property
    def lines(self):
        gone = ["".join(row[place].data for place in range(self.screen.columns)) for row in self.screen.history.top]
        return [line.rstrip() for line in (*gone, *self.screen.display) if line.strip()]


@pytest.fixture(params=[20, 40, 80, 200])
def screen(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("TERM", "xterm-256color")
    return Screen(request.param)


def begin(screen, names, steps=300):
    reporter = TerminalReporter(screen)
    reporter.begin(steps)
    for name in names:
        reporter.started(name)
    return reporter


def show(reporter, screen):
    """The lines of the display, drawn anew."""
    reporter._display.refresh()
    return screen.lines


@pytest.mark.parametrize("names", [LONG, ODD], ids=["long", "odd"])
def test_counts_and_units_survive_any_name(screen, names):
    columns = screen.screen.columns
    reporter = begin(screen, names)
    reporter.ended(names[0], 1.0, False)
    lines = show(reporter, screen)
    running = min(len(names) - 1, 4)
    assert len(lines) == running + 1 + (len(names) - 1 > 4)
    assert all("cuda:90" in line.replace(" ", "") or columns < 40 for line in lines[:running])
    assert re.search(r"\b1/300\b", lines[-1]) and ("━" in lines[-1] or columns < 40)
    assert all(len(line) <= columns - 3 for line in lines)  # ^C has room
    reporter.finish(Summary(reason="interrupted"))
    assert screen.lines == [] and screen.screen.cursor.hidden is False


def test_the_time_left_is_told(screen):
    reporter, times = begin(screen, []), itertools.count()
    reporter._display.get_time = lambda: next(times) / 10
    for number in range(3):
        reporter.ended(f"k{number}@cuda:90", 0.1, False)
    assert re.search(r"3/300  \d+ s left$", show(reporter, screen)[-1])
    reporter.finish(Summary())


def test_what_stays_is_whole(screen):
    reporter = begin(screen, [LONG[0]])
    reporter.warned("see " + PATH)
    reporter.failed(LONG[0], CompileError("no", unit=LONG[0]))
    reporter.finish(Summary(failed=1, units=1, release=PATH))
    assert "".join(screen.lines) == f"warning: see {PATH}failed: {LONG[0]}0 built, 0 reused, 1 failed; release {PATH}"


def test_a_low_terminal_is_not_overrun(screen, monkeypatch):
    monkeypatch.setenv("LINES", "3")
    reporter = begin(screen, LONG)
    assert len(show(reporter, screen)) <= 3
    reporter.finish(Summary())
    assert screen.lines == ["0 built, 0 reused, 0 failed"] or screen.screen.columns == 20


def test_no_color_is_none(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    reporter = begin(screen, LONG)
    reporter.warned("a")
    reporter.failed(LONG[0], CompileError("no", unit=LONG[0]))
    reporter.finish(Summary())
    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|9[0-7])[0-9;]*m", screen.getvalue())
