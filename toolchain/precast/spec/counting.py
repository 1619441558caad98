"""How many units a kernel comes to, counted before any is made: a matrix of a few axes can be more than a disk holds.

In: a kernel's table and spec. Out: an error at the matrix, with the count of each axis, where there are too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from precast.spec.hints import count_hint_sets
from precast.spec.model import Axis, KernelSpec
from precast.spec.table import KernelTable
from precast.target import Target


def check_count(table: KernelTable, spec: KernelSpec, targets: Sequence[Target], limit: int) -> None:
    """Adds an error when the kernel has more units than `limit` (0: any number), before `exclude`."""
    counts = {target: _count(spec, target) for target in targets}
    total = sum(counts.values())
    if not limit or total <= limit:
        return
    most = max(targets, key=lambda target: counts[target])
    parts = [f"{size:,} {name}" for name, size in _sizes(spec, most)]
    parts += [f"{len(targets)} targets"] if len(targets) > 1 else []
    message = f"kernel `{spec.name}` would have {total:,} units, more than {limit:,}: {' × '.join(parts)}"
    hint = "leave some values out, or raise `max_units` in [tool.precast]"
    table.problems.add([table.place_of("matrix").key_error(message, hint)])


def axes_on(spec: KernelSpec, target: Target) -> dict[str, Axis]:
    """The axes that multiply a kernel on a target: those of a section win over the matrix's."""
    sections = [section for section in spec.targets if target.matches(section.pattern)]
    return {axis.name: axis for axes in (spec.axes, *(section.axes for section in sections)) for axis in axes}


def _count(spec: KernelSpec, target: Target) -> int:
    """The units on one target: for each config the product of the axes that it leaves free."""
    axes = axes_on(spec, target)
    combinations = sum(
        math.prod(len(axis.values) for name, axis in axes.items() if name not in dict(config))
        for config in spec.configs_on(target) or ((),)
    )
    return combinations * count_hint_sets(spec)


def _sizes(spec: KernelSpec, target: Target) -> Iterator[tuple[str, int]]:
    """What a kernel's units on one target are the product of, for a message."""
    for name, axis in axes_on(spec, target).items():
        if len(axis.values) > 1:
            yield f"of `{name}`", len(axis.values)
    if len(spec.configs_on(target)) > 1:
        yield "configs", len(spec.configs_on(target))
    if count_hint_sets(spec) > 1:
        yield f"of `{'hints' if spec.hints else 'specialize'}`", count_hint_sets(spec)
