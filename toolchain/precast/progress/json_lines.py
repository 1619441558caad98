"""A build as JSON, one object a line; the last is the summary. In: events. Out: lines on a stream."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TextIO

from precast.errors import PrecastError
from precast.progress.events import Summary
from precast.progress.failure import describe_failure
from precast.progress.places import split_place
from precast.progress.plain import write_line


class JsonReporter:
    """One JSON object per line; the last is the summary."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def begin(self, steps: int) -> None:
        self._write("begin", steps=steps)

    def started(self, step: str) -> None:
        self._write("started", step=step)

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._write("ended", step=step, seconds=round(seconds, 4), reused=reused)

    def failed(self, step: str, error: PrecastError) -> None:
        self._write("failed", **describe_failure(step, error).as_event())

    def warned(self, message: str) -> None:
        where, _ = split_place(message)
        file, line, column = (where.file, where.line, where.column) if where else ("", 0, 0)
        self._write("warning", message=message, file=file, line=line, column=column)

    def said(self, line: str, stream: TextIO) -> None:
        write_line(line, stream)

    def finish(self, summary: Summary) -> None:
        values = asdict(summary)
        if not summary.checked:
            del values["checked"]
        self._write("summary", **values)

    def _write(self, event: str, **values: object) -> None:
        write_line(json.dumps({"event": event, **values}, ensure_ascii=False), self._stream)
