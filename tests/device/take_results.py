"""Stores what a device kit's run found: `python tests/device/take_results.py DEVICE.json`.

Reads the file that the kit's `run.py` wrote on the device's machine and writes bench/results/launch.json (the figures
of bench/launch.py) and bench/results/device.json (which checks passed, and for each kernel how far it was from its
reference). A run in which a part died is refused: nothing is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from precast.errors import PrecastError, ReleaseError

RESULTS = Path(__file__).parents[2] / "bench/results"


def summarize_kernels(launches: list[dict[str, Any]]) -> dict[str, Any]:
    """Per kernel: launches, wrong ones, and the largest share of the allowed error."""
    kernels: dict[str, Any] = {}
    for launch in launches:
        entry = kernels.setdefault(launch["kernel"], {"launches": 0, "failures": [], "largest_share": 0.0})
        entry["launches"] += 1
        entry["largest_share"] = max(entry["largest_share"], launch["share"])
        if launch["failure"]:
            entry["failures"].append(f"{launch['variant']} from {launch['launcher']}: {launch['failure']}")
    return dict(sorted(kernels.items()))


def split_results(parts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The contents of each result file by its name."""
    dead = [name for name, part in parts.items() if part["result"] is None]
    if dead:
        raise ReleaseError(f"the run has no results of {', '.join(dead)}", hint="its `output` says why the part died")
    launch = parts["launch"]["result"]
    device = {"machine": launch["machine"], "runtime": parts["runtime"]["result"],
              "kernels": summarize_kernels(parts["kernels"]["result"])}  # fmt: skip
    return {"launch.json": launch, "device.json": device}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        for name, content in split_results(json.loads(Path(sys.argv[1]).read_text())).items():
            (RESULTS / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
            print(RESULTS / name)
    except PrecastError as error:
        print(f"error: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
