"""Every page's commands run: README.md and docs/, each page from its top to its bottom in a fresh folder.

A fence with a path behind its language (```toml kernels/add.toml) is a file to write. A ```console fence is commands
behind `$ `, run in order; the other lines of it must stand in the output of the command above them (`…` matches
anything within a line, a line that is only `…` any number of lines). Other fences are for reading.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FROM_INSTALLING = "package-author.md"  # test_first_success.py runs it
FENCE = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")  # `kernel[grid](…)` is no link


def find_fences(page: Path) -> list[tuple[str, str, str]]:
    return [(language, path or "", body) for language, path, body in FENCE.findall(page.read_text())]


def find_commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Commands of a console fence, each with the output lines that it must print."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        text = part.rstrip("\n")
        command, _, output = text.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command, [line for line in output.splitlines() if line.strip() and line.strip() != "…"]


def line_pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in line.strip().split("…")))


def run_page(page: Path, folder: Path, programs: Path = Path(sys.executable).parent, **variables: str) -> int:
    """Runs the page's commands with an empty home in an empty folder; how many there were."""
    home = folder / "home"
    home.mkdir()
    work = folder / "work"
    work.mkdir()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8", **variables}
    count = 0
    for language, path, body in find_fences(page):
        if path:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(body)
        if language != "console":
            continue
        for command, expected in find_commands(body):
            # One shell keeps the folder that `cd` chose for the next command.
            script = f"cd {work} && {command}\ncode=$?; pwd > {folder}/where; exit $code"
            result = subprocess.run(
                ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=600
            )
            said = result.stdout + result.stderr
            assert result.returncode == 0, f"{page.name}: $ {command}\n{said}"
            work = Path((folder / "where").read_text().strip())
            for line in expected:
                assert line_pattern(line).search(said), f"{page.name}: $ {command}\nmissing: {line}\n{said}"
            count += 1
    return count


FIRST_TIER = ("README.md", "architecture.md")


def page_parameter(page: Path) -> object:
    return pytest.param(page, id=page.name, marks=() if page.name in FIRST_TIER else pytest.mark.all)


def count_commands(page: Path) -> int:
    return sum(len(list(find_commands(body))) for language, _, body in find_fences(page) if language == "console")


@pytest.mark.parametrize("page", [page_parameter(page) for page in PAGES if page.name != FROM_INSTALLING])
def test_commands_of_the_page_run(page: Path, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) == count_commands(page)


def test_a_missing_line_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one two\none … three\n```\n")
    with pytest.raises(AssertionError, match="missing: one … three"):
        run_page(page, tmp_path)


def test_links_between_pages_exist() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", CODE.sub("", FENCE.sub("", page.read_text())))
        if not (page.parent / target).exists()
    ]
    assert not missing
