"""Names of kernels, arguments, axes and projects: refused where they cannot be, and what is taken compiles and imports.

The lists are held against what the generated header and package really define.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launch_release import TestUnit, build_release, make_unit, run
from test_formats import unit_of

from precast.errors import PlanError
from precast.launch.context import describe_library
from precast.launch.formats import describe_interface
from precast.launch.names import find_name_faults
from precast.launch.sources import render_library
from precast.spec.model import Argument, Unit
from precast.spec.names import LIBRARY_FUNCTIONS, PACKAGE_NAMES, STUB_NAMES, argument_fault, kernel_fault
from precast.spec.reserved import c_name, is_symbol_taken, project_fault


def files_of(*units: Unit, name: str = "lib") -> dict[str, str]:
    return {file.path: file.text for file in render_library(describe_interface(name, units))}


def write_files(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_the_package_defines_what_the_list_says():
    arguments = [Argument("a", "i1"), Argument("b", "fp32"), Argument("pair", "(i32, i32)")]
    files = files_of(unit_of("mine", [("RATE", 0.5)], arguments))
    defined: set[str] = set()
    for path in ("python/lib/__init__.py", "python/lib/__init__.pyi"):
        for node in ast.parse(files[path]).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                defined |= {target.id for target in targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.ImportFrom | ast.Import):
                defined |= {alias.asname or alias.name for alias in node.names}
    public = {name for name in defined if not name.startswith("_")} - {"mine"}
    stub = ast.walk(ast.parse(files["python/lib/__init__.pyi"]))
    used = {node.id for node in stub if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used = {name for name in used if not name.startswith("_")} - {"mine"}
    assert [name for name in public | used if not kernel_fault(name)] == []
    assert {name for name in {*LIBRARY_FUNCTIONS, *PACKAGE_NAMES} & public} == {
        "check_signature", "preload", "query", "release", "selfcheck", "serve", "set_allocator", "set_buffer_reader",
        "set_threads", "unload", "LaunchError", "MissingVariant", "register_torch_ops",
    }  # fmt: skip
    assert public | used >= STUB_NAMES | PACKAGE_NAMES


def test_every_library_function_is_in_the_header():
    header = files_of(unit_of("k"))["include/lib.h"]
    own = set(re.findall(r"\blib_(\w+)\(", header)) - {"k", "k_grid"}
    assert own == set(LIBRARY_FUNCTIONS)


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu11"])
def test_what_the_header_brings_is_no_symbol_of_ours(tmp_path: Path, standard: str):
    write_files(tmp_path, files_of(unit_of("k")))
    command = ["cc", f"-std={standard}", "-E", f"-I{tmp_path}/include", f"{tmp_path}/include/lib.h"]
    macros = re.findall(r"^#define (\w+)(?:\s|$)", run([*command, "-dM"]), re.M)
    types = re.findall(r"\b(\w+_t)\b", run([*command, "-P"]))
    own = [name for name in macros if name.startswith("PRECAST_")]
    header_s = {"LIB_LAUNCHERS_H", "LIB_VERSION"}
    others = {*macros, *types} - {*own, *header_s}
    assert own and {"NULL", "INT64_MIN", "int64_t", "size_t"} <= others
    assert [name for name in others if not is_symbol_taken(name)] == []
    assert [name for name in {*macros, *types} if name not in header_s and c_name(name) == name] == []
    declared = re.findall(r"\b(precast_\w+)\b", run([*command, "-P"]))
    assert [name for name in declared if c_name(name) == name] == []


SPECIAL = ("int", "default", "register", "template", "xor", "bool", "true", "NULL", "EOF", "errno", "stdin", "unix",
           "linux", "isnan", "int32_t", "size_t", "PRECAST_CPU", "precast_grid", "I", "NAN", "release", "axes", "grid",
           "slots", "values", "nullptr", "thread_local", "_Bool", "__x", "α")  # fmt: skip


def test_arguments_and_axes_of_any_name_compile_and_import(tmp_path: Path):
    """Beside every header that has macros of such names, as C and as C++."""
    arguments = [Argument(name, "*i32" if number % 2 else "i32") for number, name in enumerate(SPECIAL)]
    axes = [(name, 1) for name in SPECIAL[:12]]
    units = [TestUnit(*make_unit(kernel, "cpu:x86-64-v2", values, each, ("1", "1", "1")), "NOTHING({})")
             for kernel, values, each in (("named", [], arguments), ("said", axes, []), ("types", [], []))]  # fmt: skip
    units = [TestUnit(each.unit, each.facts, f"NOTHING({each.facts.symbol})") for each in units]
    folder = build_release(tmp_path / "release", units, name="lib", selection=())
    (tmp_path / "use.c").write_text(
        "#include <stdio.h>\n#include <errno.h>\n#include <assert.h>\n#include <math.h>\n#include <complex.h>\n"
        '#include "lib.h"\nint main(void) { return 0; }\n'
    )
    for language in (["c", "-std=gnu11"], ["c", "-std=c99"], ["c++", "-std=c++17"], ["c++", "-std=gnu++20"]):
        run(["cc", "-x", *language, f"-I{folder}/include", "-fsyntax-only", str(tmp_path / "use.c")])
    ast.parse((folder / "python/lib/__init__.pyi").read_text())
    call = "import lib; lib.said(); lib.types(); lib.named(*[0] * 30); lib.named(*[0] * 29, **{'α': 0})"
    done = subprocess.run([sys.executable, "-c", call], cwd=folder / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["lambda", "None", "True", "open", "serve", "LaunchError", "int", "release", "Any"])
def test_kernels_that_a_package_cannot_have(name: str):
    with pytest.raises(PlanError, match=f"`{name}` cannot be a kernel's name"):
        describe_library(describe_interface("lib", [unit_of(name)]), "1", [])


@pytest.mark.parametrize(
    ("units", "message"),
    [([unit_of("x"), unit_of("x_grid")], "kernel `x_grid` would be called `lib_x_grid`, as is kernel `x`"),
     ([unit_of("x_axes"), unit_of("x")], "kernel `x_axes` would be called `lib_x_axes`, as is kernel `x`"),
     ([unit_of("k", [], [Argument("self", "i32")])], "`self` of `k` cannot be an argument's name"),
     ([unit_of("k", [], [Argument("stream", "i32")])], "`stream` of `k` cannot be an argument's name"),
     ([unit_of("k", [("stream", 1)])], "`stream` of `k` cannot be an axis's name"),
     ([unit_of("k", [("lambda", 1)])], "`lambda` of `k` cannot be an axis's name"),
     ([unit_of("k", [("n", 1)], [Argument("n", "i32")])], "`n` is an argument and an axis of `k`"),
     ([unit_of("k", [], [Argument("int", "i32"), Argument("int_", "i32")])],
      "arguments `int` and `int_` of `k` would both be called `int_` in C"),
     ([unit_of("k", [], [Argument("p", "(i32, i32)"), Argument("p_1", "i32")])],
      "arguments `p.1` and `p_1` of `k` would both be called `p_1` in C"),
     ([unit_of("k", [("unix", 1), ("unix_", 2)])], "axes `unix` and `unix_` of `k` would both be called `unix_` in C"),
     ([unit_of("k", [("M", value)]) for value in ("a-b", "a_b")],
      "`M=a_b` of kernel `k` would be called `LIB_K_M_A_B` in C, as is `M=a-b` of kernel `k`"),
     ([unit_of(kernel, [("M", "fast")]) for kernel in ("kb", "kB")],
      "`M=fast` of kernel `kb` would be called `LIB_KB_M_FAST` in C, as is `M=fast` of kernel `kB`")],
)  # fmt: skip
def test_names_that_are_one(units: list[Unit], message: str):
    assert [fault.message for fault in find_name_faults(describe_interface("lib", units))] == [message]
    with pytest.raises(PlanError) as caught:
        describe_library(describe_interface("lib", units), "1", [])
    assert caught.value.message == message


def test_symbols_of_c_that_a_project_and_a_kernel_make_together():
    faults = find_name_faults(describe_interface("strtok", [unit_of("r")]))
    assert [fault.message for fault in faults] == [
        "kernel `r` would be called `strtok_r`, as is a name of C's own headers"
    ]


@pytest.mark.parametrize("name", ["class", "None", "int", "bool", "unix", "EOF", "size_t", "malloc", "template",
                                  "xor", "precast", "types", "triton", "numpy", "cuda"])  # fmt: skip
def test_projects_that_cannot_be(name: str):
    assert project_fault(name)


@pytest.mark.parametrize("name", ["launch", "interface", "inner", "kernels", "serve", "lib", "LaunchError", "release"])
def test_projects_that_can(tmp_path: Path, name: str):
    """What the launchers call their own is no project's prefix."""
    assert not project_fault(name)
    files = files_of(unit_of("digest"), unit_of("release_axes"), unit_of("values"), name=name)
    write_files(tmp_path, files)
    run(["cc", "-std=c11", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}/include", f"-I{tmp_path}/src", "-fsyntax-only",
         f"{tmp_path}/src/{name}.c"])  # fmt: skip


def test_arguments_of_a_call():
    assert argument_fault("self") and argument_fault("stream") and argument_fault("None") and not argument_fault("int")


@pytest.mark.parametrize("name", ["LIB_VERSION", "LIB_LAUNCHERS_H"])
def test_an_argument_cannot_be_called_as_a_macro_of_the_header(name: str):
    [fault] = find_name_faults(describe_interface("lib", [unit_of("k", [], [Argument(name, "i32")])]))
    assert fault.message == f"`{name}` of `k` cannot be an argument's name"
    assert fault.hint == f"the release's header has a macro `{name}`"
