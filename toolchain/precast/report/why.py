"""Why a unit would be compiled again, or not. In: a planned unit, what was kept beside its image, and the index.

Out: reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from precast.artifact import UnitResult
from precast.bounded import read_bounded
from precast.codec import CodecError, from_json
from precast.digest import FileDigests
from precast.graph.index import Index
from precast.plan import Ingredients, PlannedUnit, read_key
from precast.plan.key import Entries
from precast.reads import ReadKind, parse_read

UP_TO_DATE = "up to date"
NEVER_BUILT = "never built"
_NOUNS = {ReadKind.ENVIRONMENT: "variable ", ReadKind.PACKAGE: "package "}


def explain(planned: PlannedUnit, project: Path, index: Index | None = None) -> tuple[str, ...]:
    """The reasons, the first ones first to look at; `("up to date",)` when there is none. The index knows what a
    unit's code read undeclared."""
    folder = project / planned.folder
    before = read_key(folder)
    image = project / planned.outputs[0]
    if before is None and not image.exists():
        return (NEVER_BUILT,)
    if before is None:
        return (f"{planned.folder}/key.json is missing: what it was built from is not known",)
    moved = index.moved(str(planned.unit)) if index else ()
    found = (*compare(before, planned.ingredients), *find_damage(planned, project), *_describe_reads(moved))
    return found or (UP_TO_DATE,)


def _describe_reads(moved: Iterable[str]) -> Iterator[str]:
    """What a unit's code read and no import shows, where it is not as it was."""
    kinds = tuple(f"{kind.value}:" for kind in ReadKind)
    for read in (parse_read(place) for place in moved if place.startswith(kinds)):
        noun = _NOUNS.get(read.kind, "")
        yield f"{noun}{read.name} changed, which its code reads"


def find_damage(planned: PlannedUnit, project: Path) -> Iterator[str]:
    """The image and facts, as far as they are missing or not what was built."""
    image, facts = planned.outputs[:2]
    try:
        result = from_json(read_bounded(project / facts), UnitResult)
    except FileNotFoundError:
        yield f"{facts} is missing"
        return
    except (CodecError, OSError):
        yield f"{facts} is damaged"
        return
    if not (project / image).is_file():
        yield f"{image} is missing"
    elif FileDigests().digest(project / image) != result.image_digest:
        yield f"{image} is not what was built"


def compare(before: Ingredients, now: Ingredients) -> Iterator[str]:
    """What differs between the ingredients of a built unit and those of the plan."""
    yield from _compare_texts("", before.spec, now.spec)
    yield from _compare_texts("option ", before.options, now.options)
    yield from _compare_files(before.sources, now.sources)
    yield from _compare_passes(before.passes, now.passes)
    yield from _compare_texts("setting ", before.settings, now.settings)
    yield from _compare_texts("tool ", before.tools, now.tools)


def _compare_texts(noun: str, before: Entries, now: Entries) -> Iterator[str]:
    old, new = dict(before), dict(now)
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            yield f"{noun}{name} is new: {new[name]}"
        elif name not in new:
            yield f"{noun}{name} is gone, was {old[name]}"
        elif old[name] != new[name]:
            yield f"{noun}{name} {old[name]} → {new[name]}"


def _compare_files(before: Entries, now: Entries) -> Iterator[str]:
    old, new = dict(before), dict(now)
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            yield f"{name} is imported now"
        elif name not in new:
            yield f"{name} is imported no more"
        elif old[name] != new[name]:
            yield f"{name} changed"


def _compare_passes(before: Entries, now: Entries) -> Iterator[str]:
    old, new = dict(before), dict(now)
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            yield f"pass {name} is new"
        elif name not in new:
            yield f"pass {name} is gone"
        elif old[name] != new[name]:
            yield f"pass {name} changed: {old[name]} → {new[name]}"
    if set(before) == set(now) and before != now:
        yield f"passes run in another order: {', '.join(new)}"
