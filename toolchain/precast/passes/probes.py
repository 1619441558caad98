"""What a probe found in a plugin module: names, kinds, options and digests of its plugins, and its faults.

In: JSON that a probe wrote (`build/plugins/<name>.json`). Out: values that the plan and the command line read, so
that neither ever runs a plugin author's code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from precast.codec import to_json
from precast.digest import digest_text
from precast.spec.model import Options

FORMAT = 6  # raised whenever a probe's JSON changes: older ones are made anew


@dataclass(frozen=True)
class OptionSchema:
    """An option of a pass: a field of its dataclass. `type` is bool, int, float or str; `required` has no default."""

    name: str
    type: str
    default: str | int | float | bool | None = None
    required: bool = False


@dataclass(frozen=True)
class PluginRecord:
    """One plugin of a module, as it can be selected by `name`."""

    name: str
    kind: str
    stage: str
    anchor: str
    summary: str
    options: tuple[OptionSchema, ...]
    files: tuple[str, ...]  # that decide what it does, as `resources` names them
    digest: str
    library: str = ""
    spot: tuple[int, int] = (0, 0)  # line and column of its definition in its module; zeros: not found
    outside: str = ""  # stands for what it imports from other packages, and is in the digest
    checks_options: bool = False  # whether making one runs code of the author's, which may refuse an option


@dataclass(frozen=True)
class Fault:
    """Why a module or a plugin in it cannot be used; `line` is 0 when no line of `file` is to blame."""

    message: str
    file: str
    line: int = 0
    column: int = 1
    hint: str | None = None


@dataclass(frozen=True)
class SeenFile:
    """A file or folder that a probe's result rests on, by its path on this machine.

    `stamp` is what the file system said of one that nobody edits: while it says the same, it is not read again.
    """

    path: str
    digest: str
    stamp: str = ""


@dataclass(frozen=True)
class Probe:
    """All that is known of one plugin module. `owner` is how messages name it, `file` is its own file."""

    origin: str
    owner: str
    file: str = ""
    plugins: tuple[PluginRecord, ...] = ()
    faults: tuple[Fault, ...] = ()
    files: tuple[SeenFile, ...] = ()
    folders: tuple[SeenFile, ...] = ()  # whose names decide what it reads
    absent: tuple[str, ...] = ()  # where modules were looked for in vain, or what was asked about
    format: int = FORMAT
    seal: str = ""  # a digest of all the rest


def sealed(probe: Probe) -> Probe:
    """The probe with its seal, as it is kept in a file."""
    return replace(probe, seal=digest_text(to_json(replace(probe, seal=""))))


def stamp_of(path: Path) -> str:
    """Size, times and number of a file; "" when there is none."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def defaults_of(record: PluginRecord) -> Options:
    """The options that have a default, sorted by name."""
    pairs = [(each.name, each.default) for each in record.options if each.default is not None]
    return tuple(sorted(pairs))
