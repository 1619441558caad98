"""What the plan reads in a source against what is imported, through the front end, and every kind of constexpr."""

import textwrap
import time

import pytest
from small_projects import error_text, make_project, plan

from precast.engines import StageFailure
from precast.engines.triton.compile import TritonEngine
from precast.errors import Place
from precast.worker.descendants import is_running

HEAD = "import enum\nimport sys\n\nimport triton\nimport triton.language as tl\n\n"
KERNEL = """
@triton.jit
def kernel(out, n, V: tl.constexpr{default}):
    tl.store(out, V)
"""
SPEC = """\
[kernel.one]
source = "one.py:kernel"
grid = [1]
args = { out = "*i32", n = "i32" }
"""
SETTINGS = '[tool.precast]\nname = "demo"\nversion = "1"\ntargets = ["cuda:90"]\n'


@pytest.fixture(scope="module")
def engine():
    return TritonEngine()


@pytest.fixture
def read(engine, tmp_path):
    """The front end's text of every unit of one kernel, planned as it is now."""

    def run(source: str, spec: str = "", files: dict[str, str] | None = None, head: str = SPEC) -> list[str]:
        project = {"pyproject.toml": SETTINGS, "kernels/scale.toml": None, "kernels/scale.py": None}
        project |= {"kernels/one.py": HEAD + textwrap.dedent(source), "kernels/one.toml": head + spec, **(files or {})}
        found = plan(make_project(tmp_path, project))
        texts = [engine.read_source(found.job(each.unit)).output.text for each in found.units]
        engine._loader.close()
        return texts

    return run


def refuse(read, *arguments, **keywords) -> StageFailure:
    with pytest.raises(StageFailure) as caught:
        read(*arguments, **keywords)
    return caught.value


def test_two_definitions_of_one_name(read):
    other = "@triton.jit\ndef kernel(n, out, V: tl.constexpr):\n    tl.store(out, V)\n"
    first = KERNEL.format(default="").strip()
    text = f"if sys:\n{textwrap.indent(first, '    ')}\nelse:\n{textwrap.indent(other, '    ')}"
    failure = refuse(read, text, "matrix.V = [3]\n")
    assert failure.message == (
        "`kernels/one.py:kernel` is not what the plan read: "
        "it read the arguments (n, out, V: constexpr) and imported (out, n, V: constexpr)"
    )
    assert failure.where == Place("kernels/one.py", 9, 5)
    assert read(text.replace("kernel(n, out,", "kernel(out, n,"), "matrix.V = [3]\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "W: tl.constexpr = 5\nglobals().update(W=6)\n" + KERNEL.format(default=" = W"),
            "it read `V = 5` by default and imported `V = 6`",
        ),
        (
            "W = 5\nvars().update(W=object())\n" + KERNEL.format(default=" = W"),
            "it read `V = 5` by default and imported a value of type object",
        ),
        (KERNEL.format(default=" = 1") + "\nkernel.params[2].is_constexpr = False\n", None),
    ],
)
def test_a_default_that_is_set_behind_the_text(read, source, message):
    failure = refuse(read, source)
    expected = message or "it read the arguments (out, n, V: constexpr) and imported (out, n, V)"
    assert failure.message == f"`kernels/one.py:kernel` is not what the plan read: {expected}"


CONFIGS = "@triton.autotune([triton.Config({'V': 1}), triton.Config({'V': 2}, num_warps=8)], key=['n'])"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "kernel.configs.pop(0)",
            "it read the config `V=1, num_ctas=1, num_stages=3, num_warps=4`, which the imported @triton.autotune "
            "does not have",
        ),
        (
            "kernel.configs.append(triton.Config({'V': 3}, maxnreg=64))",
            "the imported @triton.autotune has other configs than those that it read",
        ),
        (
            "kernel.configs[0].kwargs['V'] = [1]",
            "it read configs of @triton.autotune and imported a value of type list in one of its configs",
        ),
        ("kernel = kernel.fn", "it read configs of @triton.autotune and imported none"),
    ],
)
def test_configs_that_change_behind_the_text(read, change, message):
    tuned = CONFIGS + KERNEL.format(default="")
    assert len(read(tuned, 'configs = "source"\n')) == 2
    failure = refuse(read, f"{tuned}\nexec({change!r})\n", 'configs = "source"\n')
    assert failure.message == f"`kernels/one.py:kernel` is not what the plan read: {message}"
    assert failure.where == Place("kernels/one.py", 9, 1)


def test_configs_are_compared_only_where_the_spec_takes_them(read):
    assert read(f"{CONFIGS}{KERNEL.format(default='')}\nexec('kernel.configs.pop()')\n", "matrix.V = [7]\n")


MODES = """\
import enum
import math

import triton


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Size(enum.IntEnum):
    BIG = 64


@triton.constexpr_function
def sign(x):
    return math.copysign(1.0, x)


@triton.jit
def double(x):
    return 2 * x
"""


@pytest.mark.parametrize(
    ("value", "body", "text"),
    [
        ('"None"', "11 if V is None else 22", "11"),
        ("""'"None"'""", '11 if V == "None" else 22', "11"),
        ('"tl.float16"', "11 if V == tl.float16 else 22", "11"),
        ("[3, [4, 5]]", "V[0] * 100 + V[1][1]", "305"),
        ('["None", "modes:Size.BIG"]', "V[1] if V[0] is None else 22", "64"),
        ("18446744073709551616", "V // 18446744073709551615 + V % 1000", "617"),
        ("inf", "11 if V > 1e300 else 22", "11"),
        ("nan", "11 if V != V else 22", "11"),
        ("-0.0", "11 if sign(V) < 0 else 22", "11"),
        ('"modes:Mode.SLOW"', "11 if V == SLOW else 22", "11"),
        ('"modes.py:Size.BIG"', "V", "64"),
        ('"modes:double"', "V(21)", "42"),
        ('"a:b"', '11 if V == "a:b" else 22', "11"),
    ],
)
def test_values_that_a_spec_states(read, value, body, text):
    head = "from modes import Mode, sign\n\nSLOW = tl.constexpr(Mode.SLOW)\n"
    source = head + f"@triton.jit\ndef kernel(out, n, V: tl.constexpr):\n    tl.store(out, {body})\n"
    files = {"kernels/modes.py": MODES}
    for spec in (f"constants.V = {value}\n", f"matrix.V = [{value}]\n", f"configs = [{{ V = {value} }}]\n"):
        assert f"arith.constant {text} : i32" in read(source, spec, files)[0]


def test_a_module_that_only_a_value_names(read):
    source = "@triton.jit\ndef kernel(out, n, V: tl.constexpr):\n    tl.store(out, V(7))\n"
    other = "import absent_package\nimport triton\n\n\n@triton.jit\ndef triple(x):\n    return 3 * x\n"
    spec = 'constants.V = "lib.other:triple"\n'
    settings = SETTINGS + 'pythonpath = ["more"]\n'
    files = {"more/lib/__init__.py": "", "more/lib/other.py": other, "pyproject.toml": settings}
    assert "arith.constant 21 : i32" in read(source, spec, files)[0]
    failure = refuse(read, source, spec, files | {"more/lib/other.py": other + "raise ValueError('no')\n"})
    assert failure.message == "module `lib.other`, which a constexpr names, does not import: no"


def test_a_module_that_a_value_names_is_an_input(tmp_path):
    files = {
        "kernels/one.py": HEAD + KERNEL.format(default=""),
        "kernels/one.toml": SPEC + 'matrix.V = [["modes:Size.BIG", 1], [1, 1]]\n',
        "kernels/modes.py": MODES,
    }
    before = {str(each.unit): each for each in plan(make_project(tmp_path, files)).units if each.unit.kernel == "one"}
    (tmp_path / "kernels/modes.py").write_text(MODES.replace("64", "128"))
    after = {str(each.unit): each for each in plan(tmp_path).units if each.unit.kernel == "one"}
    changed = {text for text in before if before[text].key != after[text].key}
    assert changed == {f"one:V=(modes:Size.BIG,1)@{target}" for target in ("cuda:80", "cuda:90", "hip:gfx942")}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"modes:Mod.FAST"', "`kernels/modes.py` has no `Mod`"),
        ('"mode.py:Mode.FAST"', "there is no file `kernels/mode.py`"),
        ('"tl.float17"', "`tl.float17` is not a Triton data type"),
        ("""'"tl.float16"'""", "`tl.float16` is how a data type is written: no constexpr can be that text"),
        ("""'"open'""", None),
        ("""'"a"b"'""", "the quotes within this text do not close"),
        ("{ a = 1 }", "`V` must be a string, a number, true or false, not a table"),
        ("[1979-05-27]", "`V` must be a string, a number, true or false, not a date"),
        ("[" * 40 + "]" * 40, "`V` is nested too deeply"),
    ],
)
def test_values_that_are_refused(tmp_path, value, message):
    files = {
        "kernels/one.py": HEAD + KERNEL.format(default=""),
        "kernels/one.toml": SPEC + f"constants.V = {value}\n",
        "kernels/modes.py": MODES,
    }
    text = error_text(make_project(tmp_path, files))
    assert (f"error: {message}\n" in text and text.startswith("kernels/one.toml:5:")) if message else not text


def test_a_star_is_a_tuple(read):
    source = "@triton.jit\ndef kernel(out, *rest, V: tl.constexpr = 1):\n    tl.store(out, rest[0] + rest[1] + V)\n"
    spec = '[kernel.one]\nsource = "one.py:kernel"\ngrid = [1]\nargs = { out = "*i32", rest = "(i32, i32)" }\n'
    assert "tt.func public @kernel(%arg0: !tt.ptr<i32>, %arg1: i32, %arg2: i32)" in read(source, head=spec)[0]


COMPUTED = """\
import json
from pathlib import Path

from sizes import SIZES


def configs():
    values = json.loads(Path(__file__).with_name("v.json").read_text())
    found = [triton.Config({"V": value}, num_warps=8) for value in values]
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        found.append(triton.Config({"V": SIZES[0]}, maxnreg=None))
    return found


@triton.autotune(configs(), key=["n"])
"""
ASKED = {
    "pyproject.toml": SETTINGS.replace('"cuda:90"', '"cuda:90", "hip:gfx942"'),
    "kernels/scale.toml": None,
    "kernels/scale.py": None,
    "kernels/one.py": HEAD + COMPUTED + KERNEL.format(default="").strip(),
    "kernels/one.toml": SPEC.replace("[1]", '["V"]') + 'configs = "source"\n',
    "kernels/sizes.py": "SIZES = [64]\n",
    "kernels/v.json": "[1, 2]",
}


def planned_units(folder):
    return [str(each.unit) for each in plan(folder).units]


def test_configs_that_a_source_computes_are_asked_for(tmp_path, monkeypatch):
    folder = make_project(tmp_path, ASKED)
    units = ["one:V=1,num_warps=8@cuda:90", "one:V=2,num_warps=8@cuda:90"]
    hip = ["one:V=1,num_warps=8@hip:gfx942", "one:V=2,num_warps=8@hip:gfx942", "one:V=64,num_warps=4@hip:gfx942"]
    assert planned_units(folder) == units + hip
    (folder / "kernels/v.json").write_text("[7]")
    hip[:2] = ["one:V=7,num_warps=8@hip:gfx942"]
    assert planned_units(folder) == ["one:V=7,num_warps=8@cuda:90", *hip]
    (folder / "kernels/sizes.py").write_text("SIZES = [65]\n")
    hip[1] = "one:V=65,num_warps=4@hip:gfx942"
    assert planned_units(folder) == ["one:V=7,num_warps=8@cuda:90", *hip]
    fail = "nothing moved, and something was imported"
    monkeypatch.setattr("precast.plan.kernel_probes.run_child", lambda *_: pytest.fail(fail))
    assert planned_units(folder) == ["one:V=7,num_warps=8@cuda:90", *hip]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("raise ValueError('no')", "kernels/one.py:26:1: error: the kernel's module does not import: ValueError: no"),
        (
            "import os; print('gone'); os._exit(3)",
            "kernels/one.py:1:1: error: the module of `kernels/one.py:kernel` ends the process that imports it: "
            "exit code 3",
        ),
        ("kernel = kernel.fn", "kernels/one.toml:5:11: error: the source has no @triton.autotune"),
        (
            "kernel.configs[0].kwargs['V'] = object()",
            "kernels/one.toml:5:11: error: the source's autotune configs cannot be stated: it has a value of type "
            "object in one of its configs",
        ),
        ("kernel.configs[0].kwargs['W'] = 1; kernel.configs[0].kwargs.pop('V')",
         "kernels/one.toml:1:9: error: constexpr `V` of `kernel` has no value"),
    ],
)  # fmt: skip
def test_an_import_that_tells_nothing(tmp_path, change, message):
    folder = make_project(tmp_path, ASKED | {"kernels/one.py": f"{ASKED['kernels/one.py']}\n\nexec({change!r})\n"})
    assert error_text(folder).splitlines()[0] == message


def test_what_a_module_starts_ends_with_its_import(tmp_path):
    """Nobody waits for it, though it holds the streams of the process that imported the module."""
    place, start = tmp_path / "started", "import subprocess\nprocess = subprocess.Popen(['sleep', '1000'])\n"
    start += f"open({str(place)!r}, 'a').write(f'{{process.pid}}\\n')\n"
    assert planned_units(make_project(tmp_path, ASKED | {"kernels/one.py": f"{ASKED['kernels/one.py']}\n\n{start}"}))
    started = [int(line) for line in place.read_text().split()]
    assert started
    while any(map(is_running, started)):  # what is killed takes a moment to be gone
        time.sleep(0.01)


def test_defaults_that_are_no_literals(read):
    source = "SIZE = 4\nSIZE = SIZE * 2\nclass Mode(enum.IntEnum):\n    BIG = 77\n\n"
    source += "class Flag(enum.IntFlag):\n    A, B = 16, 32\n\n"
    parameters = "V: tl.constexpr = SIZE, W: tl.constexpr = Mode.BIG, X: tl.constexpr = tl.constexpr(SIZE + 1)"
    parameters += ", Y: tl.constexpr = Flag.A | Flag.B"
    source += f"@triton.jit\ndef kernel(out, n, {parameters}):\n"
    source += "".join(f"    tl.store(out + {number}, {name})\n" for number, name in enumerate("VWXY"))
    text = read(source)[0]
    assert all(f"arith.constant {value} : i32" in text for value in (8, 77, 9, 48))


def test_a_default_that_depends_on_the_target(tmp_path):
    source = (
        "IS_HIP = triton.runtime.driver.active.get_current_target().backend == 'hip'\nWIDTH = 64 if IS_HIP else 32\n"
    )
    files = {"kernels/one.py": HEAD + source + KERNEL.format(default=" = WIDTH"), "kernels/one.toml": SPEC}
    units = [each.unit for each in plan(make_project(tmp_path, ASKED | files)).units]
    found = {str(unit.target): unit.arguments[2].value for unit in units}
    assert found == {"cuda:90": 32, "hip:gfx942": 64}


def write_source(folder, data):
    make_project(folder, {"pyproject.toml": SETTINGS, "kernels/scale.toml": None, "kernels/scale.py": None})
    (folder / "kernels").mkdir(exist_ok=True)
    (folder / "kernels/one.toml").write_text(SPEC)
    (folder / "kernels/one.py").write_bytes(data)
    return folder


TEXT = HEAD + '# é\nNAME = "é"\n' + KERNEL.format(default=" = NAME").replace("out, V", "out, V == 'é'").strip() + "\n"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbf" + TEXT.encode(), "é"),
        (TEXT.replace("\n", "\r\n").encode(), "é"),
        (TEXT.replace("\n", "\r").encode(), "é"),
        (b"# -*- coding: latin-1 -*-\n" + TEXT.encode("latin-1"), "é"),
        (b"\n# vim: set fileencoding=cp1252 :\n" + TEXT.encode("cp1252"), "é"),
        (b"# coding: latin-1\n" + TEXT.encode("utf-8"), "Ã©"),
    ],
)
def test_sources_in_other_encodings(engine, tmp_path, data, value):
    found = plan(write_source(tmp_path, data))
    text = engine.read_source(found.job(found.units[0].unit)).output.text
    engine._loader.close()
    assert found.units[0].unit.reading.defaults == (("V", value),)
    assert "arith.constant 1 : i32" in text or "arith.constant true" in text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TEXT.encode("latin-1"), "kernels/one.py:7:3: error: not UTF-8 text: byte 0xe9"),
        (TEXT.encode("utf-16"), "kernels/one.py:1:1: error: not UTF-8 text: byte 0xff"),
        (b"# coding: klingon\n", "kernels/one.py:1:1: error: not valid Python: unknown encoding: klingon"),
        (TEXT.encode() + b"X = " + b"+".join([b"1"] * 20000),
         "kernels/one.py:1:1: error: its expressions are nested more deeply than Python can read"),
    ],
)  # fmt: skip
def test_sources_that_cannot_be_read(tmp_path, data, message):
    assert error_text(write_source(tmp_path, data)).splitlines()[0] == message


@pytest.mark.parametrize("source", ["V: tl.constexpr = tl.constexpr(V)", "V = (V := 3)"])
def test_a_default_that_is_its_own(tmp_path, source):
    """It is no literal; whether it is anything the import tells."""
    text = error_text(write_source(tmp_path, (HEAD + source + KERNEL.format(default=" = V")).encode()))
    assert text.startswith("kernels/one.py:7:1: error: the kernel's module does not import: NameError:") or not text
