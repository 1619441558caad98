"""From `pip install` to a release of one's own kernels: docs/package-author.md, by someone who has nothing yet.

An environment that is new, with pip alone; the project as a wheel that a copy of its sources makes; an empty home and
an empty folder. What the project needs is not fetched again: the packages of this environment are linked into the new
one, so that pip finds every requirement of the wheel met, or says which is not.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from test_documents import FROM_INSTALLING, ROOT, count_commands, run_page

PAGE = ROOT / "docs" / FROM_INSTALLING
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "toolchain")
OWN = ("precast", "__editable__", "pip", "setuptools", "_distutils_hack", "distutils-precedence", "__pycache__")


def run(*words: object, cwd: Path) -> None:
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def make_wheel(folder: Path) -> Path:
    """A folder with the wheel of a copy of the sources."""
    copy = folder / "sources"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, copy / name)
    words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder / "wheels")
    run(sys.executable, "-m", "pip", *words, ".", cwd=copy)
    return folder / "wheels"


def make_environment(folder: Path) -> Path:
    """The programs of a new environment, in which all is linked that this one has but the project itself."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for each in sorted(Path(sysconfig.get_path("purelib")).iterdir()):
        if not each.name.startswith(OWN) and not (packages / each.name).exists():
            (packages / each.name).symlink_to(each)
    return folder / "bin"


@pytest.mark.all
def test_the_page_from_installing_to_a_wheel(tmp_path: Path) -> None:
    wheels, programs = make_wheel(tmp_path), make_environment(tmp_path / "environment")
    assert not (programs / "precast").exists()
    assert run_page(PAGE, tmp_path, programs, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels)) == count_commands(PAGE)
    assert (programs / "precast").is_file() and not (tmp_path / "home/.triton").exists()
