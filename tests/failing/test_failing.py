"""Bad projects with the exact message: each folder here is one, and its `case.toml` says what must come out.

`case.toml` holds `command` (words after `precast`), `exit` and `stderr`; optional `environment`, and `files`, texts
written into the project before the run, for what git cannot hold. `--update` rewrites `stderr` after a look at it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "build"))

from forked import run_precast

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/case.toml"))


def run_case(folder: Path, case: dict) -> subprocess.CompletedProcess[str]:
    for name, text in case.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return run_precast(folder, *case["command"], NO_COLOR="1", COLUMNS="120", **case.get("environment", {}))


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path, update: bool) -> None:
    case_file = HERE / name / "case.toml"
    case = tomllib.loads(case_file.read_text())
    project = tmp_path / "project"
    shutil.copytree(HERE / name, project, ignore=shutil.ignore_patterns("case.toml", "__pycache__"))
    result = run_case(project, case)
    if update and result.stderr != case["stderr"]:
        text = case_file.read_text()
        case_file.write_text(text[: text.index("stderr = ")] + f"stderr = '''\n{result.stderr}'''\n")
        pytest.fail("expected text rewritten: read it, then run again")
    assert "Traceback" not in result.stderr
    assert (result.stderr, result.returncode) == (case["stderr"], case["exit"])
    assert not (project / "generated").exists()
