"""Any locale and any umask: the same bytes and modes."""

import io
import os
import stat
import subprocess
import sys

import pytest
from release_fixture import make_release
from tree import Tree

from precast.cli.streams import Output

# A locale of every system whose encoding is ASCII, and Python's own ways around it off.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
RENDER = """
import hashlib, locale
from precast.launch.formats import describe_interface
from precast.launch.sources import render_library
files = render_library(describe_interface("demo", []))
print(locale.getpreferredencoding(False) != "UTF-8", hashlib.sha256(repr(files).encode()).hexdigest())
"""


def modes_of(folder):
    return {(path.suffix == ".so" or path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in folder.rglob("*")}


@pytest.fixture
def narrow_umask():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_modes_do_not_follow_the_umask(tmp_path, narrow_umask):
    release = make_release(tmp_path)
    assert stat.S_IMODE(release.stat().st_mode) == 0o755
    assert modes_of(release) == {(True, 0o755), (False, 0o644)}


def test_generated_text_does_not_follow_the_locale():
    told = [subprocess.run([sys.executable, "-c", RENDER], env={**os.environ, **more}, capture_output=True, text=True,
                           check=True).stdout.split() for more in (ASCII, {"PYTHONUTF8": "1"})]  # fmt: skip
    assert told[0][0] == "True" and told[0][1] == told[1][1]


def test_what_an_encoding_lacks_is_written_all_the_same():
    file = io.BytesIO()
    output = Output(io.TextIOWrapper(file, "ascii"))
    output.write("höhe…")
    output.flush()
    assert file.getvalue() == b"h\\xf6he\\u2026"


@pytest.mark.all
def test_a_build_does_not_follow_locale_and_umask(tmp_path):
    releases = []
    for name, umask, more in (("plain", 0o022, {}), ("other", 0o077, ASCII)):
        tree = Tree(tmp_path / name, ("cpu:x86-64-v3", "cuda:90"), compiler="cc")
        tree.add_kernel("shift")
        before = os.umask(umask)
        try:
            releases.append(tree.build(**more).release)
        finally:
            os.umask(before)
    assert releases[0].name == releases[1].name
    assert modes_of(releases[1]) == {(True, 0o755), (False, 0o644)}
