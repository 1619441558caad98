"""Every kernel of a release on a real GPU, through its C and Python launchers, against float64 references.

Part of the device kit: needs the kit's folder, NumPy, and torch for memory. Usage: check_kernels.py KIT [OUT.json].
The kit holds `release/`, `runner`, `calls.json` and `kernel_cases/`, see `kernel_kit.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    """One problem through one launcher; `share` is the largest part of the allowed error, right when at most 1."""

    kernel: str
    variant: str
    shape: tuple[int, ...]
    launcher: str
    largest_error: float
    share: float
    failure: str = ""

    @property
    def right(self) -> bool:
        return not self.failure and self.share <= 1


def check_kernels(kit: Path) -> list[Result]:
    """Results of every call of the kit, for each shape, from Python and from C."""
    sys.path[:0] = [str(kit), str(kit / "release" / "python")]
    from kernel_cases import CASES
    from kernel_cases.call import Call

    calls = [Call.from_data(data) for data in json.loads((kit / "calls.json").read_text())]
    results = [result for call in calls for result in check_call(kit, call, CASES[call.kernel])]
    return [*results, check_dependent_chain()]


def check_call(kit: Path, call: Any, case: Any) -> Iterator[Result]:
    """The problems of one call through both launchers."""
    for launcher, launch in (("python", launch_from_python), ("c", launch_from_c)):
        problems = [case.problem(call.values, shape) for shape in case.shapes]
        failure = launch(kit, call, problems)
        for shape, problem in zip(case.shapes, problems, strict=True):
            errors = [] if failure else problem.errors()
            largest = max((error.largest for error in errors), default=0.0)
            share = max((error.share for error in errors), default=0.0)
            yield Result(call.kernel, str(call), shape, launcher, largest, share, failure)


def launch_from_python(kit: Path, call: Any, problems: list[Any]) -> str:
    """Launch through the release's Python package with torch tensors; the failure's text, or nothing."""
    try:
        for problem in problems:
            launch_with_torch(call, problem)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def launch_with_torch(call: Any, problem: Any) -> None:
    """One launch, and the outputs back in the problem's arrays."""
    import kernels
    import torch
    from kernel_cases.call import positional

    tensors = []

    def upload(array: Any) -> Any:
        tensor = on_device(array)
        tensors.append((array, tensor))
        return tensor.as_strided(array.shape, array.strides)

    getattr(kernels, call.kernel)(*positional(call, problem, upload), **call.values)
    torch.cuda.synchronize()
    for array, tensor in tensors:
        array.data[...] = download(tensor, array)


def check_dependent_chain(links: int = 40, size: int = 1 << 20) -> Result:
    """Launches that may overlap, each on what the one before wrote: halving a vector many times must be exact."""
    import kernels
    import torch

    x = torch.arange(size, dtype=torch.float32, device="cuda")
    buffers = [x.clone(), torch.empty_like(x)]
    for link in range(links):
        kernels.dependent_scale(buffers[1 - link % 2], buffers[link % 2], 0.5, size, BLOCK=1024)
    largest = (buffers[links % 2] - x * 0.5**links).abs().max().item()
    return Result("dependent_scale", f"a chain of {links}", (size,), "python", largest, 0.0 if largest == 0 else 2.0)


def on_device(array: Any) -> Any:
    """The buffer of an array as a tensor of its element type on the GPU."""
    import numpy
    import torch

    names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8_e4m3fn",
             "fp8e5": "float8_e5m2", "i1": "bool", "u8": "uint8"}  # fmt: skip
    name = names.get(array.element) or f"int{array.element[1:]}"
    data = torch.from_numpy(array.data.view(numpy.uint8)).cuda()
    return data.view(getattr(torch, name))


def download(tensor: Any, array: Any) -> Any:
    """The bytes of a tensor on the GPU as the array's storage."""
    import torch

    return tensor.view(torch.uint8).cpu().numpy().view(array.data.dtype)


def launch_from_c(kit: Path, call: Any, problems: list[Any]) -> str:
    """Launch through the kit's C program; the failure's text, or nothing."""
    from kernel_cases.call import read_outputs, write_call

    with tempfile.TemporaryDirectory() as parent:
        folders = [Path(parent) / str(number) for number in range(len(problems))]
        for folder, problem in zip(folders, problems, strict=True):
            write_call(folder, call, problem)
        done = subprocess.run([kit / "runner", "cuda", *folders], capture_output=True, text=True, timeout=120)
        if done.returncode:
            return done.stderr.strip() or f"exit status {done.returncode}"
        for folder, problem in zip(folders, problems, strict=True):
            read_outputs(folder, problem)
    return ""


def main() -> int:
    results = check_kernels(Path(sys.argv[1]).resolve())
    wrong = [result for result in results if not result.right]
    for result in wrong:
        print(f"WRONG {result.launcher} {result.variant} {result.shape}: {result.failure or result.share}")
    kernels = sorted({result.kernel for result in results})
    print(f"{len(results)} launches of {len(kernels)} kernels, {len(wrong)} wrong")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
