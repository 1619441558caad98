"""Shows the release that `precast build` made: every kernel and target, and what the CPU ones compute.

The CPU kernels run from Python and from a small C program (`numerics/runner.c`); their largest error against NumPy in
float64 stands in the table, over three shapes each. Exit status 1 when one is out of tolerance.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from precast.plan import plan_project
from precast.project import read_project
from precast.release.manifest import Manifest, ManifestUnit, read_manifest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "numerics"))

from release_calls import build_runner, list_calls  # noqa: E402 (needs the path above)
from release_runs import Run, import_package, run_from_c, run_from_python  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One kernel on one target, over its variants: sizes in bytes, the largest registers and spills."""

    kernel: str
    target: str
    units: int
    code_bytes: int
    registers: int | None
    spill_bytes: int | None


def make_rows(manifest: Manifest) -> list[Row]:
    """One row per kernel and target, sorted."""
    groups: dict[tuple[str, str], list[ManifestUnit]] = {}
    for unit in manifest.units:
        groups.setdefault((unit.kernel, unit.target), []).append(unit)
    return [make_row(kernel, target, units) for (kernel, target), units in sorted(groups.items())]


def make_row(kernel: str, target: str, units: Sequence[ManifestUnit]) -> Row:
    registers = [unit.facts.registers for unit in units if unit.facts.registers is not None]
    spills = [unit.facts.spill_bytes for unit in units if unit.facts.spill_bytes is not None]
    code = sum(unit.facts.code_bytes for unit in units)
    return Row(kernel, target, len(units), code, max(registers, default=None), max(spills, default=None))


def render_table(rows: Sequence[Row], runs: Sequence[Run]) -> Table:
    """The table: what was built, and for the CPU how near it comes."""
    table = Table(box=None, header_style="bold")
    for title in ("kernel", "target"):
        table.add_column(title)
    for title in ("units", "code bytes", "registers", "spilled bytes", "error, Python", "error, C", "of allowed"):
        table.add_column(title, justify="right")
    for row in rows:
        numbers = (row.units, row.code_bytes, row.registers, row.spill_bytes)
        table.add_row(row.kernel, row.target, *(format_count(each) for each in numbers), *format_errors(runs, row))
    return table


def format_count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def format_errors(runs: Sequence[Run], row: Row) -> list[str]:
    """The largest absolute errors from Python and from C, and the largest share of a tolerance that they take."""
    mine = [run for run in runs if (run.call.kernel, run.call.target) == (row.kernel, row.target)]
    if not mine:
        return []
    largest = [max(run.largest for run in mine if run.launcher == launcher) for launcher in ("python", "c")]
    return [*(f"{each:.1e}" for each in largest), f"{max(run.share for run in mine):.0%}"]


def run_cpu_kernels(release: Path) -> list[Run]:
    """Every CPU variant, three shapes each, from Python and from C."""
    plan = plan_project(read_project(ROOT))
    calls = list_calls(plan, "cpu:*")
    with tempfile.TemporaryDirectory() as folder:
        runner = build_runner(plan, release, Path(folder) / "runner")
        return [
            *run_from_python(import_package(release), calls),
            *run_from_c(runner, calls, Path(folder) / "problems"),
        ]


def main() -> int:
    release = ROOT / "generated" / "kernels" / "current"
    runs = run_cpu_kernels(release)
    console = Console(width=120, soft_wrap=True)
    console.print(render_table(make_rows(read_manifest(release)), runs))
    wrong = [run for run in runs if not run.share <= 1]
    for run in wrong:
        console.print(f"out of tolerance: {run}: {run.largest:.1e}")
    console.print(f"{len(runs)} launches on the CPU, {len(wrong)} out of tolerance")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
