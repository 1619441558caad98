"""Every kernel of `kernels/`, in every variant without hints, through the CPU engine: also those the CPU is not a
target of yet. References and tolerances are those of `kernel_cases`."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cpu_harness import Compiled, make_ttir
from kernel_cases import CASES
from kernel_cases.case import Array, Descriptor, Scalar

from precast.artifact import Parameter
from precast.engines import cpu
from precast.engines.parameters import parse_type
from precast.engines.triton.constants import make_constants
from precast.grid import evaluate, parse_grid
from precast.plan import plan_project
from precast.project import read_project

ROOT = Path(__file__).parents[2]


def units():
    """Units of a target that has every kernel.

    Not Gluon's, which has no CPU target, and none whose programs wait for one another: here one runs after the other.
    """
    planned = plan_project(read_project(ROOT), targets=("cuda:90",)).units
    chosen = [each.unit for each in planned if not each.unit.source.gluon and each.unit.kernel in CASES]
    chosen = [unit for unit in chosen if not dict(unit.options).get("launch_cooperative_grid")]
    return {str(unit.variant): unit for unit in chosen if not any(hint.divisor for hint in unit.variant.hints)}


UNITS = units()


def run_time_arguments(unit):
    return [each for each in unit.arguments if each.type != "constexpr" and not each.constant]


def ttir_of(unit):
    sys.path.insert(0, str(ROOT / "kernels"))
    module = importlib.import_module(Path(unit.source.file).stem)
    types = {each.name: parse_type(each.type) for each in run_time_arguments(unit)}
    function = getattr(module, unit.source.function)
    return make_ttir(function, types, make_constants(unit, function))


def flatten(kind, value):
    """An argument's slots: tuples part by part, a descriptor as the front end expands it for sm_80."""
    if isinstance(kind, tuple):
        for part, item in zip(kind, value, strict=True):
            yield from flatten(part, item)
    elif isinstance(value, Descriptor):
        shape, strides = value.array.shape, value.array.strides
        yield "*i8", value.array.data
        yield from (("i64", each) for each in (*shape, *strides))
        yield from (("i1", 0), ("i1", 0))  # neither NaN padding nor rounding to tf32
        yield from (("i32", each) for each in shape)
        yield from (("i64", each) for each in strides)
    elif isinstance(value, Array):
        yield kind, value.data
    elif isinstance(value, Scalar):
        yield kind, value.value
    else:
        yield kind, 0 if value is None else value


@pytest.mark.all
@pytest.mark.parametrize("name", UNITS)
def test_kernel(name):
    unit = UNITS[name]
    case, values = CASES[unit.kernel], dict(unit.variant.values)
    ttir, compiled = ttir_of(unit), None
    for shape in case.shapes:
        problem = case.problem(values, shape)
        slots = [
            slot
            for each in run_time_arguments(unit)
            for slot in flatten(parse_type(each.type), problem.arguments[each.name])
        ]
        compiled = compiled or Compiled(ttir, [kind for kind, _ in slots])
        known = {**values, **{key: value for key, value in problem.arguments.items() if isinstance(value, int)}}
        grid = [evaluate(parse_grid(text, tuple(known), None), known) for text in unit.grid]
        assert compiled(grid, *[value for _, value in slots]) == 0
        assert all(error.share <= 1 for error in problem.errors()), (shape, problem.errors())


COMPILE = """
import sys
from precast.engines import cpu
text = sys.stdin.read()
loops = cpu.lower_ttir(text, "x86-64-v3")
sys.stdout.buffer.write(cpu.emit_object(cpu.lower_loops(loops, "x86-64-v3"), "x86-64-v3", "entry"))
"""


@pytest.mark.parametrize("kernel", ["attention", pytest.param("matmul", marks=pytest.mark.all)])
def test_same_text_gives_same_object_whatever_the_hash_seed(kernel):
    text = ttir_of(next(unit for unit in UNITS.values() if unit.kernel == kernel))
    objects = [
        subprocess.run(
            [sys.executable, "-c", COMPILE], input=text.encode(), capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert objects[0] == objects[1]
    assert objects[0][:4] == b"\x7fELF"


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_an_object_needs_nothing_but_libc_and_libm(level, tmp_path):
    for kernel in ("softmax", "rotary"):
        unit = next(unit for name, unit in UNITS.items() if unit.kernel == kernel and "fp16" in name)
        compiled = Compiled(ttir_of(unit), [kind for _, kind in ()], level)
        path = tmp_path / "unit.o"
        path.write_bytes(compiled.image)
        wanted = subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True).stdout.split()[1::2]
        assert set(wanted) <= {"memcpy", "memset", "memmove", "sinf", "cosf"}
        defined = subprocess.run(["nm", "-g", "--defined-only", path], capture_output=True, text=True, check=True)
        assert [line.split()[-1] for line in defined.stdout.splitlines()] == ["entry"]


def test_facts_of_a_unit():
    text = ttir_of(next(unit for unit in UNITS.values() if unit.kernel == "softmax"))
    loops = cpu.lower_ttir(text, "x86-64-v3")
    image = cpu.emit_object(cpu.lower_loops(loops, "x86-64-v3"), "x86-64-v3", "softmax_0123456789ab")
    parameters = (Parameter("argument", "out", "*fp32"), Parameter("argument", "x", "*fp32"))
    facts = cpu.read_facts(loops, parameters, image, "softmax_0123456789ab", (0, 1))
    assert [each.written for each in facts.parameters] == [True, False]
    assert facts.symbol == "softmax_0123456789ab"
    assert b"softmax_0123456789ab\x00" in image
    assert facts.thread_scratch_bytes % 64 == 0
    assert 500 < facts.code_bytes < len(image)
