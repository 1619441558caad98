"""The calls that a release offers, from its plan, and the C program that makes them.

In: a plan and a release folder. Out: `Call` values, and the path of the built program.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernel_cases.call import Axis, Call

from precast.launch.context import KernelContext, LibraryContext, describe_library
from precast.launch.formats import AxisInterface, KernelInterface, describe_interface
from precast.launch.formats.values import TYPE_CODES
from precast.plan import Plan
from precast.spec.model import Constant, Unit

RUNNER = Path(__file__).with_name("runner.c")


def list_calls(plan: Plan, pattern: str) -> list[Call]:
    """One call per variant that is built for the targets of `pattern`, hints left out, in the plan's order."""
    interface = describe_interface("kernels", [planned.unit for planned in plan.units])
    kernels = {kernel.name: kernel for kernel in interface.kernels}
    calls = {}
    for planned in plan.units:
        if planned.unit.target.matches(pattern):
            call = _describe_call(planned.unit, kernels[planned.unit.kernel])
            calls.setdefault(str(call), call)
    return list(calls.values())


def _describe_call(unit: Unit, kernel: KernelInterface) -> Call:
    values = dict(unit.variant.values)
    axes = tuple(Axis(axis.name, values[axis.name], _number(axis, values[axis.name])) for axis in kernel.axes)
    return Call(unit.kernel, str(unit.target), axes, tuple((slot.name, slot.type) for slot in kernel.slots))


def _number(axis: AxisInterface, value: Constant) -> int | float:
    if axis.kind == "dtype":
        return TYPE_CODES[str(value)]
    if axis.kind == "word":
        return axis.values.index(value) + 1
    assert isinstance(value, bool | int | float)
    return float(value) if axis.kind == "float" else int(value)


def render_calls(plan: Plan) -> str:
    """The text of `calls.h`: one typed call for each kernel of the plan."""
    interface = describe_interface("kernels", [planned.unit for planned in plan.units])
    library = describe_library(interface, "0", ())
    blocks = [_render_call(library, *pair) for pair in zip(library.kernels, interface.kernels, strict=True)]
    body = "\n".join(blocks)
    return f"static precast_status call(kernels *release, precast_stream stream) {{\n{body}\n    return 1;\n}}\n"


def _render_call(library: LibraryContext, kernel: KernelContext, interface: KernelInterface) -> str:
    fields = [_render_field(axis) for axis in interface.axes]
    words = [_render_argument(slot.name, slot.type) for slot in interface.slots]
    return "\n".join(
        [
            f'    if (is_kernel("{kernel.name}")) {{',
            f"        {library.name}_{kernel.identifier}_axes axes = {{{', '.join(fields) or '0'}}};",
            f"        return {library.name}_{kernel.identifier}({', '.join(['release', 'stream', 'axes', *words])});",
            "    }",
        ]
    )


def _render_field(axis: AxisInterface) -> str:
    read = f'number("{axis.name}")' if axis.kind == "float" else f'integer("{axis.name}")'
    return f".{axis.name} = {'(precast_type)' if axis.kind == 'dtype' else ''}{read}"


def _render_argument(name: str, kind: str) -> str:
    if kind in ("ptr", "const ptr"):
        return f'array("{name}")'
    if kind == "tensordesc":
        return f'tensor("{name}")'
    return f'number("{name}")' if kind in ("fp32", "fp64") else f'integer("{name}")'


def build_runner(plan: Plan, release: Path, folder: Path, run_path: str = "") -> Path:
    """The C program for a release, compiled in `folder`; it finds the library in `run_path`, or where it lies now."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calls.h").write_text(render_calls(plan))
    program = folder / "runner"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    paths = [f"-I{folder}", f"-I{release}/include", f"-L{release}/lib"]
    paths.append(f"-Wl,-rpath,{run_path or release.resolve() / 'lib'}")
    subprocess.run(["cc", *flags, str(RUNNER), *paths, "-lkernels", "-ldl", "-o", str(program)], check=True)
    return program
