"""Which units of tuned kernels are planned: the evidence in `tuning/` is read, and what it chose stays.

In: a project's folder, specs with their units. Out: units and rules; for candidates every unit, and the table of what
there is to measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from precast import __version__
from precast.errors import PlanError, nearest_hint
from precast.reads import Read, ReadKind, digest_file, digest_glob, find_files
from precast.spec.model import KernelSpec, Unit
from precast.spec.problems import Problems
from precast.target import Target
from precast.tuning.describing import Config, config_of, describe_candidates
from precast.tuning.reading import Evidence, read_evidence
from precast.tuning.rules import MOST_ROWS, SelectionRule
from precast.tuning.selecting import Selection, select, state_rules

GLOB = "tuning/*.json"


@dataclass(frozen=True)
class KernelSelection:
    """The rules of a kernel, and the evidence files that they come from."""

    kernel: str
    rules: tuple[SelectionRule, ...]
    files: tuple[str, ...]  # relative to the project


class EvidenceReader:
    """The evidence of a project, read once."""

    def __init__(self, folder: Path, problems: Problems) -> None:
        self.reads: list[Read] = []
        self.warnings: list[str] = []
        self._found: dict[str, list[Evidence]] = {}
        self._folder = folder
        self._problems = problems

    def read(self) -> None:
        """Reads all files; what is wrong with one is a problem at its place."""
        self.reads.append(Read(ReadKind.GLOB, GLOB, digest_glob(self._folder, GLOB)))
        owners: dict[tuple[str, str, str], str] = {}
        for path in find_files(self._folder, GLOB):
            name = path.relative_to(self._folder).as_posix()
            self.reads.append(Read(ReadKind.DATA, str(path), digest_file(path)))
            with self._problems.collect():
                found = read_evidence(path, str(path))
                first = owners.setdefault((found.kernel, found.target, found.device), name)
                if first != name:
                    message = f"{name} and {first} are evidence of one kernel, target and device"
                    raise PlanError(message, hint="keep one of them")
                self._found.setdefault(found.kernel, []).append(replace(found, file=name))

    def check_kernels(self, names: Iterable[str]) -> None:
        """Evidence of a kernel that the project does not have was left behind."""
        known = list(names)
        for kernel in self._found.keys() - set(known):
            for each in self._found[kernel]:
                message = f"{each.file} is evidence of kernel `{kernel}`, which there is not"
                self._problems.add([PlanError(message, hint=nearest_hint(kernel, known, "kernels"))])

    def files(self, kernel: str) -> tuple[str, ...]:
        return tuple(each.file for each in self._found.get(kernel, ()))

    def select(self, spec: KernelSpec, units: Sequence[Unit], source: Callable[[], str]) -> dict[Target, Selection]:
        """The choice for each target that there is evidence for; `source` gives the digest of the kernel's source."""
        by_target: dict[Target, list[Unit]] = {}
        for unit in units:
            by_target.setdefault(unit.target, []).append(unit)
        found = {}
        for target, own in by_target.items():
            evidence = [each for each in self._found.get(spec.name, ()) if each.target == str(target)]
            selection = select(spec, own, evidence, source()) if evidence else None
            if selection is not None:
                self.warnings += selection.warnings
                found[target] = selection
        return found


def keep_chosen(units: Sequence[Unit], selections: Mapping[Target, Selection]) -> tuple[Unit, ...]:
    """The units whose config ships; of targets without evidence all."""

    def ships(unit: Unit) -> bool:
        selection = selections.get(unit.target)
        return selection is None or config_of(unit, selection.axes) in selection.configs

    return tuple(filter(ships, units))


def find_rules(
    spec: KernelSpec, units: Sequence[Unit], selections: Mapping[Target, Selection]
) -> Iterator[SelectionRule]:
    """The rows of a kernel: what was measured, and on targets where nothing was, what the spec states."""
    for selection in selections.values():
        yield from selection.rules
    measured = {target for target, each in selections.items() if each.rules}
    for target in dict.fromkeys(unit.target for unit in units if unit.target not in measured):
        yield from state_rules(spec, [unit for unit in units if unit.target == target])


def check_rows(spec: KernelSpec, rules: Sequence[SelectionRule]) -> None:
    """`PlanError` where a kernel has more rows than a release can: on all targets together."""
    if len(rules) > MOST_ROWS:
        counts = Counter(rule.target for rule in rules)
        words = ", ".join(f"{count:,} on {target}" for target, count in counts.items())
        message = f"kernel `{spec.name}` would have {len(rules):,} rows of selection, more than {MOST_ROWS:,}: {words}"
        hint = "state fewer rows, or measure fewer problems; rows of fewer conditions hold for more sizes"
        raise PlanError(message, spec.tuning.where or spec.where, hint)


def describe_problems(
    specs: Sequence[KernelSpec], units: Sequence[Unit], sources: Mapping[str, str],
    selections: Mapping[str, Mapping[Target, Selection]],
) -> str:  # fmt: skip
    """The table of a candidates release, as text."""
    ships: dict[tuple[str, str], Sequence[Config]] = {
        (kernel, str(target)): each.configs for kernel, found in selections.items() for target, each in found.items()
    }
    return describe_candidates(specs, units, sources, ships, __version__)
