"""`precast …`: the only place that prints errors and chooses exit codes.

In: a command line. Out: exit code 0, 1 for what the user can mend, 2 for our own faults (with a traceback).
Each subcommand is a module here with `HELP`, `add_arguments(parser)` and `run(arguments)`; only the one that is
asked for is imported, so that a build with nothing to do stays fast.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from precast import __version__, collector
from precast.bounded import IrregularFileError
from precast.cli.arguments import add_folder, entered, find_command, find_project
from precast.cli.streams import OUTPUT, close_output, open_standard_streams, say
from precast.diagnostic import format_error
from precast.errors import PrecastError, SpecError, ToolError, find_nearest, nearest_hint
from precast.store import reason_of

# In the order of a kernel's life: declare, build, look, ship, clean.
COMMANDS = (
    "init", "record", "plan", "build", "tune", "why", "inspect", "passes", "opt", "repro", "verify", "coverage", "sign",
    "merge", "package", "cache", "worker", "clean", "schema", "completion",
)  # fmt: skip

USER_ERROR, OUR_ERROR, INTERRUPTED = 1, 2, 130
SOON_S = 0.02  # when a lost signal comes again: what lost it is over
# What says that we asked for what cannot be, and not that a machine or its disk refuses. A file that is not there may
# be one that we should have made.
OUR_ERRORS = {
    errno.ENOENT, errno.EEXIST, errno.EBADF, errno.EINVAL, errno.ENOTEMPTY, errno.EFAULT, errno.ESRCH, errno.ECHILD,
    errno.ESPIPE, errno.ENOTTY, errno.EDOM, errno.ERANGE,
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are the user's errors like any other, and which takes options by their whole names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        raise SpecError(message, hint=f"see `{self.prog} --help`")


def load_command(name: str) -> ModuleType:
    """The module behind one subcommand."""
    return importlib.import_module(f"precast.cli.{name}")


def build_parser(wanted: Sequence[str]) -> Parser:
    """A parser with the subcommands `wanted` filled in; the others are known by name only."""
    parser = Parser(
        prog="precast",
        description="Ahead-of-time build system for Triton kernels.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"precast {__version__}")
    add_folder(parser, "folders")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        if name not in wanted:
            commands.add_parser(name)
            continue
        module = load_command(name)
        command = commands.add_parser(
            name, help=module.HELP, description=module.HELP, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_folder(command, "more_folders")
        module.add_arguments(command)
    return parser


def _unknown_words(name: str, unknown: Sequence[str]) -> SpecError:
    """The error for words that a command does not take; for an option, with the nearest that it has."""
    parser = Parser(prog=f"precast {name}")
    load_command(name).add_arguments(parser)
    option = next((each for each in unknown if each.startswith("-")), "").partition("=")[0]
    near = find_nearest(option, parser._option_string_actions)
    hint = f"did you mean `{near}`?" if near else f"see `precast {name} --help`"
    return SpecError(f"`precast {name}` does not take `{' '.join(unknown)}`", hint=hint)


def run_command(words: list[str]) -> int:
    """Parse and run one command line; raises what went wrong."""
    name = find_command(words)
    if name and name not in COMMANDS:
        raise SpecError(f"unknown command `{name}`", hint=nearest_hint(name, COMMANDS, "commands"))
    module = load_command(name) if name else None
    try:
        arguments, unknown = build_parser([name] if name else COMMANDS).parse_known_args(words)
        if unknown:
            raise _unknown_words(arguments.command, unknown)
    except SpecError as error:
        refuse = getattr(module, "refuse", None)
        if refuse is not None:
            refuse(words, error)
        raise
    with entered((*(arguments.folders or ()), *(arguments.more_folders or ()))):
        if getattr(arguments, "project", "") is None:
            arguments.project = find_project(Path())
        return int(load_command(arguments.command).run(arguments))


def describe_fault(error: OSError) -> ToolError | None:
    """What the machine refused, as an error of the user's; None for what may be a fault of ours."""
    if error.filename == OUTPUT:
        return ToolError(f"cannot write to {OUTPUT}: {reason_of(error)}")
    if error.errno in {None, *OUR_ERRORS} and not isinstance(error, IrregularFileError):
        return None
    if not isinstance(error.filename, str):
        return ToolError(f"the system refuses: {reason_of(error)}")
    inside = os.path.relpath(error.filename)
    place = error.filename if inside.startswith("..") else inside
    return ToolError(f"cannot use {place}: {reason_of(error)}")


class Ended(KeyboardInterrupt):
    """A signal asked the process to end: as ^C does, but for the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_by_signal(number: int, frame: object) -> NoReturn:
    """Ends the command like ^C, so that what it started, and its files, end with it."""
    raise Ended(number)


def send_again(ignored: sys.UnraisableHookArgs) -> None:
    """A signal that came where Python raises nothing, as in the callback of a weak reference, comes once more."""
    error = ignored.exc_value
    if not isinstance(error, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    number = error.number if isinstance(error, Ended) else signal.SIGINT
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))
    signal.setitimer(signal.ITIMER_REAL, SOON_S)


def end_silently() -> None:
    """From here on a signal just ends the process: what Python does at its end would print a traceback."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every exception becomes text on standard error and an exit code here."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # a process of our own
        open_standard_streams()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, end_by_signal)
        sys.unraisablehook = send_again
        collector.look_seldom()
    code = run_and_tell(words)
    if argv is None:
        collector.look_no_more()
        end_silently()
    refused = close_output()
    if refused is None or code:
        return code
    if not isinstance(refused, BrokenPipeError):  # who stopped reading knows
        say(f"error: cannot write to {OUTPUT}: {reason_of(refused)}")
    return USER_ERROR


def run_and_tell(words: list[str]) -> int:
    """Run one command; its exit code, with what went wrong said."""
    try:
        return run_command(words)
    except PrecastError as error:
        say(format_error(error))
        return USER_ERROR
    except SystemExit as end:  # `--help` and `--version`
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:
        return USER_ERROR
    except KeyboardInterrupt as end:
        if isinstance(end.__cause__, PrecastError):
            say(format_error(end.__cause__))
        say("interrupted")
        return 128 + end.number if isinstance(end, Ended) else INTERRUPTED
    except OSError as error:
        told = describe_fault(error)
        say(format_error(told) if told else traceback.format_exc())
        return USER_ERROR if told else OUR_ERROR
    except Exception:
        say(traceback.format_exc() + f"\nThis is a fault of precast {__version__}, not of your project.")
        return OUR_ERROR
