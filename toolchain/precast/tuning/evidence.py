"""Evidence: what one kernel took on one device, as the checked-in file `tuning/<kernel>.<device>.json`.

In: plain data in the shape of `evidence.schema.json`. Out: text, the same for the same data, with a problem in each
line. Goes into candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = 1
UNFINISHED = ".part"  # added to the name while there is more to measure
_LISTS = ("configs", "problems")


def evidence_name(kernel: str, device: str) -> str:
    """The file's name: `matmul.nvidia-h200.json`."""
    return f"{kernel}.{re.sub('[^a-z0-9]+', '-', device.lower()).strip('-') or 'device'}.json"


def render_evidence(data: Mapping[str, Any]) -> str:
    """The file's text: keys sorted, each config and each problem a line."""
    parts = []
    for name in sorted(data):
        if name in _LISTS:
            lines = ",\n".join(f"  {_compact(each)}" for each in data[name])
            parts.append(f' "{name}": [\n{lines}\n ]' if lines else f' "{name}": []')
        else:
            parts.append(f' "{name}": {_compact(data[name])}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def sort_problems(problems: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Problems in the order of their axes and sizes, numbers by value."""
    return sorted(problems, key=lambda each: (_compact(each["axes"]), sorted(each["sizes"].items())))


def problem_key(problem: Mapping[str, Any]) -> str:
    """What tells a problem from the others of its kernel."""
    return _compact([problem["axes"], problem["sizes"]])
