"""What a build would make, and why. In: a session. Out: a line for each stale step, or a JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator

from precast.errors import escape_controls
from precast.graph.session import Session
from precast.graph.steps import Step, UnitStep
from precast.layout import SCONSTRUCT
from precast.report.why import explain


def print_preview(session: Session, *, as_json: bool) -> None:
    steps = list_stale(session)
    if as_json:
        for name, reasons in steps:
            print(json.dumps({"event": "stale", "step": name, "reasons": reasons}, ensure_ascii=False))
        return
    for name, reasons in steps:
        print(escape_controls(f"{name}: {'; '.join(reasons)}"))


def list_stale(session: Session) -> list[tuple[str, list[str]]]:
    """Each stale step with the reasons for it, in the order of the flow."""
    found = []
    if session.build_script_moved():
        found.append((SCONSTRUCT, ["never run, or changed; what it builds for plugins may change what follows"]))
    made = set[str]()
    for step in session.stale:
        found.append((step.name, list(_reasons(session, step, made))))
        made.update(step.outputs)
    return found


def _reasons(session: Session, step: Step, made: set[str]) -> Iterator[str]:
    if isinstance(step, UnitStep):
        yield from explain(step.planned, session.folder, session.index)
        return
    record = session.index.step(step.name)
    anew = sum(1 for path in step.inputs if path in made)
    if record is None:
        yield "never made"
    elif anew:
        yield f"{anew} of its inputs are made anew" if anew > 1 else "one of its inputs is made anew"
    else:
        yield "what it is made of changed, or it is damaged"
