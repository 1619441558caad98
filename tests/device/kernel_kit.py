"""What the device kit needs to check every kernel: the release, its calls, the references, the C program.

In: a plan, the release built from it, and a folder. Out: files in that folder that `check_kernels.py` reads.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from precast.plan import Plan

NUMERICS = Path(__file__).parents[1] / "numerics"


def write_kernel_kit(plan: Plan, release: Path, kit: Path, pattern: str = "cuda:*") -> None:
    """Fill `kit` with `release/`, `calls.json`, `kernel_cases/`, `runner` and `check_kernels.py`."""
    sys.path.insert(0, str(NUMERICS))
    from release_calls import build_runner, list_calls

    kit.mkdir(parents=True, exist_ok=True)
    shutil.copytree(release.resolve(), kit / "release", dirs_exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(NUMERICS / "kernel_cases", kit / "kernel_cases", ignore=ignored, dirs_exist_ok=True)
    shutil.copy(Path(__file__).with_name("check_kernels.py"), kit)
    (kit / "calls.json").write_text(json.dumps([call.to_data() for call in list_calls(plan, pattern)]))
    build_runner(plan, kit / "release", kit, run_path="$ORIGIN/release/lib")
