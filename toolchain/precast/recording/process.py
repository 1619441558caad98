"""Recording a block of a program, or a command: notes in a folder of its own, merged into the spec file at the end.

In: a path, a command. Out: the file, with what was launched; a `Merged` that says what that was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from precast.bounded import read_bounded
from precast.errors import SpecError, ToolError
from precast.recording.begin import recording_environment
from precast.recording.merging import Merged, merge_notes
from precast.recording.notes import read_notes
from precast.recording.watch import Watch
from precast.store import reason_of, write_file


@dataclass(frozen=True)
class Ran:
    """How a recorded command ended: its exit code, as a shell has it, and what it launched."""

    code: int
    merged: Merged


@dataclass
class Recording:
    """What a recorded block launched: known when it has ended."""

    merged: Merged | None = None


@contextlib.contextmanager
def record(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """Records every kernel that Triton launches within the block, in processes started there too, in the spec file.

    `SpecError` before anything runs where the file is there and is no spec file.
    """
    recording = Recording()
    file = Path(path)
    merge_notes(_read(file), file, ())
    with _notes_folder() as folder, _environment(recording_environment(folder)):
        watch = Watch(folder)
        watch.start()
        try:
            yield recording
        finally:
            watch.stop()
            recording.merged = merge_into(file, folder)


def record_command(file: Path, command: Sequence[str], target: str = "") -> Ran:
    """Runs a command and records what it and its children launch, without a device where a target is named.

    `ToolError` where it cannot be started.
    """
    merge_notes(_read(file), file, ())  # a file that is no spec is told of before, not after
    with _notes_folder() as folder:
        try:
            code = _run(command, {**os.environ, **recording_environment(folder, target)})
        finally:
            merged = merge_into(file, folder)  # what was launched until an end by a signal, too
        return Ran(code, merged)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The command's exit code; an interrupt is the command's to answer."""
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise ToolError(f"cannot run `{command[0]}`: {reason_of(error)}") from None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _notes_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="precast-record-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def merge_into(file: Path, folder: Path) -> Merged:
    """Merges the notes of a folder into the file, alone among all processes that do; nothing to add writes nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before = _read(file)
        merged = merge_notes(before, file, read_notes(folder))
        if merged.text != before:
            write_file(file.resolve(), merged.text.encode())
        return merged
    finally:
        os.close(descriptor)


def _read(file: Path) -> str:
    """The file's text, empty where there is none."""
    try:
        return read_bounded(file).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise SpecError(f"`{file}` is not UTF-8 text") from None
