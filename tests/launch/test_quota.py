"""How many processors a process's control groups give it: hierarchies of both versions, as containers have them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from launch_release import run

from precast.launch.sources import RUNTIME


@pytest.fixture(scope="module")
def quota(tmp_path_factory: pytest.TempPathFactory):
    """`precast_quota` of a list of groups and a folder."""
    library = tmp_path_factory.mktemp("quota") / "quota.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    run(["cc", *flags, str(RUNTIME / "quota.c"), "-o", str(library)])
    function = ctypes.CDLL(str(library)).precast_quota
    return lambda groups, root: function(str(groups).encode(), str(root).encode())


CASES = {
    "of the group itself": ("0::/app\n", {"app/cpu.max": "150000 100000\n"}, 2),
    "of one above it": ("0::/a/b/c\n", {"a/cpu.max": "400000 100000", "a/b/c/cpu.max": "max 100000"}, 4),
    "the smallest": (
        "0::/a/b\n", {"cpu.max": "8000 1000", "a/cpu.max": "3000 1000", "a/b/cpu.max": "6000 1000"}, 3,
    ),
    "a part of one": ("0::/a\n", {"a/cpu.max": "1000 100000"}, 1),
    "none": ("0::/a\n", {"a/cpu.max": "max 100000"}, 0),
    "a container that sees itself as the root": ("0::/docker/1f\n", {"cpu.max": "200000 100000"}, 2),
    "version 1": (
        "5:memory:/m\n4:cpu,cpuacct:/app\n",
        {"cpu,cpuacct/app/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/app/cpu.cfs_period_us": "100000\n",
         "memory/m/cpu.max": "100000 100000"}, 3,
    ),
    "version 1 without a limit": (
        "4:cpu:/app\n", {"cpu/app/cpu.cfs_quota_us": "-1", "cpu/app/cpu.cfs_period_us": "100000"}, 0,
    ),
    "another controller": ("4:cpuset:/app\n", {"cpuset/app/cpu.max": "100000 100000"}, 0),
    "what is no number": ("0::/a\nnonsense\n", {"a/cpu.max": "many 100000"}, 0),
    "no period": ("0::/a\n", {"a/cpu.max": "100000 0"}, 0),
    "more than there can be": ("0::/a\n", {"a/cpu.max": f"{2**62} 1"}, 1 << 20),
    "a name that is too long": (f"0::/{'x' * 5000}\n", {"cpu.max": "100000 100000"}, 1),
}  # fmt: skip


@pytest.mark.parametrize("groups, files, expected", CASES.values(), ids=CASES)
def test_quota(quota, tmp_path: Path, groups: str, files: dict[str, str], expected: int):
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        place = tmp_path / "root" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    assert quota(tmp_path / "groups", tmp_path / "root") == expected


def test_no_groups_are_no_quota(quota, tmp_path: Path):
    assert quota(tmp_path / "absent", tmp_path) == 0
