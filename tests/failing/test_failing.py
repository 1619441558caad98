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


ROWS = """
[kernel.scale]
source = "scale.py:scale_kernel"
grid = ["1"]
configs = [{ BLOCK = 64 }, { BLOCK = 128 }]
selection = [
%s]

[kernel.scale.args]
n = "i32"
"""


def test_more_rows_of_selection_than_a_release_can_have(tmp_path: Path) -> None:
    """Which its runtime would refuse when it is opened. Rows that a spec states are those of each target."""
    rows = "".join(f'    {{ when = ["n == {n}"], BLOCK = 64 }},\n' for n in range(2049))
    source = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef scale_kernel(n, BLOCK: tl.constexpr):\n"
    settings = '[tool.precast]\nname = "demo"\ntargets = ["cuda:80", "cuda:90"]\n'
    case = {
        "command": ["build"],
        "files": {
            "kernels/scale.py": f"{source}    pass\n",
            "kernels/scale.toml": ROWS % rows,
            "pyproject.toml": settings,
        },
    }
    result = run_case(tmp_path, case)
    assert (result.stderr, result.returncode) == (
        "kernels/scale.toml:6:1: error: kernel `scale` would have 4,098 rows of selection, more than 4,096: "
        "2,049 on cuda:80, 2,049 on cuda:90\n"
        "    selection = [\n    ^~~~~~~~~\n"
        "hint: state fewer rows, or measure fewer problems; rows of fewer conditions hold for more sizes\n",
        1,
    )
