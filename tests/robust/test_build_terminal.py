"""Builds on a terminal, as a person sees them: what stands on the screen while they run and when they have ended.

A pseudo-terminal and an emulator of one (pyte): what the screen shows is what its cells hold.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte
import pytest
from builds import make_tree as make_small_tree

LONG = "k" + "_long" * 20


class Terminal:
    """A command in a terminal of so many columns, in a process group of its own, as a shell starts it."""

    def __init__(self, folder, columns, *words, **environment):
        self.raw = b""
        self.screen = pyte.HistoryScreen(columns, 24, history=1000)
        self.stream = pyte.ByteStream(self.screen)
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
            os.chdir(folder)
            command = [sys.executable, "-m", "precast", *words]
            os.execve(sys.executable, command, {**keep, "TERM": "xterm-256color", **environment})

    def read(self, until=lambda lines: False, seconds=60.0):
        """Feeds the screen until it shows what is waited for, or the command has ended; its lines."""
        deadline = time.monotonic() + seconds
        while not until(self.lines()):
            assert time.monotonic() < deadline, "\n".join(self.lines())
            if not select.select([self.terminal], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.terminal, 65536)
            except OSError:  # the command has closed it
                break
            if not data:
                break
            self.raw += data
            self.stream.feed(data)
        return self.lines()

    def lines(self):
        """What has scrolled away and what is on the screen, without empty lines."""
        gone = ["".join(row[place].data for place in range(self.screen.columns)) for row in self.screen.history.top]
        return [line.rstrip() for line in (*gone, *self.screen.display) if line.strip()]

    def press(self, key):
        os.write(self.terminal, key)

    def end(self):
        """The lines of the ended command and its exit code."""
        lines = self.read()
        _, status = os.waitpid(self.child, 0)
        os.close(self.terminal)
        return lines, os.waitstatus_to_exitcode(status)


def make_tree(folder, count, order):
    tree = make_small_tree(folder, kernels=0)
    for number in range(count):
        tree.add_kernel(f"{LONG}{number}", imports=f"# stand-in: {order}")
    return tree


def joined(lines):
    """Lines as the program wrote them, where the terminal broke them."""
    return "".join(lines)


@pytest.mark.all
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_bar_counts_and_running_units_survive_any_name_and_width(tmp_path, columns):
    tree, opened = make_tree(tmp_path / "p", 3, "run gate.py"), tmp_path / "opened"
    wait = f"import os, time\nwhile not os.path.exists({str(opened)!r}):\n    time.sleep(0.01)\n"
    tree.write("kernels/gate.py", wait)
    terminal = Terminal(tree.folder, columns, "build", "-j2")
    shown = terminal.read(lambda lines: sum(LONG[:9] in line for line in lines) == 2)
    head = next(line for line in shown if re.search(r"\b\d+/\d+", line))
    assert "━" in head
    assert all("@cuda:90" in line and ("…" in line or columns == 200) for line in shown if LONG[:9] in line)
    opened.touch()
    lines, code = terminal.end()
    assert code == 0
    release = next((tree.folder / "generated/demo").glob("1.0*"))
    assert joined(lines) == f"3 built, 0 reused, 0 failed; release {release}"  # a path, whole, and nothing else
    assert terminal.screen.cursor.hidden is False


@pytest.mark.all
def test_a_bar_tells_the_time_left(tmp_path):
    tree = make_tree(tmp_path / "p", 6, "sleep 0.4")
    terminal = Terminal(tree.folder, 80, "build", "-j1")
    terminal.read(lambda lines: any(re.search(r"\d+/\d+  \d+ s left", line) for line in lines))
    assert terminal.end()[1] == 0


@pytest.mark.parametrize("columns", [40, pytest.param(200, marks=pytest.mark.all)])
def test_ctrl_c_leaves_one_clean_line(tmp_path, columns):
    tree = make_tree(tmp_path / "p", 2, "hang llir")
    terminal = Terminal(tree.folder, columns, "build", "-j2", "-k")
    terminal.read(lambda lines: sum(LONG[:9] in line for line in lines) == 2)
    terminal.press(b"\x03")
    lines, code = terminal.end()
    assert (lines, code) == (["interrupted"], 130)
    assert terminal.screen.cursor.hidden is False


@pytest.mark.all
def test_a_failed_unit_is_named_in_one_line(tmp_path):
    tree = make_tree(tmp_path / "p", 1, "fail llir")
    lines, code = Terminal(tree.folder, 40, "build").end()
    assert code == 1
    unit = f"{LONG}0:dtype=fp32,BLOCK=128@cuda:90"
    assert f"failed: {unit}0 built, 0 reused, 1 failed" in joined(lines)


COLOR = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.mark.all
def test_no_color_means_none(tmp_path):
    tree = make_tree(tmp_path / "p", 1, "sleep 0.3")
    plain = Terminal(tree.folder, 80, "build", NO_COLOR="1")
    assert plain.end()[1] == 0
    colors = {found for found in COLOR.findall(plain.raw) if re.search(rb"[34][0-9]|9[0-9]", found)}
    assert colors == set()


@pytest.mark.all
def test_a_dumb_terminal_gets_lines(tmp_path):
    tree = make_tree(tmp_path / "p", 1, "sleep 0.1")
    dumb = Terminal(tree.folder, 200, "build", TERM="dumb")
    lines, code = dumb.end()
    assert code == 0 and b"\x1b" not in dumb.raw
    assert lines[0].startswith("[1/") and lines[-1].startswith("1 built")


@pytest.mark.all
def test_hanging_up_ends_it(tmp_path):
    tree = make_tree(tmp_path / "p", 1, "hang llir")
    terminal = Terminal(tree.folder, 80, "build")
    terminal.read(lambda lines: any(LONG[:9] in line for line in lines))
    os.kill(terminal.child, signal.SIGTERM)
    lines, code = terminal.end()
    assert lines == ["interrupted"] and code in (130, 143)  # SCons may be the one that hears it


TALKING = """
import precast

print("a script")
env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
said = env.Command("build/said", [], "echo a program; echo its errors >&2; printf 'no end'; touch $TARGET")
env.Depends(env.Precast(), said)
"""
TALK = ["a script", "a program", "its errors", "no end"]


def make_talking_tree(folder):
    tree = make_tree(folder, 1, "")
    tree.write("SConstruct", TALKING)
    return tree


def test_what_programs_print_leaves_the_bar_alone(tmp_path):
    """What SCons, an SConstruct or a compiler prints stands above the display, in whole lines."""
    tree = make_talking_tree(tmp_path / "p")
    lines, code = Terminal(tree.folder, 200, "build").end()
    assert code == 0 and lines[:-1] == TALK and lines[-1].startswith("1 built"), lines


@pytest.mark.all
def test_what_programs_print_is_no_event(tmp_path):
    tree = make_talking_tree(tmp_path / "p")
    build = tree.build()
    assert build.code == 0 and build.err.splitlines() == TALK
    assert len(build.out.splitlines()) == len(build.events)
