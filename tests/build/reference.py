"""What `triton.compile` itself makes of units: `python reference.py JOBS IMAGES`, in a process of its own.

In: a file with a JSON list of jobs. Out: a JSON object, unit text to hex digest of the image. Shares no code with the
engine but the job's form: modules are imported as Python does it, signatures are written as Triton's JIT writes them.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

from precast.codec import from_data
from precast.job import Job

for missing in ("torch", "torch.nn", "torch.nn.functional", "transformers", "transformers.models"):
    sys.modules.setdefault(missing, MagicMock())
for part in ("llama", "llama.modeling_llama"):
    sys.modules.setdefault(f"transformers.models.{part}", MagicMock())
os.environ |= {
    "TRITON_CACHE_DIR": tempfile.mkdtemp(),
    "TRITON_ALWAYS_COMPILE": "1",
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_DISABLE_LINE_INFO": "1",
}


def load(job: Job) -> object:
    source = job.unit.source
    file = Path(job.project, source.file)
    sys.path[:0] = [*job.python_path, str(file.parent)]
    value = getattr(importlib.import_module(source.module or file.stem), source.function)
    while hasattr(value, "configs") or hasattr(value, "values"):
        value = value.fn
    return value


def compile_unit(job: Job) -> bytes:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    signature, constants, attributes = {}, {}, {}
    for index, argument in enumerate(job.unit.arguments):
        if argument.constant:
            signature[argument.name], constants[(index,)] = "constexpr", argument.value
            continue
        is_tuple = argument.type.startswith("(")
        signature[argument.name] = tuple(argument.type[1:-1].split(", ")) if is_tuple else argument.type
        promises = [["tt.divisibility", argument.divisibility]] if argument.divisibility else []
        promises += [["tt.pointer_range", 32]] if argument.range32 and job.unit.target.backend == "hip" else []
        attributes[(index,)] = promises
    arch = job.unit.target.arch
    wave = 32 if job.unit.target.backend == "cuda" or arch.startswith("gfx1") else 64
    target = GPUTarget(job.unit.target.backend, int(arch) if arch.isdigit() else arch, wave)
    kind = GluonASTSource if job.unit.source.gluon else ASTSource
    source = kind(load(job), signature, constants, attributes)
    compiled = triton.compile(source, target=target, options=dict(job.unit.options))
    return compiled.asm["hsaco" if job.unit.target.backend == "hip" else "cubin"]


def main() -> None:
    jobs = [from_data(each, Job) for each in json.loads(Path(sys.argv[1]).read_text())]
    found = {str(job.unit): hashlib.sha256(compile_unit(job)).hexdigest() for job in jobs}
    Path(sys.argv[2]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
