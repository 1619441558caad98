"""Anchors: places in a stage's pipeline, as values and as text (`start`, `end`, `before(op, n)`, `after(op, n)`).

In: what a plugin or pyproject.toml says. Out: `Anchor` values that `passes.pipeline` resolves against real steps.
"""

from __future__ import annotations

import re

from precast.errors import PassError
from precast.passes.selection import Anchor

FORMS = ("start", "end", "before(op)", "before(op, n)", "after(op)", "after(op, n)")
_TEXT = re.compile(r"\s*(before|after)\s*\(\s*[\"']?([\w.:-]+)[\"']?\s*(?:,\s*(\d+)\s*)?\)\s*")


def start() -> Anchor:
    """Before every pass of the stage."""
    return Anchor("start")


def end() -> Anchor:
    """After every pass of the stage."""
    return Anchor("end")


def before(op: str, n: int = 0) -> Anchor:
    """Before the `n`-th pass named `op`, counted from 1; without `n` the name must stand once in the stage."""
    return Anchor("before", op, n)


def after(op: str, n: int = 0) -> Anchor:
    """After the `n`-th pass named `op`, counted from 1; without `n` the name must stand once in the stage."""
    return Anchor("after", op, n)


def parse_anchor(text: str) -> Anchor:
    """The anchor that `text` names; inverse of `str`. `PassError` without a place when it is none."""
    word = text.strip()
    if word in ("start", "end", "start()", "end()"):
        return Anchor(word.removesuffix("()"))
    match = _TEXT.fullmatch(word)
    if not match:
        raise PassError(f"`{text}` is not an anchor", hint=f"forms: {', '.join(f'`{form}`' for form in FORMS)}")
    kind, op, n = match.groups()
    return Anchor(kind, op, int(n or 0))
