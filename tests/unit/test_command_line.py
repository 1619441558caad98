"""What commands say of a wrong word or a file that the machine does not hand over: one sentence, never a traceback."""

import errno
import json
import os
import shutil
import subprocess
import sys

import pytest
from small_projects import KERNEL, SPEC, make_project

import precast
from precast.cli import COMMANDS, describe_fault, main, opt
from precast.errors import SpecError

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
    "-C": "error: argument -C: expected one argument\nhint: see `precast --help`\n",
    "-C nowhere plan": "error: there is no folder `nowhere`\nhint: `-C` takes the folder to run in\n",
    "-Ckernels -C.. bild": "error: unknown command `bild`\nhint: did you mean `build`?\n",
    "plan -C kernels -C nowhere": "error: there is no folder `nowhere`\nhint: `-C` takes the folder to run in\n",
    "build -q -v": (
        "error: argument -v/--verbose: not allowed with argument -q/--quiet\nhint: see `precast build --help`\n"
    ),
    "build --jsn": "error: `precast build` does not take `--jsn`\nhint: did you mean `--json`?\n",
    "plan --js": "error: `precast plan` does not take `--js`\nhint: did you mean `--json`?\n",
    "clean all now": "error: `precast clean` does not take `all now`\nhint: see `precast clean --help`\n",
    "plan --json --sort size": (
        "error: there is no column `size`\nhint: known columns: `BLOCK`, `dtype`, `target`, `unit`\n"
    ),
    "build scal": "error: no kernel matches `scal`\nhint: did you mean `scale`?\n",
    "build --report junit": (
        "error: `--report junit` names no file\nhint: write `--report junit=PATH` or `--report sarif=PATH`\n"
    ),
    "plan --sort size": "error: there is no column `size`\nhint: known columns: `BLOCK`, `dtype`, `target`, `unit`\n",
    "why scal*@cuda:90 scale:dtyp=fp16*@cuda:90": (
        "error: no unit matches `scale:dtyp=fp16*@cuda:90`\nhint: did you mean `scale:dtype=fp16,BLOCK=128@cuda:90`?\n"
    ),
    "repro . --project nowhere": "error: there is no folder `nowhere`\n",
    "plan --target cdua:*": "error: no target matches `cdua:*`\nhint: did you mean `cuda:90`?\n",
    "plan --project kernels": (
        "error: there is no `kernels/pyproject.toml`\n"
        "hint: run this in a project's folder, or give it with --project; `precast init kernels` makes one\n"
    ),
    "plan --project pyproject.toml": (
        "error: `pyproject.toml` is a file\nhint: --project takes the folder that it lies in\n"
    ),
    "build scale@cuda:90": (
        "error: no kernel matches `scale@cuda:90`\n"
        "hint: this takes kernels, and `--target` their targets: that unit is one of `scale`\n"
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


def read_events(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "reason", "message"),
    [
        ("build --json -j x", "error", "argument -j/--jobs: invalid int value: 'x'"),
        ("build --json -j 0", "error", "0 units at once build nothing"),
        ("build --json --kernel scal", "error", "no kernel matches `scal`"),
        ("build --json --project nowhere", "error", "there is no `nowhere/pyproject.toml`"),
        ("-C kernels build --json --report x", "error", "`--report x` names no file"),
    ],
)
def test_every_end_of_a_build_has_a_summary_for_programs(say, capsys, words, reason, message):
    assert main(words.split()) == 1
    failed, summary = read_events(capsys)
    assert (failed["event"], failed["message"]) == ("failed", message)
    assert (summary["event"], summary["reason"], summary["message"]) == ("summary", reason, message)


def test_a_fault_of_ours_has_a_summary_and_a_traceback(say, capsys, monkeypatch):
    monkeypatch.setattr("precast.graph.session.plan_project", lambda *given, **more: 1 // 0)
    assert main(["build", "--json"]) == 2
    captured = capsys.readouterr()
    [summary] = map(json.loads, captured.out.splitlines())
    assert (summary["reason"], summary["message"]) == ("fault", "ZeroDivisionError: integer division or modulo by zero")
    assert "Traceback" in captured.err


def test_a_project_is_found_from_below_it(say, capsys):
    os.makedirs("kernels/deep/er")
    os.chdir("kernels/deep/er")
    assert say("plan")[0] == 0
    with open("../../scale.toml", "a") as file:
        file.write("oops\n")
    code, told = say("plan")
    assert code == 1 and told.startswith("../../../kernels/scale.toml:14:5: error: ")


def test_a_folder_s_settings_count_where_they_are_precast_s(say, capsys):
    os.makedirs("package/src")
    with open("package/pyproject.toml", "w") as file:
        file.write('[project]\nname = "other"\ndependencies = ["precast"]\n')
    os.chdir("package/src")
    assert say("plan") == (0, "")
    with open("../pyproject.toml", "a") as file:
        file.write("[tool.precast]\n")
    code, told = say("plan")
    assert code == 1 and told.startswith("../pyproject.toml:4:")
    with open("../pyproject.toml", "w") as file:
        file.write("tool = 3\n")
    assert say("plan") == (
        1,
        "../pyproject.toml:1:8: error: `tool` must be a table, not an integer\n    tool = 3\n           ^\n",
    )


def test_a_folder_can_be_named_before_and_after_the_command(say, capsys):
    here = os.getcwd()
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    for words in (["-C", "..", "plan"], ["-C..", "plan", "-C", "kernels"], ["plan", "-C", ".."]):
        assert say(*words) == (0, "")
    assert os.getcwd() == f"{here}/elsewhere"


def test_the_project_that_is_named_is_meant(say):
    os.chdir("kernels")
    told = "error: there is no `pyproject.toml`\n"
    assert say("plan", "--project", ".")[1].startswith(told)


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version(say, capsys, flag):
    assert main([flag]) == 0
    assert capsys.readouterr().out == f"precast {precast.__version__}\n"


def test_a_plan_is_a_table_for_each_kernel(say, capsys):
    assert main(["plan", "scale", "--target", "cuda:*", "--sort=-dtype"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "scale  kernels/scale.py:scale_kernel  4 units",
        "  target   dtype  BLOCK  unit",
        "  cuda:80  fp32     128  scale:dtype=fp32,BLOCK=128@cuda:80",
        "  cuda:90  fp32     128  scale:dtype=fp32,BLOCK=128@cuda:90",
        "  cuda:80  fp16     128  scale:dtype=fp16,BLOCK=128@cuda:80",
        "  cuda:90  fp16     128  scale:dtype=fp16,BLOCK=128@cuda:90",
        "4 units of 1 kernel for 2 targets",
    ]


def test_a_plan_is_sorted_over_all_kernels(say, capsys, tmp_path):
    """A column that only one kernel has sorts that one, in tables and for programs."""
    other = SPEC.replace("kernel.scale", "kernel.other").replace("[128]", "[64, 256]")
    other = other.replace("exclude", "#").replace('dtype = ["fp16", "fp32"]\n', "").replace("*{dtype}", "*fp16")
    make_project(tmp_path, {"kernels/other.toml": other})
    assert main(["plan", "--target", "cuda:90", "--json", "--sort=-dtype"]) == 0
    units = [each["unit"] for each in json.loads(capsys.readouterr().out)["units"]]
    assert [each.partition("@")[0] for each in units] == [
        "scale:dtype=fp32,BLOCK=128", "scale:dtype=fp16,BLOCK=128", "other:BLOCK=64", "other:BLOCK=256",
    ]  # fmt: skip
    assert main(["plan", "--target", "cuda:90", "--sort=-dtype"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1].partition("@")[0] for line in lines if "@" in line] == [
        "other:BLOCK=64", "other:BLOCK=256", "scale:dtype=fp32,BLOCK=128", "scale:dtype=fp16,BLOCK=128",
    ]  # fmt: skip


def test_why_takes_globs_and_answers_programs(say, capsys):
    assert main(["why", "scale:dtype=fp16*", "scale:dtype=fp32,BLOCK=128@cuda:90", "--json"]) == 0
    answers = read_events(capsys)
    assert [answer["unit"] for answer in answers] == [
        "scale:dtype=fp16,BLOCK=128@cuda:80",
        "scale:dtype=fp16,BLOCK=128@cuda:90",
        "scale:dtype=fp32,BLOCK=128@cuda:90",
        "scale:dtype=fp16,BLOCK=128@hip:gfx942",
    ]
    assert {tuple(answer["reasons"]) for answer in answers} == {("never built",)}


def test_a_dry_run_says_what_and_why_and_makes_nothing(say, capsys):
    assert main(["build", "-n", "--kernel", "scale", "--target", "cuda:90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "scale:dtype=fp16,BLOCK=128@cuda:90: never built"
    assert lines[-1] == "release: never made"
    assert not os.path.exists("build/units") and not os.path.exists("generated")
    assert main(["build", "-n", "--json"]) == 0
    *stale, summary = read_events(capsys)
    assert stale[0] == {"event": "stale", "step": "scale:dtype=fp16,BLOCK=128@cuda:80", "reasons": ["never built"]}
    assert (summary["event"], summary["reason"], summary["built"]) == ("summary", "complete", 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_s_completion_knows_every_command(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS) and "keep-going" in script


IN_BASH = 'COMP_WORDS=(precast pla); COMP_CWORD=1; _shtab_precast; echo "${COMPREPLY[@]}"'
IN_ZSH = "autoload -Uz compinit; compinit -D -u; {}; echo $_comps[precast]"


@pytest.mark.parametrize(
    ("shell", "script", "answer"),
    [
        ("bash", f'eval "$(cat script)"; {IN_BASH}', "plan"),
        ("bash", f"source ./script; {IN_BASH}", "plan"),
        ("zsh", IN_ZSH.format('eval "$(cat script)"'), "_shtab_precast"),
        ("zsh", IN_ZSH.format("source ./script"), "_shtab_precast"),
        ("fish", "cat script | source; complete -C 'precast pla' | string split -f 1 \\t", "plan"),
    ],
)
def test_a_shell_takes_the_script(tmp_path, capsys, shell, script, answer):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    alone = {"zsh": ["-f"], "fish": ["--no-config"], "bash": ["--norc"]}[shell]
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [shell, *alone, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (answer, "")


@pytest.mark.parametrize("words", [["schema", "spec"], ["plan", "--json"]], ids=" ".join)
def test_an_output_that_is_no_output_is_told(tmp_path, words):
    """A descriptor that can only be read from; the streams are a process's own."""
    for closed in ("1</dev/null", "1</dev/null 2</dev/null", ">/dev/full 2>/dev/full"):
        command = f"exec {sys.executable} -m precast {' '.join(words)} {closed}"
        done = subprocess.run(["sh", "-c", command], cwd=make_project(tmp_path), capture_output=True, text=True)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr in ("", "error: cannot write to standard output: bad file descriptor\n")


REFUSED = (
    "EUCLEAN",
    "EBADMSG",
    "EBUSY",
    "ETXTBSY",
    "ETIMEDOUT",
    "ESTALE",
    "EREMOTEIO",
    "ENOLCK",
    "ENODEV",
    "EIO",
    "EROFS",
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_machine_refuses_is_told(name):
    number = getattr(errno, name)
    told = describe_fault(OSError(number, os.strerror(number), "build/x"))
    assert told is not None and told.message == f"cannot use build/x: {os.strerror(number).lower()}"


@pytest.mark.parametrize("name", ["ENOENT", "EBADF", "EINVAL", "EEXIST"])
def test_what_should_not_have_been_asked_is_a_fault_of_ours(name):
    assert describe_fault(OSError(getattr(errno, name), "no", "build/x")) is None


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x7fELF\x80"])
def test_ir_that_is_no_text_is_told(data):
    with pytest.raises(SpecError, match="is no text of IR"):
        opt._decode(data, "k.ttir")


LOST = """
import os, signal, sys, time, weakref
from precast import cli

class Thing:
    pass

def run(words):
    thing = Thing()
    watch = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.Signals[words[0]]))
    del thing
    time.sleep(60)

cli.run_command = run
sys.exit(cli.main())
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_where_python_raises_nothing_ends_a_command_too(name, code):
    done = subprocess.run([sys.executable, "-c", LOST, name], capture_output=True, text=True, timeout=50)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
