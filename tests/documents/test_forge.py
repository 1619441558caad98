"""The recipes of docs/ci.md run as a forge runs them: a clean checkout, an empty home, nothing of this environment."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from precast.cli.init import make_project

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
RECIPES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
INSTALL = "pip install 'precast[all]'"  # what this test runs under
STORE, FAILURES = Path("build/store"), Path("build/repro")


def find_commands(recipe: str) -> list[str]:
    return re.findall(r"^ *(?:- run|script): (.*)$", recipe, re.MULTILINE)


def check_out(repository: Path, runner: Path, **environment: str):
    """A clean checkout on a runner; what runs a command in it."""
    tree, home = runner / "tree", runner / "home"
    home.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", repository, tree], check=True)
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    clean = {"PATH": path, "HOME": str(home), "CI": "true", **environment}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", command], cwd=tree, env=clean, capture_output=True, text=True)

    return tree, run


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    make_project(folder)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    return folder


def break_kernel(tree: Path) -> None:
    kernel = tree / "kernels/scale_add.py"
    kernel.write_text(kernel.read_text().replace("alpha * a + b", "alpha * a + tl.arange(0, 4)"))


def test_the_page_has_recipes() -> None:
    assert len(RECIPES) == 2 and INSTALL in find_commands(RECIPES[0])
    assert all("build/store" in recipe and "build/repro" in recipe for recipe in RECIPES)


@pytest.mark.all
@pytest.mark.parametrize("recipe", RECIPES, ids=["annotated", "junit"])
def test_a_recipe_runs_in_a_clean_checkout(repository: Path, tmp_path: Path, recipe: str) -> None:
    commands = [command for command in find_commands(recipe) if command != INSTALL]
    forge = {"GITHUB_ACTIONS": "true"} if "actions/" in recipe else {}
    tree, run = check_out(repository, tmp_path / "first", **forge)
    said = [run(command) for command in commands]
    assert all(done.returncode == 0 for done in said), said
    assert "0 reused, 0 failed" in said[0].stdout
    again, run = check_out(repository, tmp_path / "second", **forge)
    shutil.copytree(tree / STORE, again / STORE)  # what the forge's cache restores
    done = run(commands[0])
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("0 built"), done
    assert (again / "build.xml").is_file()
    break_kernel(again)
    done = run(commands[0])
    assert done.returncode == 1 and (again / "build.xml").is_file()
    assert ("::error file=kernels/scale_add.py,line=" in done.stderr) == bool(forge), done
    assert os.listdir(again / FAILURES) if (again / FAILURES).is_dir() else "stage: ttir" in done.stderr
