"""Failures as SARIF 2.1.0, the format of code scanning. In: events. Out: one file, written when the build ends."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from urllib.parse import quote

from precast import __version__
from precast.errors import Place, PrecastError, escape_controls
from precast.progress.events import COMPLETE, SilentReporter, Summary
from precast.progress.failure import FailureGroup, group_failures
from precast.progress.places import Places, split_place
from precast.store import write_file

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    "compile": "A unit does not compile",
    "pass": "A compiler pass does not apply",
    "plan": "Specs do not go together",
    "plugin": "A pass plugin does not load",
    "release": "A release is not what it should be",
    "spec": "A spec or setting says what is not so",
    "tool": "A tool or the machine refuses",
}
Json = dict[str, object]


class SarifReporter(SilentReporter):
    """Writes `path` at the end: a result for each failure, a notification for each warning."""

    def __init__(self, path: Path, places: Places) -> None:
        self._path = path.absolute()
        self._places = places
        self._failures: list[tuple[str, PrecastError]] = []
        self._warnings: list[str] = []

    def failed(self, step: str, error: PrecastError) -> None:
        self._failures.append((step, error))

    def warned(self, message: str) -> None:
        self._warnings.append(message)

    def finish(self, summary: Summary) -> None:
        groups = group_failures(self._failures)
        notes = [self._warning(each) for each in self._warnings]
        if not groups and summary.reason != COMPLETE:
            notes.append(_notification("error", summary.message))
        invocation = {"executionSuccessful": summary.reason == COMPLETE, "toolExecutionNotifications": notes}
        run = {
            "tool": {"driver": {"name": "precast", "version": __version__, "rules": list(map(_rule, RULES))}},
            "invocations": [invocation],
            "columnKind": "unicodeCodePoints",
            "results": [_result(each, self._places) for each in groups],
        }
        log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
        write_file(self._path, json.dumps(log, indent=1, ensure_ascii=False).encode() + b"\n")

    def _warning(self, message: str) -> Json:
        where, sentence = split_place(message)
        note = _notification("warning", sentence)
        return {**note, "locations": [_location(where, self._places)]} if where else note


def _rule(kind: str) -> Json:
    texts = {key: {"text": f"{RULES[kind]}."} for key in ("shortDescription", "fullDescription", "help")}
    return {"id": f"precast/{kind}", "name": kind.title(), **texts}


def _notification(level: str, message: str) -> Json:
    return {"level": level, "message": {"text": escape_controls(message)}}


def _result(group: FailureGroup, places: Places) -> Json:
    first = group.first
    details = {"units": list(group.units), "stage": first.stage, "pass": first.pass_name}
    details |= {"hint": first.hint, "reproducer": first.reproducer}
    kind = first.kind if first.kind in RULES else "tool"
    return {
        "ruleId": f"precast/{kind}",
        "ruleIndex": list(RULES).index(kind),
        "level": "error",
        "message": {"text": _message(group)},
        "locations": [_location(first.where, places)],
        "partialFingerprints": {"precast/v1": _fingerprint(group, places.place_of(first.where).file)},
        "properties": {name: value for name, value in details.items() if value},
    }


def _location(where: Place | None, places: Places) -> Json:
    place = places.place_of(where)
    region = {"startLine": place.line, "startColumn": place.column, "endColumn": place.column + place.length}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, "region": region}}


def _message(group: FailureGroup) -> str:
    first = group.first
    lines = [first.message]
    lines += [f"units: {', '.join(group.units)}"] if group.units else []
    lines += [f"hint: {first.hint}"] if first.hint else []
    return escape_controls("\n".join(lines))


def _fingerprint(group: FailureGroup, file: str) -> str:
    """What stays when lines above the place come and go."""
    return hashlib.sha256("\0".join((group.first.kind, file, group.first.message)).encode()).hexdigest()[:32]


def _uri(file: str) -> str:
    return f"file://{quote(file)}" if file.startswith("/") else quote(file)
