"""Findings: what an analysis pass learned about a unit, as JSON text.

In: the frozen dataclass that a pass returned. Out: canonical JSON for the unit's record and the release.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from precast.artifact import Finding


def record_finding(pass_name: str, value: Any) -> Finding | None:
    """The finding that `value` is; None for None. `TypeError` when it is not JSON-able."""
    if value is None:
        return None
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"`run` returned a {type(value).__name__}: return None or a frozen dataclass of findings")
    try:
        text = json.dumps(dataclasses.asdict(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"the findings of `run` are not JSON: {error}") from None
    return Finding(pass_name, text)
