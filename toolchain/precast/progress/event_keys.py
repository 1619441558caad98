"""The events of `precast build --json`, as data: one object a line, of which `event` says which it is.

In: nothing. Out: a table of keys for each event, for the reference and the JSON Schema of a line.
"""

from __future__ import annotations

from precast.progress.events import COMPLETE, ERROR, FAILED, FAULT, INTERRUPTED
from precast.schema import Array, Boolean, Integer, Key, Real, Table, Text

STEP = Key("step", Text(), "the step's name, which for units is the unit's text", required=True)


def _given(name: str, meaning: str) -> Key:
    return Key(name, Text(), meaning, required=True)


def _counted(name: str, meaning: str) -> Key:
    return Key(name, Integer(0), meaning, required=True)


EVENTS = {
    "begin": Table("the plan is made", (_counted("steps", "steps that are stale"),)),
    "stale": Table(
        "with `-n`: a step that would run",
        (STEP, Key("reasons", Array(Text()), "why, the first one first to look at", required=True)),
    ),
    "started": Table("a step began", (STEP,)),
    "ended": Table(
        "a step ended well",
        (
            STEP,
            Key("seconds", Real(), "how long it took", required=True),
            Key("reused", Boolean(), "whether its image was in the store", required=True),
        ),
    ),
    "failed": Table(
        "something is wrong: a step, or what did not let any begin",
        (
            _given("step", "the step that failed, else `\"\"`"),
            _given("kind", "the error's class: `spec`, `plan`, `compile`, `pass`, `plugin`, `tool`, `release`"),
            _given("message", "what is wrong, in a sentence"),
            _given("file", "where, else `\"\"`"),
            _counted("line", "the line, from 1; 0: not known"),
            _counted("column", "the column, from 1; 0: not known"),
            _given("hint", "what would do, else `\"\"`"),
            _given("unit", "the unit, else `\"\"`"),
            _given("stage", "the stage that failed, else `\"\"`"),
            _given("pass", "the pass to blame, else `\"\"`"),
            _given("reproducer", "a folder for `precast repro`, else `\"\"`"),
            _given("text", "all of it as a person reads it"),
        ),
    ),
    "warning": Table(
        "something that changes no result",
        (
            _given("message", "a sentence, after its place where it has one"),
            _given("file", "where, else `\"\"`"),
            _counted("line", "the line, from 1; 0: not known"),
            _counted("column", "the column, from 1; 0: not known"),
        ),
    ),
    "summary": Table(
        "the last line, however the build ended",
        (
            Key("reason", Text((COMPLETE, FAILED, ERROR, INTERRUPTED, FAULT)), "how it ended", required=True),
            _given("message", "why there is no release, else `\"\"`"),
            _given("release", "the release's folder, else `\"\"`"),
            _counted("units", "units that were asked for"),
            _counted("built", "units with a new image"),
            _counted("reused", "units whose image was there"),
            _counted("failed", "units and steps that failed"),
            Key("checked", Integer(0), "with `--check`: units that were built again"),
        ),
    ),
}  # fmt: skip
