"""From a spec to its units: matrix, exclude, configs, sections, specialisation, constants, absent arguments."""

import pytest
from small_projects import KERNEL, SETTINGS, SPEC, error_text, make_project, plan

from precast.spec.arguments import hint_variants
from precast.spec.model import Argument, ArgumentSpec, Hint


def units(folder, spec=SPEC, targets=("cuda:90",), kernel=KERNEL):
    settings = SETTINGS.replace('["cuda:80", "cuda:90", "hip:gfx942"]', str(list(targets)))
    make_project(folder, {"kernels/scale.toml": spec, "pyproject.toml": settings, "kernels/scale.py": kernel})
    return [planned.unit for planned in plan(folder).units]


def texts(found):
    return [str(unit) for unit in found]


def test_matrix_makes_every_combination(tmp_path):
    spec = SPEC.replace("[128]", "[128, 256]")
    assert texts(units(tmp_path, spec)) == [
        "scale:dtype=fp16,BLOCK=128@cuda:90",
        "scale:dtype=fp16,BLOCK=256@cuda:90",
        "scale:dtype=fp32,BLOCK=128@cuda:90",
        "scale:dtype=fp32,BLOCK=256@cuda:90",
    ]


def test_arguments_are_complete(tmp_path):
    unit = units(tmp_path)[0]
    assert unit.arguments == (
        Argument("x", "*fp16", divisibility=16),
        Argument("out", "*fp16", divisibility=16),
        Argument("n", "i32"),
        Argument("stride", "i64"),
        Argument("BLOCK", "constexpr", True, 128),
        Argument("EVEN", "constexpr", True, False),
    )
    assert unit.grid == ("cdiv(n, BLOCK)", "1", "1")
    assert unit.source.text == "kernels/scale.py:scale_kernel"


def test_exclude_drops_what_it_names(tmp_path):
    spec = SPEC.replace(
        "[128]", '[1, 2]\nEVEN = [true, false]\nexclude = [{ BLOCK = 1, EVEN = true }, { dtype = "fp32" }]'
    )
    assert texts(units(tmp_path, spec)) == [
        "scale:dtype=fp16,BLOCK=1,EVEN=false@cuda:90",
        "scale:dtype=fp16,BLOCK=2,EVEN=true@cuda:90",
        "scale:dtype=fp16,BLOCK=2,EVEN=false@cuda:90",
    ]


def test_sections_change_options_and_axes_of_their_targets(tmp_path):
    spec = SPEC + (
        '[kernel.scale.options]\nnum_warps = 4\nwaves_per_eu = 2\n[kernel.scale.target."cuda:*"]\nnum_warps = 8\n'
        'BLOCK = [256]\n[kernel.scale.target."cuda:90"]\nnum_warps = 2\n[kernel.scale.target."hip:*"]\nEVEN = true\n'
        '[kernel.scale.target."cpu:*"]\ndtype = ["fp32"]\n'
    )
    found = units(tmp_path, spec, ("cuda:80", "cuda:90", "hip:gfx942", "cpu:x86-64-v3"))
    options = {str(unit): dict(unit.options) for unit in found}
    assert options == {
        "scale:dtype=fp16,BLOCK=256@cuda:80": {"num_warps": 8},
        "scale:dtype=fp32,BLOCK=256@cuda:80": {"num_warps": 8},
        "scale:dtype=fp16,BLOCK=256@cuda:90": {"num_warps": 2},
        "scale:dtype=fp32,BLOCK=256@cuda:90": {"num_warps": 2},
        "scale:dtype=fp16,BLOCK=128,EVEN=true@hip:gfx942": {"num_warps": 4, "waves_per_eu": 2},
        "scale:dtype=fp32,BLOCK=128,EVEN=true@hip:gfx942": {"num_warps": 4, "waves_per_eu": 2},
        "scale:dtype=fp32,BLOCK=128@cpu:x86-64-v3": {},
    }


def test_a_section_can_take_back_what_its_target_cannot_have(tmp_path):
    spec = SPEC + '[kernel.scale.options]\nnum_ctas = 2\n[kernel.scale.target."cuda:80"]\nnum_ctas = 1\n'
    found = units(tmp_path, spec, ("cuda:80", "cuda:90"))
    assert {str(unit.target): dict(unit.options)["num_ctas"] for unit in found} == {"cuda:80": 1, "cuda:90": 2}


def test_options_of_other_backends_are_passed_over(tmp_path):
    settings = SETTINGS.replace('"cuda:80", "cuda:90", "hip:gfx942"', '"cpu:x86-64-v3"')
    settings += "[tool.precast.defaults]\nnum_stages = 2\nenable_fp_fusion = false\n"
    options = "[kernel.scale.options]\nnum_warps = 8\nwaves_per_eu = 2\ndebug = true\n"
    every = '[kernel.scale.target."*"]\nmaxnreg = 64\n'
    make_project(tmp_path, {"pyproject.toml": settings, "kernels/scale.toml": SPEC + options + every})
    for planned in plan(tmp_path).units:
        assert planned.unit.options == (("debug", True), ("enable_fp_fusion", False))


def test_only_keeps_other_targets_out(tmp_path):
    spec = SPEC.replace("grid =", 'only = ["hip:*"]\ngrid =')
    assert {str(unit.target) for unit in units(tmp_path, spec, ("cuda:90", "hip:gfx942"))} == {"hip:gfx942"}


def test_option_axes_and_configs(tmp_path):
    spec = SPEC.replace("BLOCK = [128]\n", "num_stages = [2, 3]\n").replace(
        "grid =", "configs = [{ BLOCK = 64, num_warps = 2 }, { BLOCK = 128, num_warps = 4 }]\ngrid ="
    )
    found = {str(unit): dict(unit.options) for unit in units(tmp_path, spec.replace('["fp16", "fp32"]', '["fp16"]'))}
    assert found == {
        "scale:dtype=fp16,num_stages=2,BLOCK=64,num_warps=2@cuda:90": {"num_stages": 2, "num_warps": 2},
        "scale:dtype=fp16,num_stages=3,BLOCK=64,num_warps=2@cuda:90": {"num_stages": 3, "num_warps": 2},
        "scale:dtype=fp16,num_stages=2,BLOCK=128,num_warps=4@cuda:90": {"num_stages": 2, "num_warps": 4},
        "scale:dtype=fp16,num_stages=3,BLOCK=128,num_warps=4@cuda:90": {"num_stages": 3, "num_warps": 4},
    }


def test_configs_from_the_source(tmp_path):
    kernel = KERNEL.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 512})], key=[])\n"
        "@triton.jit",
    )
    spec = SPEC.replace("BLOCK = [128]\n", "").replace("grid =", 'configs = "source"\ngrid =')
    assert texts(units(tmp_path, spec, kernel=kernel))[:2] == [
        "scale:dtype=fp16,BLOCK=64,num_warps=2@cuda:90",
        "scale:dtype=fp32,BLOCK=64,num_warps=2@cuda:90",
    ]
    assert texts(units(tmp_path, SPEC, kernel=kernel)) == texts(units(tmp_path / "plain"))


def test_constants_take_axis_values(tmp_path):
    kernel = KERNEL.replace("EVEN: tl.constexpr = False", "TYPE: tl.constexpr, WORD: tl.constexpr, SIZE: tl.constexpr")
    spec = SPEC + '[kernel.scale.constants]\nTYPE = "tl.{dtype}"\nWORD = "mode_{BLOCK}"\nSIZE = "{BLOCK}"\n'
    values = {argument.name: argument.value for argument in units(tmp_path, spec, kernel=kernel)[0].arguments}
    assert (values["TYPE"], values["WORD"], values["SIZE"]) == ("tl.float16", "mode_128", 128)


def test_hints_promise_and_make_constants(tmp_path):
    spec = SPEC.replace('n = "i32"', 'n = { type = "i32", align = 4, specialize = [16] }')
    spec = spec.replace('stride = "i64"', 'stride = { type = "i64", specialize = [16, 1], each = true }')
    found = {str(unit): unit.arguments[2:4] for unit in units(tmp_path, spec.replace('["fp16", "fp32"]', '["fp16"]'))}
    name = "scale:dtype=fp16,BLOCK=128"
    plain, divisible = Argument("n", "i32", divisibility=4), Argument("n", "i32", divisibility=16)
    one, sixteen, any_stride = (
        Argument("stride", "i64", True, 1),
        Argument("stride", "i64", divisibility=16),
        Argument("stride", "i64"),
    )
    assert found == {
        f"{name},n%16,stride==1@cuda:90": (divisible, one),
        f"{name},n%16,stride%16@cuda:90": (divisible, sixteen),
        f"{name},n%16@cuda:90": (divisible, any_stride),
        f"{name},stride==1@cuda:90": (plain, one),
        f"{name},stride%16@cuda:90": (plain, sixteen),
        f"{name}@cuda:90": (plain, any_stride),
    }


def test_range32_is_a_promise_on_amd_alone(tmp_path):
    spec = SPEC.replace("align = 16", "range32 = true")
    found = units(tmp_path, spec, ("cuda:90", "hip:gfx942"))
    assert {str(unit.target): unit.arguments[0].range32 for unit in found} == {"cuda:90": False, "hip:gfx942": True}


def test_absent_arguments(tmp_path):
    spec = SPEC.replace('type = "*{dtype}", align = 16', 'type = "{kind}", align = 16, specialize = [16]', 1)
    spec = spec.replace("BLOCK = [128]", 'BLOCK = [128]\nkind = ["none", "*fp16"]').replace(
        '["fp16", "fp32"]', '["fp16"]'
    )
    found = {str(unit): unit.arguments[0] for unit in units(tmp_path, spec)}
    assert found == {
        'scale:dtype=fp16,BLOCK=128,kind="none"@cuda:90': Argument("x", "none", True, None),
        "scale:dtype=fp16,BLOCK=128,kind=*fp16,x%16@cuda:90": Argument("x", "*fp16", divisibility=16),
        "scale:dtype=fp16,BLOCK=128,kind=*fp16@cuda:90": Argument("x", "*fp16", divisibility=16),
    }


@pytest.mark.parametrize(("align", "hinted", "plain"), [(64, 64, 64), (16, 16, 16), (8, 16, 8), (1, 16, 0)])
def test_a_promise_stays_beside_a_hint(tmp_path, align, hinted, plain):
    spec = SPEC.replace("align = 16", f"align = {align}, specialize = [16]", 1).replace('["fp16", "fp32"]', '["fp16"]')
    with_hint, without = (unit.arguments[0].divisibility for unit in units(tmp_path, spec))
    assert (with_hint, without) == (hinted, plain)


@pytest.mark.parametrize(
    ("arguments", "variants"),
    [
        ([], ["-"]),
        ([("a", (16,), False)], ["a%16", "-"]),
        ([("a", (16,), False), ("b", (16,), False)], ["a%16 b%16", "-"]),
        ([("a", (16,), True), ("b", (16,), True)], ["a%16 b%16", "a%16", "b%16", "-"]),
        ([("a", (16,), False), ("b", (16, 1), False)], ["a%16 b==1", "b==1", "a%16 b%16", "-"]),
        ([("a", (16, 1), False)], ["a==1", "a%16", "-"]),
        ([("b", (16,), True), ("a", (16,), False)], ["b%16 a%16", "a%16", "b%16", "-"]),
    ],
)
def test_hint_variants(arguments, variants):
    specs = [ArgumentSpec(name, "i32", specialize=divisors, each=each) for name, divisors, each in arguments]
    assert [" ".join(map(str, hints)) or "-" for hints in hint_variants(specs)] == variants


def test_hints_are_the_most_specific_first():
    specs = [ArgumentSpec(name, "i32", specialize=(16, 1), each=True) for name in "ab"]
    assert hint_variants(specs)[0] == (Hint("a", 1), Hint("b", 1))
    assert hint_variants(specs)[-1] == ()
    assert len(hint_variants(specs)) == 9


@pytest.mark.parametrize(
    ("spec", "kernel", "message"),
    [
        (
            SPEC + '[kernel.scale.constants]\nEVEN = "{WIDE}"\n[kernel.scale.target."hip:*"]\nWIDE = [1]\n',
            KERNEL.replace("EVEN", "WIDE: tl.constexpr = 1, EVEN"),
            "kernels/scale.toml:1:9: error: axis `WIDE` has no value on cuda:90",
        ),
        (
            SPEC.replace("BLOCK = [128]\n", "").replace(
                "grid =", "configs = [{ BLOCK = 1 }, { num_warps = 2 }]\ngrid ="
            ),
            KERNEL,
            "kernels/scale.toml:12:15: error: constexpr `BLOCK` of `scale_kernel` has no value",
        ),
        (
            SPEC + '[kernel.scale.constants]\nEVEN = "tl.{BLOCK}"\n',
            KERNEL,
            "kernels/scale.toml:13:10: error: `tl.128` is not a Triton data type",
        ),
    ],
)
def test_values_that_are_missing_in_some_variant(tmp_path, spec, kernel, message):
    make_project(tmp_path, {"kernels/scale.toml": spec, "kernels/scale.py": kernel})
    lines = error_text(tmp_path, targets=("cuda:90",)).splitlines()
    assert lines[0] == message


def test_a_kernel_of_too_many_units_is_counted_and_not_made(tmp_path):
    every = "\n".join(f"{name} = [{', '.join(map(str, range(200)))}]" for name in ("BLOCK", "EVEN", "num_stages"))
    files = {"kernels/scale.toml": SPEC.replace("BLOCK = [128]", every)}
    message = (
        "kernels/scale.toml:11:15: error: kernel `scale` would have 48,000,000 units, more than 10,000: "
        "2 of `dtype` × 200 of `BLOCK` × 200 of `EVEN` × 200 of `num_stages` × 3 targets"
    )
    assert message in error_text(make_project(tmp_path, files)).splitlines()


@pytest.mark.parametrize(("limit", "refused"), [(20, False), (19, True), (0, False)])
def test_the_limit_of_units_is_a_setting(tmp_path, limit, refused):
    sections = '\n[kernel.scale.target."hip:*"]\nBLOCK = [1, 2, 3]\n'
    configs = "configs = [{ EVEN = true, num_warps = 4 }, { EVEN = false, num_warps = 8 }]\n"
    spec = SPEC.replace("\n[kernel.scale.args]", f"{configs}\n[kernel.scale.args]") + sections
    files = {"pyproject.toml": SETTINGS + f"max_units = {limit}\n", "kernels/scale.toml": spec}
    message = "kernel `scale` would have 20 units, more than 19: 2 of `dtype` × 3 of `BLOCK` × 2 configs × 3 targets"
    text = error_text(make_project(tmp_path, files))
    assert message in text if refused else not text


def test_many_arguments_that_are_specialised_each_are_counted_at_once(tmp_path):
    arguments = ", ".join(f"a{number}" for number in range(40))
    types = "\n".join(f'a{number} = {{ type = "i32", specialize = [16, 1], each = true }}' for number in range(40))
    kernel = f"import triton\n\n\n@triton.jit\ndef scale_kernel({arguments}):\n    pass\n"
    spec = f'[kernel.scale]\nsource = "scale.py:scale_kernel"\n\n[kernel.scale.args]\n{types}\n'
    text = error_text(make_project(tmp_path, {"kernels/scale.py": kernel, "kernels/scale.toml": spec}))
    assert f"`specialize` makes {3**40} variants of every combination; at most 8 are allowed" in text


def test_units_share_what_is_equal_in_them(tmp_path):
    spec = SPEC.replace("[128]", "[128, 256, 512]").replace('n = "i32"', 'n = { type = "i32", specialize = [16, 1] }')
    found = units(tmp_path, spec)
    arguments = [argument for unit in found for argument in unit.arguments]
    assert len(found) == 18 and len({id(each) for each in arguments}) == len(set(arguments)) == 12
    assert len({id(unit.reading) for unit in found}) == 1


def test_equal_values_of_other_kinds_stay_what_they_are(tmp_path):
    spec = SPEC.replace('["fp16", "fp32"]', '["fp16"]').replace("[128]", "[128]\nEVEN = [1, true, 1.0]")
    values = [unit.arguments[5].value for unit in units(tmp_path, spec)]
    assert [(type(value), value) for value in values] == [(int, 1), (bool, True), (float, 1.0)]


def test_each_combination_counts_where_the_grid_or_a_requirement_reads_its_value(tmp_path):
    spec = SPEC.replace("[128]", "[64, 128, 256]")
    found = units(tmp_path / "requires", spec.replace("[kernel.scale.args]", 'requires = ["BLOCK != 128"]\n'
                  "[kernel.scale.args]"))  # fmt: skip
    assert {dict(unit.variant.values)["BLOCK"] for unit in found} == {64, 256} and len(found) == 4
    wrong = spec.replace("cdiv(n, BLOCK)", "n // (BLOCK - 128)")
    assert wrong != spec
    text = error_text(make_project(tmp_path / "grid", {"kernels/scale.toml": wrong}))
    assert "so it is in `scale:dtype=fp16,BLOCK=128`" in text and "BLOCK=64" not in text
