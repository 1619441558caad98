"""Fuzz the CPU engine: `python -m cpu_fuzz FIRST COUNT [LEVEL]`, in tests/numerics.

One line of text for each program that fails, then the least of it that still does. A crash ends the process: the line
before says which program it was. `--one` reduces one seed, in child processes that may crash.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback

from cpu_harness import LEVELS

from cpu_fuzz.execute import find_fault
from cpu_fuzz.generate import generate
from cpu_fuzz.program import Program
from cpu_fuzz.reduce import reduce_program

SECONDS = 60  # that a program may take: one without its loop's way out takes for ever


def level_of(seed: int) -> str:
    return LEVELS[seed * 7919 % 1009 % len(LEVELS)]


def told(program: Program, level: str) -> str:
    """What is wrong with a program, an exception of the engine's included; empty when nothing is."""
    try:
        return find_fault(program, level) or ""
    except AssertionError as error:
        return f"not a program: {error}" if "the program" in str(error) or "two elements" in str(error) else repr(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0] + "\n" + traceback.format_exc(limit=-3)


def told_by_child(program: Program, level: str) -> str:
    """`told`, in a child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        os.write(writing, told(program, level).encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return said if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"


def kind(fault: str) -> str:
    return fault[:12].split(":")[0] if fault else ""


def report(seed: int, level: str) -> str:
    """A failing seed's fault and the least program with a fault of its kind."""
    program = generate(seed)
    fault = told_by_child(program, level)
    if not fault:
        return ""
    least = reduce_program(program, lambda each: kind(told_by_child(each, level)) == kind(fault))
    return f"seed {seed} at {level}: {told_by_child(least, level)}\n{least.text()}"


def main() -> int:
    failed = 0
    if sys.argv[1] == "--one":
        level = sys.argv[3] if len(sys.argv) > 3 else level_of(int(sys.argv[2]))
        print(report(int(sys.argv[2]), level))
        return 0
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        level = sys.argv[3] if len(sys.argv) > 3 else level_of(seed)
        print(f"at {seed} {level}", flush=True)
        if told(generate(seed), level):
            failed += 1
            print(report(seed, level), flush=True)
    print(f"{count} programs, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
