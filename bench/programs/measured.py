"""How the programs of this folder run: `run_program(make_step)` makes a step and runs it, and prints one JSON line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

Step = Callable[[], torch.Tensor]


def run_program(make_step: Callable[[torch.device], Step]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", help="serve from this release's folder instead of compiling")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    serving = open_release(arguments.release) if arguments.release else contextlib.nullcontext()
    with serving:
        print(json.dumps(run_steps(make_step, torch.device(arguments.device), arguments.steps)))


def open_release(folder: str) -> Any:
    """The server of a release: what Triton is asked to launch within it comes from there."""
    sys.path.insert(0, f"{folder}/python")
    return importlib.import_module("programs").serve()


def run_steps(make_step: Callable[[torch.device], Step], device: torch.device, count: int) -> dict[str, Any]:
    """Seconds of each step, what each computed to the last bit, and how often Triton was asked to compile."""
    torch.manual_seed(0)
    compiled = count_compilations()
    step, seconds, results = make_step(device), [], []
    for _ in range(count):
        wait(device)
        begun = time.perf_counter()
        value = step()
        wait(device)
        seconds.append(time.perf_counter() - begun)
        results.append([each.hex() for each in value.double().flatten().tolist()])
    return {"seconds": seconds, "results": results, "compiled": compiled()}


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def count_compilations() -> Callable[[], int]:
    """Counts what Triton is asked to compile, be it in its cache or not."""
    import triton.compiler
    import triton.runtime.jit

    counted = [0]
    make = triton.compiler.compile

    def counting(*arguments: object, **named: object) -> object:
        counted[0] += 1
        return make(*arguments, **named)

    for module in (triton.compiler, triton.runtime.jit):
        if hasattr(module, "compile"):
            module.compile = counting
    return lambda: counted[0]
