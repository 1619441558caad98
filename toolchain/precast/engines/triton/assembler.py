"""What ptxas says: registers and spills when it succeeds, a line of PTX when it does not.

In: ptxas's text, and PTX with `.loc` directives. Out: numbers, messages, and the source line that a PTX line is of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores")
_ERROR = re.compile(r"^ptxas .*?, line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")


@dataclass(frozen=True)
class AssemblerError:
    """The first error of ptxas: what, and in which line of its input (1-based)."""

    message: str
    line: int


def parse_log(log: str) -> dict[str, int]:
    """Registers per thread and spilled bytes per thread from `ptxas -v`; the largest where it reports several."""
    registers = [int(each) for each in _REGISTERS.findall(log)]
    spills = [int(each) for each in _SPILLS.findall(log)]
    found = {"registers": max(registers)} if registers else {}
    return found | ({"spill_bytes": max(spills)} if spills else {})


def find_error(text: str) -> AssemblerError | None:
    """The first error in what ptxas printed."""
    match = _ERROR.search(text)
    return AssemblerError(f"ptxas: {match[2].strip()}", int(match[1])) if match else None


def find_source_line(ptx: str, line: int) -> tuple[str, int, int] | None:
    """File, line and column that the PTX at `line` was made of: those of the nearest `.loc` before it."""
    files = {number: f"{folder}/{name}" if name else folder for number, folder, name in _FILE.findall(ptx)}
    for text in reversed(ptx.splitlines()[:line]):
        match = _LOCATION.match(text)
        if match and match[1] in files:
            return files[match[1]], int(match[2]), int(match[3])
    return None
