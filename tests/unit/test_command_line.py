"""What commands say of a wrong word or a file that the machine does not hand over: one sentence, never a traceback."""

import os
import shutil

import pytest
from small_projects import KERNEL, SPEC, make_project

from precast.cli import main

LONG = "x" * 300
NO_PLUGINS = "no plugins: there are none in plugins/ and in installed packages\n"


@pytest.fixture
def say(tmp_path, monkeypatch, capsys):
    """Runs a command in a project's folder: its exit code and standard error."""
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("TRITON_DEFAULT_FP_FUSION", "TRITON_DISABLE_LINE_INFO"):  # which `opt` sets for its process
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def run(*words):
        code = main(words)
        return code, capsys.readouterr().err

    return run


SAID = {
    "build -j 0": "error: 0 units at once build nothing\nhint: `-j` takes 1 or more\n",
    "build -j x": "error: argument -j/--jobs: invalid int value: 'x'\nhint: see `precast build --help`\n",
    "bild": "error: unknown command `bild`\nhint: did you mean `build`?\n",
    "plan --target cdua:*": "error: no target matches `cdua:*`\nhint: did you mean `cuda:90`?\n",
    "plan --project kernels": (
        "error: there is no `kernels/pyproject.toml`\n"
        "hint: run this in a project's folder, or give it with --project; `precast init kernels` makes one\n"
    ),
    "why scale": (
        "error: `scale` is not a unit: no `@target` at its end\n"
        "hint: units look like `softmax:BLOCK=1024,stride%16@cuda:90`\n"
    ),
    "inspect": "error: nothing is built here\nhint: run `precast build` first\n",
    "opt nowhere.ttir": "error: there is no file `nowhere.ttir`, and no unit is built in `.`\n",
    "repro nowhere": "error: nowhere is no reproducer: it has no job.json\n",
    "repro pyproject.toml": "error: cannot use pyproject.toml/job.json: not a directory\n",
    "verify pyproject.toml": (
        "error: pyproject.toml is no release: it has no manifest.json\nhint: build it again, or fetch it again\n"
    ),
    "package kernels": (
        "error: kernels is no release: it has no manifest.json\nhint: build it again, or fetch it again\n"
    ),
    f"init {LONG}": f"error: cannot use {LONG}/pyproject.toml: file name too long\n",
    "clean --keep -1": "error: cannot keep -1 releases\nhint: keep 0 or more\n",
}


@pytest.mark.parametrize("words, told", SAID.items(), ids=[words[:30] for words in SAID])
def test_a_wrong_word_is_told(say, words, told):
    assert say(*words.split()) == (1, told)


def test_passes_without_any_say_so(say):
    assert say("passes") == (0, NO_PLUGINS)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"unit": 3}', "\0"])
@pytest.mark.parametrize("words", [["inspect"], ["opt", "scale"], ["passes", "--findings"]])
def test_damaged_facts_are_told(say, text, words):
    os.makedirs("build/units/cuda-90/scale-1")
    with open("build/units/cuda-90/scale-1/facts.json", "w") as file:
        file.write(text)
    told = "error: build/units/cuda-90/scale-1/facts.json is damaged\nhint: `precast build` makes it anew\n"
    assert say(*words) == (1, told)


def test_a_spec_that_leads_nowhere_is_told(say):
    os.symlink("nowhere.toml", "kernels/lost.toml")
    assert say("plan") == (1, "error: cannot read `kernels/lost.toml`: no such file or directory\n")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            KERNEL.encode() + "# é".encode("latin-1"),
            "kernels/scale.py:8:3: error: not UTF-8 text: byte 0xe9\n    # \N{REPLACEMENT CHARACTER}\n      ^\n"
            "hint: save it as UTF-8, or name its encoding in the first line: `# coding: latin-1`\n",
        ),
        (
            b"# coding: morse\n" + KERNEL.encode(),
            "kernels/scale.py:1:1: error: not valid Python: unknown encoding: morse\n    # coding: morse\n    ^\n",
        ),
        (b"\xef\xbb\xbf" + KERNEL.encode(), ""),
        ("# coding: latin-1\n# é\n".encode("latin-1") + KERNEL.encode(), ""),
    ],
    ids=["not UTF-8", "unknown encoding", "byte order mark", "declared encoding"],
)
def test_a_source_s_encoding(say, data, told):
    with open("kernels/scale.py", "wb") as file:
        file.write(data)
    assert say("plan") == (int(bool(told)), told)


def can_be_closed(path):
    os.chmod(path, 0)
    return not os.access(path, os.R_OK)


UNREADABLE = {
    "pyproject.toml": "error: cannot read `pyproject.toml`: permission denied\n",
    "kernels/scale.toml": "error: cannot read `kernels/scale.toml`: permission denied\n",
    "kernels/scale.py": (
        "kernels/scale.toml:2:10: error: cannot read `kernels/scale.py`: permission denied\n"
        '    source = "scale.py:scale_kernel"\n             ^~~~~~~~~~~~~~~~~~~~~~~\n'
    ),
    "kernels/helper.py": (
        "error: cannot read `kernels/helper.py`: permission denied\nhint: `kernels/scale.py:scale_kernel` imports it\n"
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_may_not_be_read_is_told(say, tmp_path, name):
    texts = {"kernels/helper.py": "X = 1\n", "kernels/scale.py": f"import helper\n{KERNEL}", "kernels/scale.toml": SPEC}
    make_project(tmp_path, texts)
    if not can_be_closed(name):
        pytest.skip("this user may read every file")
    assert say("plan") == (1, UNREADABLE[name])


def test_a_folder_that_may_not_be_written_is_told(say, tmp_path):
    shutil.copytree("kernels", "shop/kernels")
    settings = (tmp_path / "pyproject.toml").read_text() + '\n[[tool.precast.pass]]\nuse = "look"\n'
    make_project(tmp_path / "shop", {"plugins/look.py": "", "pyproject.toml": settings})
    os.chmod("shop", 0o500)
    if os.access("shop", os.W_OK):
        pytest.skip("this user may write everywhere")
    told = "error: cannot write shop/build/plugins: permission denied\nhint: build in a copy that is writable\n"
    assert say("plan", "--project", "shop") == (1, told)
