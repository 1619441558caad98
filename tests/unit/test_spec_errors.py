"""Bad specs: the exact text of each error, with its place, line, caret and hint."""

import pytest
from small_projects import KERNEL, SETTINGS, SPEC, error_text, make_project

GLUON = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale_kernel(x, out, n, stride, BLOCK: gl.constexpr):
    pass
"""

# (what is replaced in SPEC, by what, the whole message)
CASES = {
    "unknown key": (
        'grid = ["cdiv',
        'girds = 1\ngrid = ["cdiv',
        """\
kernels/scale.toml:3:1: error: unknown key `girds`
    girds = 1
    ^~~~~
hint: did you mean `grid`?""",
    ),
    "unknown table": (
        "[kernel.scale]\n",
        "[kernels.a]\n[kernel.scale]\n",
        """\
kernels/scale.toml:1:2: error: unknown table `kernels`
    [kernels.a]
     ^~~~~~~
hint: did you mean `kernel`?""",
    ),
    "unknown argument": (
        'stride = "i64"',
        'stride = "i64"\nstrid = "i64"',
        """\
kernels/scale.toml:10:1: error: `scale_kernel` has no argument `strid`
    strid = "i64"
    ^~~~~
hint: did you mean `stride`?""",
    ),
    "missing argument": (
        'stride = "i64"\n',
        "",
        """\
kernels/scale.toml:5:15: error: argument `stride` of `scale_kernel` has no type
    [kernel.scale.args]
                  ^~~~
hint: write `stride = "i32"`, or its type, in [kernel.scale.args]""",
    ),
    "constexpr as argument": (
        'stride = "i64"',
        'stride = "i64"\nBLOCK = "i32"',
        """\
kernels/scale.toml:10:1: error: `BLOCK` is a constexpr: it has a value and no type
    BLOCK = "i32"
    ^~~~~
hint: give its values in [kernel.scale.matrix], or one in [kernel.scale.constants]""",
    ),
    "unknown type": (
        'n = "i32"',
        'n = "int32"',
        """\
kernels/scale.toml:8:6: error: unknown type `int32`
    n = "int32"
         ^
hint: did you mean `i32`?""",
    ),
    "unknown type from an axis": (
        '"fp16", "fp32"',
        '"fp16", "half"',
        """\
kernels/scale.toml:12:18: error: unknown type `*half`
    dtype = ["fp16", "half"]
                     ^~~~~~
hint: types are i1, i8, i16, i32, i64, u1, u8, u16, u32, u64, fp16, bf16, fp32, fp64, fp8e4nv, fp8e5, fp8e4b8, \
fp8e5b16, fp8e4b15, `*T`, `tensordesc<T[128,64]>`, `(T, T)`""",
    ),
    "unknown axis": (
        '"*{dtype}"',
        '"*{dtyp}"',
        """\
kernels/scale.toml:6:14: error: there is no axis `dtyp`
    x = { type = "*{dtyp}", align = 16 }
                 ^~~~~~~~~
hint: did you mean `dtype`?""",
    ),
    "wrong kind of value": (
        "align = 16",
        'align = "16"',
        """\
kernels/scale.toml:6:34: error: `align` must be an integer, not a string
    x = { type = "*{dtype}", align = "16" }
                                     ^~~~""",
    ),
    "align no power of two": (
        "align = 16",
        "align = 12",
        """\
kernels/scale.toml:6:34: error: `align` must be a power of two, not 12
    x = { type = "*{dtype}", align = 12 }
                                     ^~""",
    ),
    "range32 of a number": (
        'n = "i32"',
        'n = { type = "i32", range32 = true }',
        """\
kernels/scale.toml:8:21: error: `range32` is for pointers, not for `i32`
    n = { type = "i32", range32 = true }
                        ^~~~~~~""",
    ),
    "specialise a float": (
        'n = "i32"',
        'n = { type = "fp32", specialize = [16] }',
        """\
kernels/scale.toml:8:35: error: an argument of type `fp32` cannot be specialised
    n = { type = "fp32", specialize = [16] }
                                      ^~~~
hint: only integers and pointers can""",
    ),
    "specialise to 8": (
        'n = "i32"',
        'n = { type = "i32", specialize = [8] }',
        """\
kernels/scale.toml:8:35: error: an argument is specialised to 16 (divisible by 16) or 1 (equal to 1), not 8
    n = { type = "i32", specialize = [8] }
                                      ^""",
    ),
    "unknown name in the grid": (
        "cdiv(n, BLOCK)",
        "cdiv(n, BLOK)",
        """\
kernels/scale.toml:3:18: error: unknown name `BLOK` in a grid expression
    grid = ["cdiv(n, BLOK)", "1", "1"]
                     ^~~~
hint: did you mean `BLOCK`?""",
    ),
    "pointer in the grid": (
        "cdiv(n, BLOCK)",
        "cdiv(x, BLOCK)",
        """\
kernels/scale.toml:3:9: error: `x` is no integer: a grid is computed from integers
    grid = ["cdiv(x, BLOCK)", "1", "1"]
            ^~~~~~~~~~~~~~~~""",
    ),
    "type axis in the grid": (
        "cdiv(n, BLOCK)",
        "dtype",
        """\
kernels/scale.toml:3:9: error: `dtype` is no integer: a grid is computed from integers
    grid = ["dtype", "1", "1"]
            ^~~~~~~""",
    ),
    "bad grid": (
        "cdiv(n, BLOCK)",
        "n / BLOCK",
        """\
kernels/scale.toml:3:12: error: unexpected `/` in a grid expression
    grid = ["n / BLOCK", "1", "1"]
               ^
hint: a grid has integers, names, `+ - * // %`, parentheses, `min`, `max` and `cdiv`""",
    ),
    "grid of four": (
        '"1", "1"]',
        '"1", "1", "1"]',
        """\
kernels/scale.toml:3:8: error: a grid has one to three dimensions, not 4
    grid = ["cdiv(n, BLOCK)", "1", "1", "1"]
           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~""",
    ),
    "constexpr without a value": (
        "BLOCK = [128]\n",
        "",
        """\
kernels/scale.toml:11:15: error: constexpr `BLOCK` of `scale_kernel` has no value
    [kernel.scale.matrix]
                  ^~~~~~
hint: write `BLOCK = [128]`, or its values, in [kernel.scale.matrix]""",
    ),
    "axis that nothing uses": (
        "BLOCK = [128]",
        "BLOCK = [128]\nBLOC = [64]",
        """\
kernels/scale.toml:14:1: error: axis `BLOC` is no constexpr of `scale_kernel`, and nothing uses it
    BLOC = [64]
    ^~~~
hint: did you mean `BLOCK`?""",
    ),
    "axis value twice": (
        "BLOCK = [128]",
        "BLOCK = [128, 128]",
        """\
kernels/scale.toml:13:15: error: axis `BLOCK` has the value 128 twice
    BLOCK = [128, 128]
                  ^~~""",
    ),
    "exclude of no axis": (
        "BLOCK = [128]",
        "BLOCK = [128]\nexclude = [{ dtyp = 'fp16' }]",
        """\
kernels/scale.toml:14:14: error: unknown axis `dtyp`
    exclude = [{ dtyp = 'fp16' }]
                 ^~~~
hint: did you mean `dtype`?""",
    ),
    "everything excluded": (
        "BLOCK = [128]",
        "BLOCK = [128]\nexclude = [{ BLOCK = 128 }]",
        """\
kernels/scale.toml:1:9: error: `exclude` leaves no variant of kernel `scale`
    [kernel.scale]
            ^~~~~""",
    ),
    "unknown constant": (
        "[kernel.scale.matrix]",
        "[kernel.scale.constants]\nEVE = true\n[kernel.scale.matrix]",
        """\
kernels/scale.toml:12:1: error: unknown constexpr `EVE`
    EVE = true
    ^~~
hint: did you mean `EVEN`?""",
    ),
    "unknown data type constant": (
        "BLOCK = [128]",
        'BLOCK = [128]\n[kernel.scale.constants]\nEVEN = "tl.floot16"',
        """\
kernels/scale.toml:15:8: error: `tl.floot16` is not a Triton data type
    EVEN = "tl.floot16"
           ^~~~~~~~~~~~
hint: known types: `bf16`, `fp16`, `fp32`, `fp64`, `fp8e4b15`, `fp8e4b8`, `fp8e4nv`, `fp8e5`, `fp8e5b16`, `i1`, \
`i16`, `i32`, …""",
    ),
    "unknown option": (
        "[kernel.scale.matrix]",
        "[kernel.scale.options]\nnum_warp = 4\n[kernel.scale.matrix]",
        """\
kernels/scale.toml:12:1: error: unknown option `num_warp`
    num_warp = 4
    ^~~~~~~~
hint: did you mean `num_warps`?""",
    ),
    "option with several values": (
        "[kernel.scale.matrix]",
        "[kernel.scale.options]\nnum_warps = [4, 8]\n[kernel.scale.matrix]",
        """\
kernels/scale.toml:12:13: error: option `num_warps` has one value
    num_warps = [4, 8]
                ^~~~~~
hint: write several in `matrix`, where they are an axis""",
    ),
    "option out of range": (
        "[kernel.scale.matrix]",
        "[kernel.scale.options]\nnum_warps = 3\n[kernel.scale.matrix]",
        """\
kernels/scale.toml:12:13: error: option `num_warps` = 3 must be a power of two
    num_warps = 3
                ^""",
    ),
    "option that a target cannot have": (
        "[kernel.scale.matrix]",
        "[kernel.scale.options]\nnum_ctas = 2\n[kernel.scale.matrix]",
        """\
kernels/scale.toml:12:12: error: option `num_ctas` = 2 needs sm_90 or later: cuda:80 cannot have it
    num_ctas = 2
               ^

kernels/scale.toml:12:12: error: option `num_ctas` = 2 needs gfx1250: no other AMD target has clusters: hip:gfx942 \
cannot have it
    num_ctas = 2
               ^""",
    ),
    "option of another back end": (
        "[kernel.scale.matrix]",
        '[kernel.scale.target."hip:*"]\nmaxnreg = 64\n[kernel.scale.matrix]',
        """\
kernels/scale.toml:12:1: error: hip targets have no option `maxnreg`
    maxnreg = 64
    ^~~~~~~
hint: known names: `BLOCK`, `EVEN`, `allow_flush_denorm`, `debug`, `default_dot_input_precision`, `dtype`, \
`enable_fp_fusion`, `fpsan_homomorphic_casts`, `instrumentation_mode`, `kpack`, `launch_cooperative_grid`, \
`llvm_fn_attrs`, …""",
    ),
    "target that matches nothing": (
        "[kernel.scale.matrix]",
        '[kernel.scale.target."cdua:*"]\nnum_warps = 8\n[kernel.scale.matrix]',
        """\
kernels/scale.toml:11:22: error: target `cdua:*` matches nothing
    [kernel.scale.target."cdua:*"]
                         ^~~~~~~~
hint: did you mean `cuda:*`?""",
    ),
    "only that matches nothing": (
        'grid = ["cdiv',
        'only = ["cuda:101"]\ngrid = ["cdiv',
        """\
kernels/scale.toml:3:9: error: target `cuda:101` matches nothing
    only = ["cuda:101"]
            ^~~~~~~~~~
hint: did you mean `cuda:121`?""",
    ),
    "8-bit float that a target has not": (
        '"fp16", "fp32"',
        '"fp16", "fp8e4nv"',
        """\
kernels/scale.toml:12:18: error: cuda:80 has no type `fp8e4nv`, which argument `x` needs
    dtype = ["fp16", "fp8e4nv"]
                     ^~~~~~~~~
hint: it has fp8e4b15, fp8e5; say others in [kernel.scale.target."cuda:80"]""",
    ),
    "source in a wrong form": (
        "scale.py:scale_kernel",
        "scale.py",
        """\
kernels/scale.toml:2:10: error: `scale.py` does not name a kernel's source
    source = "scale.py"
             ^~~~~~~~~~
hint: write it as `file.py:function` or `package.module:function`""",
    ),
    "source file that is not there": (
        "scale.py:scale_kernel",
        "scal.py:scale_kernel",
        """\
kernels/scale.toml:2:10: error: there is no file `kernels/scal.py`
    source = "scal.py:scale_kernel"
             ^~~~~~~~~~~~~~~~~~~~~~
hint: the path is relative to the spec's folder""",
    ),
    "module that is not there": (
        "scale.py:scale_kernel",
        "stack.scale:scale_kernel",
        """\
kernels/scale.toml:2:10: error: module `stack.scale` is not found
    source = "stack.scale:scale_kernel"
             ^~~~~~~~~~~~~~~~~~~~~~~~~~
hint: `pythonpath` of [tool.precast] is `.`""",
    ),
    "function that is not there": (
        "scale.py:scale_kernel",
        "scale.py:scale_kernl",
        """\
kernels/scale.toml:2:10: error: `kernels/scale.py` has no function `scale_kernl`
    source = "scale.py:scale_kernl"
             ^~~~~~~~~~~~~~~~~~~~~~
hint: did you mean `scale_kernel`?""",
    ),
    "no source": (
        'source = "scale.py:scale_kernel"\n',
        "",
        """\
kernels/scale.toml:1:9: error: kernel `scale` has no source
    [kernel.scale]
            ^~~~~
hint: write `source = "file.py:function"`""",
    ),
    "not TOML": (
        "[kernel.scale]\n",
        "[kernel.scale]\nx = = 1\n",
        """\
kernels/scale.toml:2:5: error: not valid TOML: invalid value
    x = = 1
        ^""",
    ),
    "configs without autotune": (
        'grid = ["cdiv',
        'configs = "source"\ngrid = ["cdiv',
        """\
kernels/scale.toml:3:11: error: the source has no @triton.autotune
    configs = "source"
              ^~~~~~~~""",
    ),
    "config of an axis": (
        'grid = ["cdiv',
        'configs = [{ BLOCK = 128, num_warps = 4 }]\ngrid = ["cdiv',
        """\
kernels/scale.toml:3:1: error: `BLOCK` is in `configs` and in `matrix`
    configs = [{ BLOCK = 128, num_warps = 4 }]
    ^~~~~~~
hint: leave it in one of them""",
    ),
    "config with an unknown name": (
        'grid = ["cdiv',
        'configs = [{ num_warp = 4 }]\ngrid = ["cdiv',
        """\
kernels/scale.toml:3:14: error: unknown constexpr or option `num_warp`
    configs = [{ num_warp = 4 }]
                 ^~~~~~~~
hint: did you mean `num_warps`?""",
    ),
    "kernel name": (
        "[kernel.scale]\n",
        "[kernel.my-kernel]\n",
        """\
kernels/scale.toml:1:9: error: `my-kernel` cannot be a kernel's name
    [kernel.my-kernel]
            ^~~~~~~~~
hint: it becomes a C function's: letters, digits and single underscores

kernels/scale.toml:5:9: error: kernel `scale` has no source
    [kernel.scale.args]
            ^~~~~
hint: write `source = "file.py:function"`""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_spec(name, tmp_path):
    old, new, message = CASES[name]
    assert SPEC.count(old) >= 1
    count = -1 if name == "unknown axis" else 1
    make_project(tmp_path, {"kernels/scale.toml": SPEC.replace(old, new, count)})
    text = error_text(tmp_path)
    assert text.split("\n\n")[0] == message if name == "unknown axis" else text == message


def test_gluon_has_no_cpu(tmp_path):
    settings = SETTINGS.replace('"hip:gfx942"', '"cpu:x86-64-v3"')
    make_project(tmp_path, {"pyproject.toml": settings, "kernels/scale.py": GLUON})
    assert (
        error_text(tmp_path)
        == """\
kernels/scale.toml:2:10: error: `scale_kernel` is a Gluon kernel: it cannot be built for cpu:x86-64-v3
    source = "scale.py:scale_kernel"
             ^~~~~~~~~~~~~~~~~~~~~~~
hint: write `only = ["cuda:*"]` in [kernel.scale]"""
    )


def test_too_many_hint_variants(tmp_path):
    spec = SPEC.replace('n = "i32"', 'n = { type = "i32", specialize = [16, 1], each = true }')
    spec = spec.replace('stride = "i64"', 'stride = { type = "i64", specialize = [16, 1], each = true }')
    make_project(tmp_path, {"kernels/scale.toml": spec})
    assert (
        error_text(tmp_path)
        == """\
kernels/scale.toml:8:15: error: `specialize` makes 9 variants of every combination; at most 8 are allowed
    n = { type = "i32", specialize = [16, 1], each = true }
                  ^
hint: leave out `each`, so that arguments hold together, specialise fewer, or write the sets of `hints`"""
    )


def test_source_that_is_no_kernel(tmp_path):
    make_project(tmp_path, {"kernels/scale.py": KERNEL.replace("@triton.jit\n", "")})
    assert (
        error_text(tmp_path)
        == """\
kernels/scale.py:5:1: error: `scale_kernel` is not a kernel: no @triton.jit decorates it
    def scale_kernel(x, out, n, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    ^"""
    )


def test_source_that_is_not_python(tmp_path):
    make_project(tmp_path, {"kernels/scale.py": "import triton\n\ndef scale_kernel(:\n"})
    text = error_text(tmp_path)
    assert text.startswith("kernels/scale.py:3:18: error: not valid Python: ")
    assert text.endswith("    def scale_kernel(:\n                     ^")


def test_defaults_and_heuristics_are_explained(tmp_path):
    kernel = KERNEL.replace("EVEN: tl.constexpr = False", "EVEN: tl.constexpr, WIDTH: tl.constexpr = pick()")
    kernel = kernel.replace("@triton.jit", '@triton.heuristics({"EVEN": lambda arguments: True})\n@triton.jit')
    make_project(tmp_path, {"kernels/scale.py": kernel})
    place = "kernels/scale.toml:11:15: error:"
    message = f"{place} constexpr `EVEN` of `scale_kernel` has no value: its heuristic runs on the host"
    assert error_text(tmp_path).splitlines()[0] == message
    kernel = kernel.replace("import triton\n", "import triton\n\npick = list\n")
    make_project(tmp_path, {"kernels/scale.py": kernel, "kernels/scale.toml": SPEC + "EVEN = [true]\n"})
    message = "constexpr `WIDTH` of `scale_kernel` has no value: its default `pick()` is a value of type list"
    assert error_text(tmp_path).splitlines()[0] == f"{place} {message}"


def test_one_kernel_s_errors_do_not_hide_another_s(tmp_path):
    other = SPEC.replace("kernel.scale", "kernel.other").replace('n = "i32"', 'n = "i33"')
    make_project(tmp_path, {"kernels/a.toml": SPEC.replace("align = 16", "align = 3", 1), "kernels/scale.toml": other})
    places = [line.partition(" error")[0] for line in error_text(tmp_path).splitlines() if " error: " in line]
    assert places == ["kernels/a.toml:6:34:", "kernels/scale.toml:8:6:"]


def test_kernel_that_is_there_twice(tmp_path):
    make_project(tmp_path, {"kernels/a.toml": SPEC})
    assert (
        error_text(tmp_path).replace(str(tmp_path), "")
        == """\
kernels/scale.toml:1:9: error: kernel `scale` is there twice
    [kernel.scale]
            ^~~~~
hint: the other stands at kernels/a.toml:1:9"""
    )


def test_kernel_names_that_a_release_needs(tmp_path):
    grid = SPEC.replace("kernel.scale", "kernel.scale_grid")
    make_project(tmp_path, {"kernels/a.toml": SPEC.replace("kernel.scale", "kernel.open"), "kernels/grid.toml": grid})
    assert (
        error_text(tmp_path)
        == """\
kernels/a.toml:1:9: error: `open` cannot be a kernel's name
    [kernel.open]
            ^~~~
hint: every release has a function `open` of its own

kernels/grid.toml:1:9: error: `scale_grid` cannot be a kernel's name beside `scale`
    [kernel.scale_grid]
            ^~~~~~~~~~
hint: `scale_grid` is already what a release calls a part of kernel `scale`"""
    )
