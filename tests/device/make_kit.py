"""Packs the device kit: everything that a machine with an NVIDIA GPU, torch and a C compiler needs to run `run.py`.

`python tests/device/make_kit.py [FOLDER]`, `build/device-kit` unless said. Takes the newest release of this
project's kernels (`precast build` makes it) and two releases that it builds here, of bench/launch_kernels and of
pass_project. The kit needs no network and no Precast; it is refused beyond 64 MiB.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from kernel_kit import write_kernel_kit

from precast.errors import PrecastError, ReleaseError
from precast.plan import plan_project
from precast.project import read_project

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LIMIT_BYTES = 64 << 20


def build_release(project: Path, folder: Path) -> Path:
    """The release of a copy of the project in `folder`."""
    shutil.copytree(project, folder, dirs_exist_ok=True)
    subprocess.run([sys.executable, "-m", "precast", "build", "--project", str(folder)], check=True)
    return (folder / "generated" / read_project(folder).name / "current").resolve()


def build_pass_release(folder: Path) -> Path:
    """A release whose kernel counts, by a pass, what it would write outside of its buffer."""
    (folder / "plugins").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "plugins/bounds_check.py", folder / "plugins")
    return build_release(HERE / "pass_project", folder)


def make_kit(kit: Path) -> int:
    """Fills `kit`; its size in bytes."""
    project = read_project(ROOT)
    release = ROOT / "generated" / project.name / "current"
    if not release.exists():
        raise ReleaseError(f"{release} is not there", hint="run `precast build` first")
    bench = build_release(ROOT / "bench/launch_kernels", kit.parent / "device-bench")
    counted = build_pass_release(kit.parent / "device-passes")
    shutil.rmtree(kit, ignore_errors=True)
    write_kernel_kit(plan_project(project), release, kit)
    shutil.copytree(bench, kit / "bench_release")
    shutil.copytree(counted, kit / "pass_release")
    for name in ("run.py", "check_runtime.py"):
        shutil.copy(HERE / name, kit)
    shutil.copytree(ROOT / "kernels", kit / "sources", ignore=shutil.ignore_patterns("*.toml", "__pycache__"))
    (kit / "bench").mkdir()
    for name in ("launch.py", "launch_raw.c"):
        shutil.copy(ROOT / "bench" / name, kit / "bench")
    shutil.copytree(ROOT / "bench/launch_kernels", kit / "bench/launch_kernels")
    size = sum(path.stat().st_size for path in kit.rglob("*") if path.is_file())
    if size > LIMIT_BYTES:
        raise ReleaseError(f"the device kit has {size >> 20} MiB, more than {LIMIT_BYTES >> 20}")
    return size


def main() -> int:
    kit = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/device-kit").resolve()
    try:
        size = make_kit(kit)
    except PrecastError as error:
        print(f"error: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1
    print(f"{kit}: {size / (1 << 20):.1f} MiB; run `python3 run.py` in it on the device's machine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
