"""README's figures of the CPU engine are those of bench/results/cpu.json."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
V4, V3, BYTES, AMX = "x86-64-v4", "x86-64-v3", "x86-64-v4-vnni", "x86-64-v4-amx"
MATMUL, SOFTMAX = ("512", "1024", "500×333×100"), ("781", "1024", "4000")
ROWS = [
    (V4, "fp32 matmul 512; 1024; 500×333×100 on one CPU thread with AVX-512, against OpenBLAS", "matmul fp32 ", MATMUL),
    (V3, "… with AVX2, against an OpenBLAS of that level", "matmul fp32 ", MATMUL),
    (BYTES, "int8 matmul 512; 1024 with VNNI, against fp32 with AVX-512", "matmul int8 ", MATMUL[:2]),
    (AMX, "int8 matmul 512; 1024 with AMX, against fp32 with AVX-512", "matmul int8 ", MATMUL[:2]),
    (AMX, "bf16 matmul 1024 with AMX, against PyTorch", "matmul bf16 ", MATMUL[1:2]),
    (V4, "softmax of 781; 1024; 4000 columns with AVX-512, against gcc -O3 -ffast-math", "softmax 256×", SOFTMAX),
    (V3, "… with AVX2, against gcc for that", "softmax 256×", SOFTMAX),
]


@pytest.mark.parametrize(("level", "what", "name", "sizes"), ROWS)
def test_figures_of_the_cpu_engine(level, what, name, sizes):
    report = json.loads((ROOT / "bench/results/cpu.json").read_text())
    found = {(each["level"], each["what"]): each for each in report["figures"]}
    cases = [found[level, name + size] for size in sizes]
    ratios = "; ".join(f"{each['ratio']:.2f}" for each in cases)
    aims = "; ".join(dict.fromkeys(f"{each['bound']:g}" for each in cases))
    row = f"| {what} | {ratios} times its speed | {aims} |"
    assert row in (ROOT / "README.md").read_text().splitlines(), row
