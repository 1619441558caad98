"""Expected diagnostics of an IR file, as MLIR's own tests write them: `// expected-error@+1 {{text}}`.

In: the file's text and the diagnostics that running passes on it gave. Out: what is missing or not expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_EXPECTED = re.compile(r"expected-(error|warning|remark|note)\s*(?:@([+-]\d+|above|below))?\s*\{\{(.*?)\}\}")
_WRITTEN = re.compile(
    r"^(?:(?:loc\(\")?\S*?([^/\s:\"]+)\"?:(\d+):\d+\)?: )?(error|warning|remark|note): (.*)$", re.MULTILINE
)


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler at a line of its input; line 0 when it names none."""

    kind: str
    line: int
    text: str


def parse_expected(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics that comments of `text` expect."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for kind, offset, message in _EXPECTED.findall(line):
            distance = {"": 0, "above": -1, "below": 1}.get(offset)
            found.append(Diagnostic(kind, number + (int(offset) if distance is None else distance), message))
    return tuple(found)


def parse_diagnostics(written: str, file: str) -> tuple[Diagnostic, ...]:
    """The diagnostics in what native code wrote to standard error; those about other files have line 0."""
    found = []
    for name, line, kind, message in _WRITTEN.findall(written):
        found.append(Diagnostic(kind, int(line) if name == file else 0, message))
    return tuple(found)


def find_mismatches(expected: Iterable[Diagnostic], given: Iterable[Diagnostic]) -> tuple[str, ...]:
    """A line for each expected diagnostic that did not come and each error or warning that was not expected."""
    left = list(given)
    problems = []
    for wanted in expected:
        match = next((each for each in left if _fits(wanted, each)), None)
        if match:
            left.remove(match)
        else:
            problems.append(f"line {wanted.line}: expected {wanted.kind} was not given: {wanted.text}")
    problems += [f"line {each.line}: unexpected {each.kind}: {each.text}" for each in left if each.kind != "note"]
    return tuple(problems)


def _fits(wanted: Diagnostic, given: Diagnostic) -> bool:
    return given.kind == wanted.kind and given.line == wanted.line and wanted.text in given.text
