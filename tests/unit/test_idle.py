"""What a spec or the settings say to no effect: an error at its place where nothing could ever match it, else a
warning."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_projects import SETTINGS, SPEC, error_text, make_project, plan

from precast.errors import SpecError
from precast.grid import fold, parse_requirement
from precast.spec.bounds import find_bounds
from precast.variables import KNOWN, OTHERS, PREFIXES

EXCLUDING = """\
BLOCK = [128, 256]
num_warps = [8]
exclude = [ENTRY]

[kernel.scale.target."cuda:*"]
BLOCK = [512]

[kernel.scale.target."hip:*"]
num_warps = [4]
"""
PASS = """\
from precast.passes import Pass


class Nothing(Pass):
    name, stage = "nothing", "ttir"

    def run(self, module, context):
        return None
"""


def complaints(folder, files):
    """The errors of a project, without the lines that they show."""
    lines = error_text(make_project(folder, files)).splitlines()
    return [line.removeprefix("kernels/scale.toml:") for line in lines if line and not line.startswith("    ")]


def warnings(folder, files):
    found = plan(make_project(folder, files)).warnings
    return [each.replace(f"{folder}/", "") for each in found]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{ BLOCK = 64 }", ["15:22: error: axis `BLOCK` has no value 64 to exclude", "hint: it has 128, 256, 512"]),
        ('{ dtype = "f16" }', ["15:22: error: axis `dtype` has no value f16 to exclude", "hint: it has fp16, fp32"]),
        ("{ BLOCK = true }", ["15:22: error: axis `BLOCK` has no value true to exclude", "hint: it has 128, 256, 512"]),
        (
            "{ }",
            ["15:12: error: this entry of `exclude` names no axis", 'hint: write one or more: `{ dtype = "fp32" }`'],
        ),
        ("{ BLOCK = 128 }, { BLOCK = 128 }", ["15:29: error: this entry of `exclude` is there twice"]),
        ("{ BLOCKS = 128 }", ["15:14: error: unknown axis `BLOCKS`", "hint: did you mean `BLOCK`?"]),
        ("{ exclude = 128 }", ["15:14: error: unknown axis `exclude`", "hint: known axes: …"]),
        ("{ num_warps = 4, BLOCK = 512 }", ["15:12: error: no target has a variant with these values together"]),
        ("{ BLOCK = 512 }, { num_warps = 4, BLOCK = 128 }, { dtype = 'fp16', BLOCK = 256 }", []),
    ],
)
def test_what_exclude_names_is_there(tmp_path, entry, said):
    spec = SPEC.replace("BLOCK = [128]\n", EXCLUDING.replace("ENTRY", entry))
    found = complaints(tmp_path, {"kernels/scale.toml": spec})
    assert ["hint: known axes: …" if each.startswith("hint: known ax") else each for each in found] == said


def test_exclude_may_name_what_configs_say(tmp_path):
    configs = "configs = [{ BLOCK = 64, num_warps = 4 }, { BLOCK = 128, num_warps = 8 }]\n\n[kernel.scale.args]"
    spec = SPEC.replace("\n[kernel.scale.args]", configs).replace("BLOCK = [128]\n", "exclude = [ENTRY]\n")
    good = spec.replace("ENTRY", '{ BLOCK = 64, num_warps = 4, dtype = "fp16" }')
    make_project(tmp_path, {"kernels/scale.toml": good})
    assert len(plan(tmp_path, targets=("cuda:80",)).units) == 3
    bad = spec.replace("ENTRY", "{ BLOCK = 64, num_warps = 8 }")
    (said,) = complaints(tmp_path, {"kernels/scale.toml": bad})
    assert said.endswith("error: no target has a variant with these values together")


def test_a_section_that_only_leaves_out(tmp_path):
    spec = SPEC.replace("grid =", 'only = ["cuda:*"]\ngrid =') + '[kernel.scale.target."hip:*"]\nnum_warps = 8\n'
    assert complaints(tmp_path, {"kernels/scale.toml": spec}) == [
        "15:22: error: `only` leaves out every target that `hip:*` selects",
        "hint: leave the section out, or add `hip:*` to `only` of [kernel.scale]",
    ]


@pytest.mark.parametrize("where", ["options", "matrix"])
def test_an_option_that_no_target_of_only_has(tmp_path, where):
    option = "waves_per_eu = 2" if where == "options" else "waves_per_eu = [2]"
    table = f"[kernel.scale.options]\n{option}\n" if where == "options" else f"{option}\n"
    spec = SPEC.replace("grid =", 'only = ["cuda:*"]\ngrid =') + table
    (said,) = warnings(tmp_path, {"kernels/scale.toml": spec, "pyproject.toml": SETTINGS.replace(', "hip:gfx942"', "")})
    assert said.endswith("option `waves_per_eu` does nothing: `cuda:*` has no such option")


@pytest.mark.parametrize(
    ("requirement", "meets"),
    [
        ("BLOCK < 128", False),
        ("n > 2147483647", False),
        ("n > 2147483646", True),
        ("n % 16 == 16", False),
        ("n % 16 == 15", True),
        ("n // 0 == 1", False),
        ("stride < 9223372036854775807 + 1", False),
        ("min(n, BLOCK) > BLOCK", False),
        ("cdiv(n, BLOCK) <= 16777216", True),
        ("cdiv(n, BLOCK) > 16777216", False),
        ("stride * 0 == 1", False),
    ],
)
def test_requirements_that_no_launch_can_meet(tmp_path, requirement, meets):
    spec = SPEC.replace("\n[kernel.scale.args]", f'requires = ["n < n + 1", "{requirement}"]\n\n[kernel.scale.args]')
    found = complaints(tmp_path, {"kernels/scale.toml": spec})
    if meets:
        assert found == []
    elif "//" in requirement or "+ 1" in requirement:
        assert len(found) >= 1 and found[0].startswith("4:")  # what cannot be computed at all
    else:
        assert found == [f"4:27: error: no variant of kernel `scale` can meet `{requirement}`, whatever the launch"]


SMALL = st.integers(-9, 9)


@given(st.data())
def test_bounds_hold(data):
    """Every value that an expression has, for any values of its names, lies within its bounds."""
    atom = st.one_of(st.sampled_from("ab"), st.integers(0, 9).map(str))
    binary = st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "({} // {})", "({} % {})", "min({}, {})",
                              "max({}, {})", "cdiv({}, {})"])  # fmt: skip
    value = st.recursive(atom, lambda inner: st.builds(str.format, binary, inner, inner), max_leaves=4)
    sign = data.draw(st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]))
    text = f"{data.draw(value)} {sign} {data.draw(value)}"
    names = {name: tuple(sorted((data.draw(SMALL), data.draw(SMALL)))) for name in "ab"}
    expression = parse_requirement(text, names)
    bounds = find_bounds(expression, names)
    for chosen in itertools.product(*({low, (low + high) // 2, high} for low, high in names.values())):
        try:
            result = fold(expression, dict(zip(names, chosen, strict=True)))
        except SpecError:  # it has no value there
            continue
        assert bounds is not None and bounds[0] <= result <= bounds[1], (text, names, chosen)


def test_settings_that_do_nothing(tmp_path):
    settings = (
        SETTINGS.replace('["cuda:80", "cuda:90", "hip:gfx942"]', '["hip:gfx942"]')
        + 'kernels = ["kernels/*.toml", "kernel/*.toml"]\n'
        + "[tool.precast.tools]\nptxas = 'ptxas'\n[tool.precast.defaults]\nmaxnreg = 64\n"
        + "[tool.precast.triton]\nTRITON_F32_DEFAUL = 'ieee'\nTRITON_OUR_OWN = 1\nTRITON_F32_DEFAULT = 'ieee'\n"
    )
    assert warnings(tmp_path, {"pyproject.toml": settings, "ptxas": ""}) == [
        "pyproject.toml:7:9: `ptxas` does nothing: no target is NVIDIA's",
        "pyproject.toml:9:1: option `maxnreg` does nothing: none of the project's targets has it",
        "pyproject.toml:11:1: Triton 3.9 has no variable `TRITON_F32_DEFAUL`; did you mean `TRITON_F32_DEFAULT`?",
        "pyproject.toml:12:1: Triton 3.9 has no variable `TRITON_OUR_OWN`",
        "pyproject.toml:5:30: no spec file matches `kernel/*.toml`",
    ]


def test_a_version_that_is_not_known(tmp_path):
    settings = '[project]\nname = "demo"\ndynamic = ["version"]\n' + SETTINGS.replace('version = "1.0"\n', "")
    said = "a dynamic version is not known here: the release has version 0; write `version` in [tool.precast]"
    assert warnings(tmp_path, {"pyproject.toml": settings}) == [f"pyproject.toml:3:12: {said}"]
    settings = settings.replace("[tool.precast]\n", '[tool.precast]\nversion = "1"\n')
    assert warnings(tmp_path, {"pyproject.toml": settings}) == []


@pytest.mark.parametrize("key", ['tune = ["BLOCK"]', "ship = 3"])
def test_tuning_without_a_problem(tmp_path, key):
    spec = SPEC.replace("grid =", f"{key}\ngrid =")
    said = f"kernels/scale.toml:3:1: `{key[:4]}` does nothing: kernel `scale` has no problem to measure"
    assert warnings(tmp_path, {"kernels/scale.toml": spec}) == [said]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{ type = "i1", align = 2 }', "8:20: error: `align` is for pointers and integers, not for `i1`"),
        ('{ type = "none", align = 2 }', "8:22: error: `align` is for pointers and integers, not for `none`"),
        ('{ type = "{dtype}", align = 2 }', "12:10: error: `align` is for pointers and integers, and `n` is `fp16`"),
        ('{ type = "i32", align = 2147483648 }', "8:29: error: `align` must be at most 1073741824, not 2147483648"),
        ("7", "8:5: error: `n` must be a string or a table, not an integer"),
    ],
)
def test_promises_that_no_argument_keeps(tmp_path, entry, said):
    spec = SPEC.replace('n = "i32"', f"n = {entry}").replace("cdiv(n, BLOCK)", "1")
    assert complaints(tmp_path, {"kernels/scale.toml": spec})[0] == said


def test_a_target_that_no_kernel_is_built_for(tmp_path):
    spec = SPEC.replace("grid =", 'only = ["cuda:*"]\ngrid =')
    said = ["pyproject.toml:4:34: no kernel is built for `hip:gfx942`"]
    assert warnings(tmp_path, {"kernels/scale.toml": spec}) == said
    assert plan(tmp_path, targets=("cuda:*",)).warnings == (), "a part says nothing of the whole"


def test_globs_of_a_pass_that_select_nothing(tmp_path):
    selection = (
        '[[tool.precast.pass]]\nuse = "nothing"\nkernels = ["scal*", "softmax"]\ntargets = ["cuda:*", "cpu:*"]\n'
    )
    variants = 'variants = ["dtype=fp16,*", "*BLOCK=64*"]\n'
    files = {"plugins/nothing.py": PASS, "pyproject.toml": SETTINGS + selection + variants}
    assert warnings(tmp_path, files) == [
        "pyproject.toml:7:21: `softmax` selects no unit",
        "pyproject.toml:9:29: `*BLOCK=64*` selects no unit",
        "pyproject.toml:8:22: `cpu:*` selects no unit",
    ]
    assert plan(tmp_path, targets=("hip:*",)).warnings == ()


def test_a_pass_that_is_switched_off_may_select_nothing(tmp_path):
    settings = SETTINGS + '[[tool.precast.pass]]\nuse = "nothing"\nkernels = ["softmax"]\n'
    files = {"plugins/nothing.py": PASS, "pyproject.toml": settings}
    assert warnings(tmp_path, files) == ["pyproject.toml:6:7: pass `nothing` is selected for no unit"]
    files["pyproject.toml"] += "enabled = false\n"
    assert warnings(tmp_path, files) == []


def test_an_anchor_that_says_nothing(tmp_path):
    settings = SETTINGS + '[[tool.precast.pass]]\nuse = "nothing"\nat = ""\n'
    assert complaints(tmp_path, {"plugins/nothing.py": PASS, "pyproject.toml": settings}) == [
        "pyproject.toml:7:6: error: `at` is empty",
        "hint: leave it out for the pass's own anchor",
    ]


def test_variables_are_tritons():
    from triton import knobs

    groups = [each for each in vars(knobs).values() if isinstance(each, knobs.base_knobs)]
    read = {each.key for group in groups for each in vars(type(group)).values() if isinstance(each, knobs.env_base)}
    assert len(read) > 40
    assert {each for each in read if each.startswith(PREFIXES) or each in OTHERS} <= KNOWN
    folder = Path(knobs.__file__).parent
    files = [*folder.glob("_C/libtriton*.so"), *folder.glob("*.py"), *folder.glob("runtime/*.py")]
    texts = [file.read_bytes() for file in files]
    assert [name for name in KNOWN - read if not any(name.encode() in text for text in texts)] == []


def test_a_variable_without_a_prefix_may_be_set(tmp_path):
    settings = SETTINGS + "[tool.precast.triton]\nPTXAS_OPTIONS = '-O1'\nPRECAST_ENGINE = 'stand-in'\n"
    assert warnings(tmp_path, {"pyproject.toml": settings}) == []
