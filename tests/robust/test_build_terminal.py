"""Builds on a terminal, as a person sees them: what stands on the screen while they run and when they have ended.

A pseudo-terminal and an emulator of one, and tmux where it is installed: what the screen shows is what its cells hold.
"""

import os
import re
import shutil
import signal

import pytest
from builds import make_tree as make_small_tree
from gate import Gate
from terminals import Terminal, Tmux

LONG = "k" + "_long" * 20
NO_TMUX = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
IN_TMUX = pytest.param(Tmux, id="tmux", marks=[NO_TMUX, pytest.mark.all])


@pytest.fixture
def start():
    """Starts a command in a terminal of a kind; what is still open is closed."""
    opened = []

    def begin(kind, *words, **environment):
        opened.append(kind(*words, **environment))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def make_tree(folder, count, order):
    tree = make_small_tree(folder, kernels=0)
    for number in range(count):
        tree.add_kernel(f"{LONG}{number}", imports=f"# stand-in: {order}")
    return tree


def joined(lines):
    """Lines as the program wrote them, where the terminal broke them."""
    return "".join(lines)


def shows_two_units(lines):
    """Whether the display is whole, for its counts are drawn last, and has two units."""
    return len(lines) == 3 and all(LONG[:9] in line for line in lines[:2]) and re.search(r"\b\d+/\d+", lines[2])


@pytest.mark.all
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("kind", [pytest.param(Terminal, id="pty"), IN_TMUX])
def test_bar_counts_and_running_units_survive_any_name_and_width(tmp_path, start, kind, columns):
    tree = make_tree(tmp_path / "p", 3, Gate.ORDER)
    gate = Gate(tree)
    terminal = start(kind, tree.folder, columns, "build", "-j2")
    *shown, head = terminal.read(shows_two_units)
    assert "━" in head
    assert all("@cuda:90" in line and ("…" in line or columns == 200) for line in shown)
    gate.open()
    lines, code = terminal.end()
    assert code == 0
    release = next((tree.folder / "generated/demo").glob("1.0*"))
    assert joined(lines) == f"3 built, 0 reused, 0 failed; release {release}"  # a path, whole, and nothing else
    assert terminal.has_cursor()


@pytest.mark.all
def test_a_bar_tells_the_time_left(tmp_path):
    tree = make_tree(tmp_path / "p", 6, "")
    gate = Gate(tree, f"{LONG}4")
    terminal = Terminal(tree.folder, 80, "build", "-j1")
    terminal.read(lambda lines: any(re.search(r"\d+/\d+  .* left", line) for line in lines))
    gate.open()
    assert terminal.end()[1] == 0


@pytest.mark.parametrize("columns", [40, *(pytest.param(each, marks=pytest.mark.all) for each in (80, 200))])
@pytest.mark.parametrize("kind", [pytest.param(Terminal, id="pty"), IN_TMUX])
def test_ctrl_c_leaves_one_clean_line(tmp_path, start, kind, columns):
    tree = make_tree(tmp_path / "p", 2, "hang llir")
    terminal = start(kind, tree.folder, columns, "build", "-j2", "-k")
    terminal.read(shows_two_units)
    terminal.press(b"\x03")
    lines, code = terminal.end()
    assert (lines, code) == (["interrupted"], 130)
    assert terminal.has_cursor()


@pytest.mark.all
def test_a_failed_unit_is_named_in_one_line(tmp_path):
    tree = make_tree(tmp_path / "p", 1, "fail llir")
    lines, code = Terminal(tree.folder, 40, "build").end()
    assert code == 1
    unit = f"{LONG}0:dtype=fp32,BLOCK=128@cuda:90"
    assert f"failed: {unit}0 built, 0 reused, 1 failed" in joined(lines)


COLOR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:[34][0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")


@pytest.mark.all
@pytest.mark.parametrize("kind", [pytest.param(Terminal, id="pty"), IN_TMUX])
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["color", "plain"])
def test_no_color_means_none(tmp_path, start, kind, environment):
    tree = make_tree(tmp_path / "p", 2, "hang llir")
    terminal = start(kind, tree.folder, 80, "build", "-j2", **environment)
    terminal.read(lambda lines: shows_two_units(lines) and (environment or COLOR.search(terminal.colored())))
    assert bool(COLOR.search(terminal.colored())) == (not environment)
    terminal.press(b"\x03")
    assert terminal.end()[1] == 130


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
print("a script")
said = env.Command("build/said", [], "echo a program; echo its errors >&2; printf 'no end'; touch $TARGET")
env.Depends(env.Precast(), said)
"""
TALK = ["a script", "a program", "its errors", "no end"]


def make_talking_tree(folder):
    tree = make_tree(folder, 1, "")
    tree.edit("SConstruct", "env.Precast()\n", TALKING)
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
