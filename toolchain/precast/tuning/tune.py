"""`python -m <release>.tune`: measures a candidates release on this machine's device.

In: a command line. Out: evidence. Goes into candidates as their package's `tune`; `precast tune` runs the
same. Needs the driver, Python and NumPy.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from functools import partial
from pathlib import Path

from precast.tuning.devices import FLUSHED, WARM, DeviceFault
from precast.tuning.measuring import Method
from precast.tuning.running import KINDS, tune_release

TABLE = "tuning.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure and how; `precast tune` has the same."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("tuning"),
        metavar="DIR",
        help="folder of the evidence (default: tuning)",
    )
    parser.add_argument("--kernel", default="*", metavar="GLOB", help="only kernels like this")
    parser.add_argument(
        "--rounds", type=int, default=Method.rounds, metavar="N", help="of each config (default: %(default)s)"
    )
    parser.add_argument(
        "--cache",
        choices=(WARM, FLUSHED),
        default=WARM,
        help="what the L2 cache holds when a kernel begins (default: warm)",
    )
    parser.add_argument("--device", default="", choices=("", *KINDS), help="the kind of device (default: what is here)")


def run_arguments(arguments: argparse.Namespace, folder: Path) -> list[Path]:
    """Tunes with the package in `folder`; the evidence files. `DeviceFault` where that cannot be."""
    sys.path.insert(0, str(folder.parent))
    package = importlib.import_module(folder.name)
    table = json.loads((folder / TABLE).read_text(encoding="utf-8"))
    method = Method(max(arguments.rounds, 1), arguments.cache)
    tell = partial(print, file=sys.stderr, flush=True)
    return tune_release(package, table, arguments.output, method, arguments.kernel, tell, arguments.device)


def main() -> int:
    """Runs from within a candidates' package."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition(". ")[0])
    add_arguments(parser)
    try:
        files = run_arguments(parser.parse_args(), Path(__file__).resolve().parent)
    except DeviceFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    print("\n".join(map(str, files)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
