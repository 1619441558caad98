"""The numbers of docs/limits.md: what the page says goes, and one more is refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from small_projects import KERNEL, SETTINGS, SPEC, error_text, make_project, plan

from precast.errors import PlanError, PrecastError
from precast.grid import evaluate, parse_grid
from precast.launch.formats import describe_interface
from precast.spec.model import Argument, Variant
from precast.spec.types import parse_type
from precast.target import CUDA_ARCHITECTURES, HIP_ARCHITECTURES, X86_LEVELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/limits.md").read_text()
NUMBERS = {
    words: int(number.replace(",", "")) for number, words in re.findall(r"^\| ([\d,]+) \| ([^|]+) \|$", PAGE, re.M)
}
PLACES = dict(re.findall(r"^\| ([\w' ]+) \| ([^|]+) \|$", PAGE, re.M))


def find_number(begin):
    (found,) = [number for words, number in NUMBERS.items() if words.startswith(begin)]
    return found


def spec_error(folder, spec, kernel=KERNEL):
    return error_text(make_project(folder, {"kernels/scale.toml": spec, "kernels/scale.py": kernel}))


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return plan(make_project(tmp_path_factory.mktemp("project"))).units[0].unit


def with_variant(unit, values):
    return replace(unit, variant=Variant("scale", values))


def interface_error(units):
    try:
        describe_interface("demo", units)
    except PlanError as error:
        return error.message
    return ""


def units_of_a_kernel(folder, unit, number):
    values = ", ".join(map(str, range(number // 4)))
    axes = 'dtype = ["fp16", "fp32"]\nEVEN = [true, false]\n'
    spec = SPEC.replace('dtype = ["fp16", "fp32"]\n', axes).replace("[128]", f"[{values}]")
    spec = spec.replace("grid =", 'only = ["cuda:90"]\ngrid =')
    for_more = spec.replace("[0, 1,", "[0, 1, 65536,")
    wrong = spec.replace("grid =", "gird =")  # told before any unit is made
    return "would have" not in spec_error(folder, wrong), "would have" in spec_error(folder, for_more)


def axes_of_a_kernel(folder, unit, number):
    few, many = (tuple((f"A{place}", 1) for place in range(count)) for count in (number, number + 1))
    return not interface_error([with_variant(unit, few)]), interface_error([with_variant(unit, many)]) != ""


def values_of_an_axis(folder, unit, number):
    units = [with_variant(unit, (("BLOCK", value),)) for value in range(number + 1)]
    return not interface_error(units[:-1]), interface_error(units) != ""


def arguments_of_a_kernel(folder, unit, number):
    def taking(count):
        parts = Argument("parts", f"({', '.join(['i32'] * (count - 1))})")
        return [replace(unit, arguments=(Argument("x", "*fp32"), parts))]

    return not interface_error(taking(number)), interface_error(taking(number + 1)) != ""


def descriptors_of_a_kernel(folder, unit, number):
    """The runtime's number as well: an index with more of them is one that it refuses to open."""
    runtime = (ROOT / "toolchain/precast/launch/runtime/index.h").read_text()
    assert f"#define PRECAST_MAXIMUM_DESCRIPTORS {number}\n" in runtime

    def taking(count):
        return [replace(unit, arguments=tuple(Argument(f"d{place}", "tensordesc<fp16[64]>") for place in range(count)))]

    return not interface_error(taking(number)), interface_error(taking(number + 1)) != ""


def variants_of_specialize(folder, unit, number):
    count = number.bit_length() - 1
    names = [f"n{place}" for place in range(count + 1)]
    kernel = KERNEL.replace("n, stride", f"n, {', '.join(names)}, stride")

    def saying(many):
        each = [f'{name} = {{ type = "i32", specialize = [16], each = true }}' for name in names[:many]]
        return SPEC.replace(
            'n = "i32"\n', "\n".join(['n = "i32"', *each, *(f'{x} = "i32"' for x in names[many:])]) + "\n"
        )

    hints = ", ".join(f'["{name}%16"]' for name in names) + ", " + ", ".join(f'["{name}==1"]' for name in names)
    any_number = saying(0).replace("grid =", f"hints = [{hints}, [], ['n%16'], ['n==1']]\ngrid =")
    fits = not spec_error(folder, saying(count), kernel) and not spec_error(folder, any_number, kernel)
    return fits, f"at most {number} are allowed" in spec_error(folder, saying(count + 1), kernel)


def requirements_of_a_kernel(folder, unit, number):
    few, many = ([f"n != {place}" for place in range(count)] for count in (number, number + 1))
    return tuple(
        bool(spec_error(folder, SPEC.replace("grid =", f"requires = {each}\ngrid ="))) is refused
        for each, refused in ((few, False), (many, True))
    )


def refuses(parse, text):
    try:
        parse(text)
    except PrecastError:
        return True
    return False


def operations_of_an_expression(folder, unit, number):
    def parse(count):
        # A sum of k names has k + (k - 1) steps: of names and operators.
        return refuses(lambda text: parse_grid(text, ("n",)), "+".join(["n"] * count))

    return not parse((number + 1) // 2), parse((number + 1) // 2 + 1)


def pointers_in_a_type(folder, unit, number):
    return not refuses(parse_type, "*" * number + "i32"), refuses(parse_type, "*" * (number + 1) + "i32")


def characters_of_a_name(folder, unit, number):
    def naming(count):
        return spec_error(folder, SPEC.replace("[kernel.scale", f"[kernel.{'k' * count}"))

    return not naming(number), "at most" in naming(number + 1)


def characters_of_a_version(folder, unit, number):
    def saying(count):
        settings = SETTINGS.replace("1.0", "1" * count)
        return error_text(make_project(folder, {"pyproject.toml": settings}))

    return not saying(number), "at most" in saying(number + 1)


def bits_of_equal(folder, unit, number):
    def saying(value):
        return spec_error(folder, SPEC.replace('stride = "i64"', f'stride = {{ type = "i64", equal = {value} }}'))

    least, most = -(2 ** (number - 1)), 2 ** (number - 1) - 1
    return not saying(least) and not saying(most), "fit" in saying(most + 1) and "fit" in saying(least - 1)


def bits_of_a_grid(folder, unit, number):
    most = 2 ** (number - 1) - 1
    more = parse_grid("n + 1", ("n",))
    return evaluate(more, {"n": most - 1}) == most, refuses(lambda n: evaluate(more, {"n": n}), most)


def threads_of_cpu_launches(folder, unit, number):
    """What `set_threads` takes, tests of launches show; here, that the page has the runtime's number."""
    runtime = (ROOT / "toolchain/precast/launch/runtime/pool.h").read_text()
    return (f"PRECAST_MOST_THREADS = {number} " in runtime,) * 2


CASES = {
    "units of a kernel": units_of_a_kernel,
    "axes of a kernel": axes_of_a_kernel,
    "values of an axis": values_of_an_axis,
    "arguments of a kernel": arguments_of_a_kernel,
    "tensor descriptors of a kernel": descriptors_of_a_kernel,
    "variants that `specialize`": variants_of_specialize,
    "requirements of a kernel": requirements_of_a_kernel,
    "names and operators of an expression": operations_of_an_expression,
    "pointers and tuples in a type": pointers_in_a_type,
    "characters of a kernel's name": characters_of_a_name,
    "characters of a version": characters_of_a_version,
    "bits, with a sign, of what `equal` says": bits_of_equal,
    "bits of what a grid is computed with": bits_of_a_grid,
    "threads of CPU launches": threads_of_cpu_launches,
}


def test_every_number_has_a_test():
    assert len(NUMBERS) == len(CASES) and all(find_number(begin) for begin in CASES)


@pytest.mark.parametrize("begin", CASES)
def test_the_number_goes_and_one_more_is_refused(tmp_path, unit, begin):
    assert CASES[begin](tmp_path, unit, find_number(begin)) == (True, True)


def test_where_it_runs():
    settings = (ROOT / "pyproject.toml").read_text()
    python = re.search(r'requires-python = ">=([\d.]+)"', settings)[1]
    triton = re.search(r"triton==(\d+\.\d+)", settings)[1]
    assert f"Python {python} or newer, Triton {triton}, a C compiler" in PLACES["building"]
    assert f"sm_{CUDA_ARCHITECTURES[0]} to sm_{CUDA_ARCHITECTURES[-1]} are built" in PLACES["NVIDIA"]
    assert f"{HIP_ARCHITECTURES[0]} to {HIP_ARCHITECTURES[-1]} are built" in PLACES["AMD"]
    words = ", ".join([X86_LEVELS[0], *(each.removeprefix("x86-64-") for each in X86_LEVELS[1:-1])])
    assert PLACES["CPU"].startswith(f"{words} and {X86_LEVELS[-1].removeprefix('x86-64-')}, aarch64;")
