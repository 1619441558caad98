"""Failures and warnings as a forge's annotations, which it shows in the change itself. In: events. Out: lines.

The lines are workflow commands, which runners of GitHub's kind take from whatever a step prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from precast.errors import Place, PrecastError, escape_controls
from precast.progress.events import SilentReporter, Summary
from precast.progress.failure import FailureGroup, group_failures
from precast.progress.places import Places, split_place


class AnnotationReporter(SilentReporter):
    """An annotation for each failure, when the build ends: the same at the same place is one."""

    def __init__(self, stream: TextIO, places: Places) -> None:
        self._stream = stream
        self._places = places
        self._failures: list[tuple[str, PrecastError]] = []

    def failed(self, step: str, error: PrecastError) -> None:
        self._failures.append((step, error))

    def warned(self, message: str) -> None:
        where, sentence = split_place(message)
        self._write("warning", {**(self._properties(where) if where else {}), "title": "precast"}, sentence)

    def finish(self, summary: Summary) -> None:
        for group in group_failures(self._failures):
            self._annotate(group)

    def _annotate(self, group: FailureGroup) -> None:
        first = group.first
        title = " ".join(filter(None, ["precast:", first.kind, first.stage, first.pass_name]))
        where = {**self._properties(first.where), "title": title}
        lines = [first.message, *(f"unit: {unit}" for unit in group.units[:4])]
        lines += [f"hint: {first.hint}"] if first.hint else []
        lines += [f"reproduce: precast repro {first.reproducer}"] if first.reproducer else []
        self._write("error", where, "\n".join(lines))

    def _properties(self, where: Place | None) -> dict[str, str]:
        place = self._places.place_of(where)
        return {"file": place.file, "line": str(place.line), "col": str(place.column)}

    def _write(self, level: str, properties: Mapping[str, str], message: str) -> None:
        named = ",".join(f"{name}={_escape(value, ':,')}" for name, value in properties.items())
        self._stream.write(f"::{level} {named}::{_escape(message)}\n")
        self._stream.flush()


def _escape(text: str, more: str = "") -> str:
    escaped = escape_controls(text)
    for letter in "%\r\n" + more:
        escaped = escaped.replace(letter, f"%{ord(letter):02X}")
    return escaped
