"""The engines' small text functions: types, locations, ptxas's words, environments. No Triton."""

from pathlib import Path

import pytest

from precast.artifact import Parameter, TensorDescriptor
from precast.engines.parameters import list_places, parse_type, split_types
from precast.engines.triton.assembler import AssemblerError, find_error, find_source_line, parse_log
from precast.engines.triton.capture import first_error
from precast.engines.triton.environment import worker_environment
from precast.engines.triton.locations import remap_locations
from precast.job import CompileSettings

PTXAS_LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    24 bytes stack frame, 48 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 24 bytes cumulative stack size
"""
PTX = """.visible .entry k(
    .loc    1 6 0
    ld.param.b64 %rd1, [k_param_0];
    .loc    2 9 13   // other.py:9:13
    nonsense %r1;
}
    .file 1 "/place/one.py"
    .file 2 "/place" "other.py"
"""


def test_types_split_at_outer_commas():
    assert split_types("i32, tensordesc<fp16[64,128]>, (i32, *fp32)") == [
        "i32", "tensordesc<fp16[64,128]>", "(i32, *fp32)",
    ]  # fmt: skip
    assert parse_type("(i32, (*fp16, i64),)") == ("i32", ("*fp16", "i64"))
    assert parse_type(" *fp16") == "*fp16"


def test_locations_are_portable():
    project, site = Path("/home/me/p"), "/opt/venv/lib/python3.12/site-packages"
    text = (
        f'#loc1 = loc("/home/me/p/kernels/a.py":3:4)\n#loc2 = loc("{site}/triton/language/standard.py":5:1)\n'
        '#loc3 = loc("/elsewhere/lib/b.py":7:7)\n#loc4 = loc("/odd/c.py":1:1)\n#loc5 = loc("x"(#loc1))\n'
    )
    assert remap_locations(text, project, [Path("/elsewhere/lib")]) == (
        '#loc1 = loc("precast:/kernels/a.py":3:4)\n#loc2 = loc("precast:/triton/language/standard.py":5:1)\n'
        '#loc3 = loc("precast:/b.py":7:7)\n#loc4 = loc("precast:/c.py":1:1)\n#loc5 = loc("x"(#loc1))\n'
    )


def test_an_environment_inside_the_project_is_not_the_projects():
    text = 'loc("/p/.venv/lib/python3.12/site-packages/triton/language/core.py":1:2)'
    assert remap_locations(text, Path("/p"), []) == 'loc("precast:/triton/language/core.py":1:2)'


def test_registers_and_spills_are_read_from_the_log():
    assert parse_log(PTXAS_LOG) == {"registers": 168, "spill_bytes": 48}
    assert parse_log("") == {}


def test_the_assemblers_error_leads_to_the_source():
    said = "`ptxas` stderr:\nptxas /tmp/x.ptx, line 5; error   : Not a name of any known instruction: 'nonsense'\n"
    assert find_error(said) == AssemblerError("ptxas: Not a name of any known instruction: 'nonsense'", 5)
    assert find_source_line(PTX, 5) == ("/place/other.py", 9, 13)
    assert find_source_line(PTX, 3) == ("/place/one.py", 6, 0)
    assert find_source_line(PTX, 1) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.py:1:2: warning: no\na.py:3:4: error: first\nb.py:1:1: error: second\n", "first"),
        ("LLVM ERROR: Cannot select: x\n", "LLVM ERROR: Cannot select: x"),
        ("all is well\n", ""),
    ],
)
def test_the_first_native_error_is_found(text, message):
    assert first_error(text) == message


def test_a_worker_hears_the_project_and_not_the_shell():
    shell = {"PATH": "/bin", "TRITON_F32_DEFAULT": "ieee", "PYTHONPATH": "/mine", "HOME": "/home/me"}
    settings = CompileSettings(environment=(("AMDGCN_USE_BUFFER_OPS", "0"),), ptxas="/opt/ptxas")
    environment = worker_environment(settings, shell, "/scratch")
    assert environment["PATH"] == "/bin" and environment["HOME"] == environment["TMPDIR"] == "/scratch"
    assert "TRITON_F32_DEFAULT" not in environment and "PYTHONPATH" not in environment
    assert environment["AMDGCN_USE_BUFFER_OPS"] == "0"
    assert environment["TRITON_PTXAS_PATH"] == environment["TRITON_PTXAS_BLACKWELL_PATH"] == "/opt/ptxas"
    assert environment["TRITON_DISABLE_LINE_INFO"] == "1"
    assert worker_environment(CompileSettings(line_info=True), {}, "/s")["TRITON_DISABLE_LINE_INFO"] == "0"


def test_places_of_parameters():
    """A descriptor of rank 2 is expanded to base, two shapes and strides, two flags, and shapes and strides again."""
    parameters = [Parameter("argument", "n", "i32"), Parameter("descriptor", "x", "tensordesc<fp16[8,8]>"),
                  Parameter("argument", "out", "*fp16"), Parameter("buffer", "count", "*i32")]  # fmt: skip
    descriptors = {"x": TensorDescriptor("x", False, (8, 8))}
    assert list_places(parameters, descriptors) == [0, 1, 12, 13]
