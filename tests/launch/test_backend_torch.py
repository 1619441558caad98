"""`kernel[grid]` on a CPU with PyTorch's tensors: what needs PyTorch itself, in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_backend_programs import environment

pytest.importorskip("torch", reason="PyTorch is not installed: `pip install precast[interop]`")
pytestmark = pytest.mark.all

HEAD = """
import torch, triton, triton.language as tl
"""

TUNED = """
@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=warps) for block in (64, 1024) for warps in (4, 8)], key=["n"]
)
@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)

for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32):
    x = torch.arange(3000).to(dtype)
    out = torch.empty_like(x)
    scale[lambda given: (triton.cdiv(3000, given["BLOCK"]),)](x, out, 3000, 2)
    assert torch.equal(out, x * 2), dtype
assert scale.best_config.kwargs["BLOCK"] in (64, 1024)
milliseconds = triton.testing.do_bench(lambda: scale[lambda given: (3,)](x, out, 3000, 2), warmup=1, rep=5)
assert milliseconds > 0
"""

REMEMBERED = """
import sys

asked = []
triton.knobs.autotuning.listener = lambda *, cache_hit, best_config, **_: asked.append((cache_hit, best_config))

@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512}, num_warps=2)], ["n"], cache_results=True)
@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, i < n)

out = torch.empty(1000, dtype=torch.int32)
fill[lambda given: (triton.cdiv(1000, given["BLOCK"]),)](out, 1000)
assert torch.equal(out, torch.arange(1000, dtype=torch.int32))
assert asked[0][0] is (len(sys.argv) > 1) and asked[0][1].num_warps in (2, 4), asked
"""

WARMED = """
@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), value)

kernel = fill.warmup(torch.float16, 1.0, BLOCK=64, grid=(1,))
assert "define" in kernel.asm["llir"]
out = torch.empty(64, dtype=torch.float16)
kernel[(1, 1, 1)](out, 0.1, 64)
assert torch.equal(out, torch.full((64,), 0.1, dtype=torch.float16))
assert len(fill.device_caches[torch.cpu.current_device()][0]) == 1
assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cpu")
try:
    fill[(1,)](torch.empty(64, device="meta"), 1.0, BLOCK=64)
except ValueError as error:
    assert "a kernel on the CPU cannot use a tensor on meta" in str(error)
else:
    raise SystemExit("a tensor without memory was taken")
"""

THREADS = """
import os, threading

@triton.jit
def count(total, SIZE: tl.constexpr):
    tl.atomic_add(total + tl.arange(0, SIZE), tl.full((SIZE,), 1, tl.int32))

def work(total):
    for _ in range(20):
        count[(50,)](total, SIZE=8)

totals = [torch.zeros(8, dtype=torch.int32) for _ in range(4)]
threads = [threading.Thread(target=work, args=(each,)) for each in totals]
for each in threads: each.start()
for each in threads: each.join()
assert all((each == 1000).all() for each in totals)
child = os.fork()
if not child:
    work(totals[0])
    os._exit(0 if (totals[0] == 2000).all() else 9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(program: Path, cache: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, str(program), *arguments]
    ran = subprocess.run(command, env=environment(cache), capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout, ran.stderr


def test_what_autotune_found_is_found_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + REMEMBERED)
    assert run(program, tmp_path / "cache") == (0, "", "")
    assert run(program, tmp_path / "cache", "again") == (0, "", "")


@pytest.mark.parametrize("text", [TUNED, WARMED, THREADS], ids=["tuned", "warmed", "threads"])
def test_a_program_runs(text: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + text)
    assert run(program, tmp_path / "cache") == (0, "", "")
