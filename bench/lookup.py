"""What the selection table costs a call: `python bench/lookup.py RELEASE [--out FILE]`.

RELEASE is what `precast build` makes of bench/tune_kernels with evidence in its `tuning/`. Needs a C compiler and a
CUDA device, or a driver that stands in for one (tests/tune/timed_cuda.c): the lookup is the processor's work alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from launch import Figure, compare, read_processor

HERE = Path(__file__).parent
BOUND_NS = 30


def measure(release: Path) -> Figure:
    """Nanoseconds that a choice takes longer where the table makes it."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "lookup"
        runtime = [each for each in sorted((release / "src/runtime").glob("*.c")) if each.name != "select.c"]
        flags = ["-O2", "-std=c11", "-D_GNU_SOURCE", f"-I{release}/src", f"-I{release}/include"]
        subprocess.run(["cc", *flags, "-o", program, HERE / "lookup.c", *runtime, "-lpthread", "-ldl"], check=True)
        output = subprocess.run([program, release], check=True, capture_output=True, text=True).stdout
    rounds = [tuple(map(float, line.split())) for line in output.splitlines()]
    ours, theirs = [each[0] for each in rounds], [each[1] for each in rounds]
    return compare("selection lookup", "a choice by axes", BOUND_NS, ours, theirs, "ns", "ns")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("release", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    figure = measure(arguments.release.resolve())
    print(f"{figure.what}: {figure.mean:.1f} ns [{figure.low:.1f}, {figure.high:.1f}] of at most {figure.bound}; "
          f"{figure.ours:.1f} and {figure.theirs:.1f}")  # fmt: skip
    if arguments.out:
        result = {"machine": {"processor": read_processor()}, "figures": [{**asdict(figure), "holds": figure.holds}]}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
