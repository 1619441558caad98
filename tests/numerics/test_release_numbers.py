"""Every CPU kernel of a release, from its Python package and from C, against NumPy in float64, in three shapes.

In the first tier one variant of each kernel, in the second all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from kernel_cases import CASES
from kernel_cases.call import Call
from release_calls import build_runner, list_calls
from release_runs import Run, import_package, run_from_c, run_from_python

from precast.plan import plan_project
from precast.project import read_project
from precast.release.manifest import read_manifest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "build"))

from thinning import with_first_values  # noqa: E402


@dataclass(frozen=True)
class Built:
    """A release of the repository's kernels for this CPU."""

    calls: tuple[Call, ...]
    package: ModuleType
    runner: Path
    release: Path
    whole: bool


@pytest.fixture(scope="module", params=["first values", pytest.param("all values", marks=pytest.mark.all)])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sconstruct: str) -> Built:
    """A release with one variant of each kernel, or with all."""
    folder, whole = tmp_path_factory.mktemp("release"), request.param == "all values"
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for spec in () if whole else (folder / "kernels").glob("*.toml"):
        spec.write_text(with_first_values(spec.read_text()))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "SConstruct").write_text(sconstruct)
    command = [sys.executable, "-m", "precast", "build", "--target", "cpu:*", "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    plan, release = plan_project(read_project(folder), targets=("cpu:*",)), folder / "generated" / "kernels" / "current"
    runner = build_runner(plan, release, folder / "runner")
    return Built(tuple(list_calls(plan, "cpu:*")), import_package(release), runner, release, whole)


def assert_right(runs: Sequence[Run]) -> None:
    wrong = [f"{run}: {run.largest:.1e}, {run.share:.1f} times what is allowed" for run in runs if not run.share <= 1]
    assert runs and not wrong


def test_every_variant_from_python(built: Built) -> None:
    assert_right(list(run_from_python(built.package, built.calls)))


def test_every_variant_from_c(built: Built, tmp_path: Path) -> None:
    assert_right(list(run_from_c(built.runner, built.calls, tmp_path)))


def test_every_kernel_has_a_case_and_runs_where_it_can(built: Built) -> None:
    specified = {planned.unit.kernel for planned in plan_project(read_project(ROOT)).units}
    assert specified == set(CASES)
    needed = {"bias_gelu", "swiglu", "softmax", "layer_norm", "rms_norm", "matmul"}
    assert needed <= {call.kernel for call in built.calls}


def test_what_each_kernel_writes_is_known(built: Built) -> None:
    """Only outputs, and each of them, whatever way the kernel comes to their addresses."""
    written: dict[str, set[str]] = {}
    for unit in read_manifest(built.release).units:
        names = written.setdefault(unit.unit.partition(":")[0].partition("@")[0], set())
        names |= {each.name for each in unit.facts.parameters if each.written}
    two = {"out", "scale"}
    others = {"cross_entropy": {"loss", "lse"}, "echo_scalars": {"integers", "floats", "pair.1"},
              "histogram": {"counts"}, "quantize_fp8": two, "quantize_int8": two,
              "rms_norm": {"out", "residual"} if built.whole else {"out"}}  # fmt: skip
    assert written == {kernel: others.get(kernel, {"out"}) for kernel in written}
