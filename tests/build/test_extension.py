"""The Python extension that releases carry: the same bytes from any clone, and nothing of the machine in them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path, umask: int) -> Path:
    """The extension as `setup.py` builds it in a copy of the sources at `folder`."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "toolchain/precast/launch"):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        leave_out = shutil.ignore_patterns("__pycache__", "*.so")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=leave_out)
        else:
            shutil.copy(ROOT / name, place)
    script = (folder / "setup.py").read_text()
    assert '"-O2"' in script
    (folder / "setup.py").write_text(script.replace('"-O2"', '"-O0"'))  # the compiler takes half as long
    for file in ("__init__.py", "launch/__init__.py"):
        (folder / "toolchain/precast" / file).touch()
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "out", "--build-temp", "objects"]
    settings = {**os.environ, "CFLAGS": "-g", "LDFLAGS": f"-Wl,-rpath,{folder}/lib -L{folder}/lib"}
    subprocess.run(command, cwd=folder, env=settings, umask=umask, check=True, capture_output=True, text=True)
    [made] = folder.glob("out/precast/launch/_launch*.so")
    return made


def test_it_is_the_same_from_any_clone_and_knows_no_path(tmp_path):
    one, other = build(tmp_path / "a", 0o022), build(tmp_path / "elsewhere" / "b", 0o077)
    data = one.read_bytes()
    assert data == other.read_bytes()
    assert one.stat().st_mode == other.stat().st_mode
    shown = subprocess.run(["readelf", "-dSW", one], capture_output=True, text=True, check=True).stdout
    assert not [word for word in ("RUNPATH", "RPATH", ".debug", ".note.gnu.build-id", ".symtab") if word in shown]
    for text in (str(tmp_path), sys.prefix, sys.base_prefix, "/include/"):
        assert text.encode() not in data
