"""Terminals that a test runs a command in and reads the screen of: a pseudo-terminal with an emulator, and tmux.

Both have the same methods, so that one test holds for both.
"""

import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

ROWS = 24
TIME_LIMIT_S = 300.0


def clean_environment():
    return {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES", "TMUX")}


class Terminal:
    """A command in a pseudo-terminal of so many columns, in a process group of its own, as a shell starts it; its
    screen is that of an emulator (pyte)."""

    def __init__(self, folder, columns, *words, **environment):
        self.raw = b""
        self.screen = pyte.HistoryScreen(columns, ROWS, history=1000)
        self.stream = pyte.ByteStream(self.screen)
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
            os.chdir(folder)
            command = [sys.executable, "-m", "precast", *words]
            os.execve(sys.executable, command, {**clean_environment(), "TERM": "xterm-256color", **environment})

    def read(self, until=lambda lines: False, seconds=TIME_LIMIT_S):
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

    def has_cursor(self):
        return not self.screen.cursor.hidden

    def colored(self):
        """What the command has sent so far, with its escape sequences."""
        return self.raw.decode(errors="replace")

    def close(self):
        pass


# The pane outlives the command, so that its last screen can be read; ^C is for the command alone.
KEEPING = 'trap : INT; "$@"; echo $? > "$CODE.new"; mv "$CODE.new" "$CODE"; exec tail -f /dev/null'


class Tmux:
    """The same in a window of tmux, on a server of its own."""

    def __init__(self, folder, columns, *words, **environment):
        self.place = Path(tempfile.mkdtemp(prefix="tmux"))  # a socket's path is short
        self.code = self.place / "code"
        settings = self.place / "tmux.conf"
        settings.write_text('set -g status off\nset -g history-limit 1000\nset -g default-terminal "screen-256color"\n')
        said = [f"{name}={value}" for name, value in {"CODE": self.code, **environment}.items()]
        command = ["env", *said, "sh", "-c", KEEPING, "sh", sys.executable, "-m", "precast", *words]
        size = ["-x", str(columns), "-y", str(ROWS)]
        self._tmux("-f", settings, "new-session", "-d", *size, "-c", folder, shlex.join(map(str, command)))
        assert self._tmux("display-message", "-p", "#{pane_width}x#{pane_height}").strip() == f"{columns}x{ROWS}"

    def _tmux(self, *words):
        command = ["tmux", "-u", "-S", self.place / "s", *words]
        environment = {**clean_environment(), "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def read(self, until=lambda lines: False, seconds=TIME_LIMIT_S):
        """Looks at the window until it shows what is waited for, or the command has ended; its lines."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.code.exists()
            lines = self.lines()
            if ended or until(lines):
                return lines
            assert time.monotonic() < deadline, "\n".join(lines)
            time.sleep(0.02)

    def lines(self):
        shown = self._tmux("capture-pane", "-p", "-S", "-", "-E", "-")
        return [line.rstrip() for line in shown.splitlines() if line.strip()]

    def press(self, key):
        self._tmux("send-keys", "-H", *(f"{each:02x}" for each in key))

    def end(self):
        return self.read(), int(self.code.read_text())

    def has_cursor(self):
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def colored(self):
        """What the window shows now, with its escape sequences."""
        return self._tmux("capture-pane", "-e", "-p", "-S", "-", "-E", "-")

    def close(self):
        self._tmux("kill-server")
        shutil.rmtree(self.place)
