"""Failures as fields for programs. In: errors. Out: frozen records with place, unit, stage, pass, hint, reproducer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.diagnostic import format_error
from precast.errors import CompileError, Place, PrecastError, order_of


@dataclass(frozen=True)
class FailureRecord:
    """`step` is "" for what was wrong before any step ran; `kind` is the error's class in words (`spec`, `compile`);
    `text` is what a person reads."""

    step: str
    kind: str
    message: str
    where: Place | None
    hint: str
    unit: str
    stage: str
    pass_name: str
    reproducer: str
    text: str

    def as_event(self) -> dict[str, object]:
        """Its fields for JSON, with `file` "" and `line` 0 where no place is known."""
        where = self.where or Place("", 0, 0)
        return {
            "step": self.step,
            "kind": self.kind,
            "message": self.message,
            "file": where.file,
            "line": where.line,
            "column": where.column,
            "hint": self.hint,
            "unit": self.unit,
            "stage": self.stage,
            "pass": self.pass_name,
            "reproducer": self.reproducer,
            "text": self.text,
        }


def describe_failure(step: str, error: PrecastError) -> FailureRecord:
    compiled = error if isinstance(error, CompileError) else CompileError("", unit="")
    return FailureRecord(
        step=step,
        kind=type(error).__name__.removesuffix("Error").lower(),
        message=error.message,
        where=error.where,
        hint=error.hint or "",
        unit=compiled.unit,
        stage=compiled.stage,
        pass_name=compiled.pass_name,
        reproducer=compiled.reproducer,
        text=format_error(error),
    )


@dataclass(frozen=True)
class FailureGroup:
    """Failures that say the same thing at the same place: the first of them, and the units of all."""

    first: FailureRecord
    units: tuple[str, ...]


def group_failures(failures: Sequence[tuple[str, PrecastError]]) -> tuple[FailureGroup, ...]:
    """Steps and their errors, by place, whatever order they came in."""
    groups: dict[tuple[str, str, str], list[FailureRecord]] = {}
    for step, error in sorted(failures, key=lambda each: (order_of(each[1]), each[0])):
        record = describe_failure(step, error)
        groups.setdefault((record.kind, str(record.where), record.message), []).append(record)
    return tuple(FailureGroup(group[0], tuple(each.unit for each in group if each.unit)) for group in groups.values())
