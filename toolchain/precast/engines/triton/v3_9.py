"""Everything that knows Triton 3.9: its classes, their arguments, its text forms.

Its environment variables are in `environment.py`, which parents of workers read too. In: targets, option values,
jit functions, IR text. Out: Triton's own objects, handled elsewhere without looking inside.
Never asks for Triton's active driver: there is no GPU here. `answering_for` puts another in its place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import triton
from triton import knobs
from triton._C.libtriton import ir, llvm
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import ASTSource
from triton.compiler.compiler import make_backend as make_triton_backend
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction
from triton.language import str_to_ty
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction, _triton_jit_function_registry

from precast.engines.triton.float8 import convert_e4b15
from precast.errors import ToolError
from precast.target import Backend, Target

VERSION = "3.9"
LINE_INFO_OFF = "TRITON_DISABLE_LINE_INFO"
ASSEMBLER_VARIABLE = "TRITON_PTXAS_PATH"  # set where a project names its own
CPU_FRONT_END = Target("cuda", "80")  # whose front end and ttir stage a CPU unit goes through
REEXPORTED = {"triton": triton, "tl": triton.language}  # what frameworks hand out under these names
HIDDEN_PARAMETERS = (("global_scratch", "*i8"), ("profile_scratch", "*i8"))  # after the user's, always both


def check_version() -> None:
    """`ToolError` when another Triton is installed than the one this file knows."""
    if not triton.__version__.startswith(f"{VERSION}."):
        raise ToolError(
            f"Triton {triton.__version__} is installed, Precast needs {VERSION}",
            hint="install the version that Precast names: `pip install precast[gpu]`",
        )


def start_compiler() -> None:
    """Makes LLVM know its targets. Triton does so in llir only, and a stage may be the first that a process runs."""
    llvm.init_targets()


def compiler_target(target: Target) -> Target:
    """The target whose backend compiles a unit: its own, but for CPU units."""
    return CPU_FRONT_END if target.kind is Backend.CPU else target


def make_gpu_target(target: Target) -> Any:
    """Triton's name for a target; the warp size is a property of the architecture."""
    if target.kind is Backend.CUDA:
        return GPUTarget("cuda", int(target.arch), 32)
    if target.kind is Backend.CPU:
        return GPUTarget("cpu", target.arch, 1)
    return GPUTarget("hip", target.arch, 32 if int(target.arch[3:-2]) >= 10 else 64)


def make_backend(target: Target) -> Any:
    """A fresh backend object: it holds no state of earlier compilations."""
    return make_triton_backend(make_gpu_target(target))


def parse_options(backend: Any, options: Mapping[str, Any]) -> Any:
    """The backend's option record; `ValueError` or `AssertionError` when the target cannot have a value."""
    return backend.parse_options(dict(options))


def option_names(backend: Any) -> tuple[str, ...]:
    """The names that the backend's option record knows."""
    return tuple(type(parse_options(backend, {})).__dataclass_fields__)


@contextlib.contextmanager
def answering_for(device: Any) -> Iterator[None]:
    """Code that asks for Triton's active driver in the block hears `device`, on every machine."""
    before, driver._active = driver._active, device
    knobs_before = {name: dict(vars(each)) for name, each in knob_groups()}
    try:
        yield
    finally:
        driver._active = before
        for name, each in knob_groups():
            vars(each).clear()
            vars(each).update(knobs_before[name])


def knob_groups() -> list[tuple[str, Any]]:
    """Triton's groups of settings, which code can set as it likes."""
    return [(name, each) for name, each in vars(knobs).items() if isinstance(each, knobs.base_knobs)]


def has_stage_hook() -> bool:
    """Whether code has asked Triton to let it edit the stages of every compilation."""
    return knobs.runtime.add_stages_inspection_hook is not None


def is_launch(code: CodeType) -> bool:
    """Whether code is Triton's own for the call of a kernel."""
    return code is JITFunction.run.__code__


def is_jit_function(value: object) -> bool:
    return isinstance(value, JITFunction)


def is_gluon_function(value: object) -> bool:
    return isinstance(value, GluonJITFunction)


def is_tuner(value: object) -> bool:
    """Whether a value is what `@triton.autotune` makes."""
    return isinstance(value, Autotuner)


def find_function(text: str) -> Any | None:
    """The jit function whose text is `text`: Triton's errors name a function by its text only."""
    known = reversed(tuple(_triton_jit_function_registry.values()))
    return next((each for each in known if each.src == text), None)


def forget_functions() -> None:
    """Drops Triton's own list of jit functions, so that those of one project never answer for another's."""
    _triton_jit_function_registry.clear()


def make_source(
    function: Any, signature: Mapping[str, Any], constants: Mapping[Any, Any], attributes: Mapping[Any, Any]
) -> Any:
    """Triton's own source object for a jit function with everything fixed."""
    kind = GluonASTSource if is_gluon_function(function) else ASTSource
    return kind(function, dict(signature), dict(constants), dict(attributes))


def make_context(backend: Any) -> Any:
    """A fresh MLIR context with the dialects of a backend."""
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def emit_module(source: Any, target: Target, options: Any, backend: Any, context: Any) -> Any:
    """Runs the front end on a source object for a unit's target; the module keeps its context alive."""
    implementation = backend.get_codegen_implementation(options)
    if target.kind is Backend.CPU:
        implementation = {**implementation, "convert_custom_types": convert_e4b15}
    gpu_target = make_gpu_target(compiler_target(target))
    return source.make_ir(gpu_target, options, implementation, backend.get_module_map(), context)


def fix_parameters(module: Any, signature: Mapping[str, Any], values: Mapping[str, int], context: Any) -> None:
    """Uses constants in place of the kernel's integer parameters that have one value; the parameters stay.

    The constants have the parameters' types: as constexprs they would have Python's, and products could overflow where
    the parameters' do not.
    """
    if not values:
        return
    function = module.get_function(module.get_entry_func_name())
    builder = ir.builder(context)
    builder.set_insertion_point_to_start(_entry_block(module, function))
    make = {1: builder.get_int1, 8: builder.get_int8, 16: builder.get_int16, 32: builder.get_int32,
            64: builder.get_int64}  # fmt: skip
    place = 0
    for name, kind in signature.items():
        if name in values:
            parameter = function.args(place)
            builder.set_loc(parameter.get_loc())
            parameter.replace_all_uses_with(make[int(kind[1:])](values[name]))
        flat: list[Any] = []
        str_to_ty(kind, None)._flatten_ir_types(builder, flat)
        place += len(flat)


def _entry_block(module: Any, function: Any) -> Any:
    """The block of the first operation right inside a function: libtriton hands out no block by itself."""
    body = function.get_region(0).id()
    found: list[Any] = []

    def look(operation: Any) -> None:
        block = None if found else operation.get_block()
        if block is not None and block.get_parent().id() == body:
            found.append(block)

    module.walk(look)
    return found[0]


def print_module(module: Any, *, locations: bool) -> str:
    """A module's text, with or without source locations."""
    return str(module.str() if locations else module.str_nodebug())


def parse_module(text: str, stage: str, context: Any) -> Any:
    """Text of ttir, glir or ttgir to a module in `context`.

    libtriton reads files only, and operations without a location get the file's name as theirs: so the name is
    relative, the same on every machine. The working directory of a worker is private to it.
    """
    path = Path(f"input.{stage}")
    path.write_text(text, encoding="utf-8")
    try:
        module = ir.parse_mlir_module(str(path), context)
        module.context = context
        return module
    finally:
        path.unlink()


def language(*, gluon: bool) -> Any:
    """Triton's word for which front end a kernel is written for."""
    return Language.GLUON if gluon else Language.TRITON


def stage_functions(backend: Any, options: Any, *, gluon: bool) -> dict[str, Callable[[Any, dict[str, Any]], Any]]:
    """Triton's own functions for each stage, by name, in order."""
    stages: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}
    backend.add_stages(stages, options, language(gluon=gluon))
    return stages


@contextlib.contextmanager
def line_info() -> Iterator[None]:
    """Stages that run in the block write line information, whatever the project says."""
    before = os.environ.get(LINE_INFO_OFF)
    os.environ[LINE_INFO_OFF] = "0"
    try:
        yield
    finally:
        os.environ.pop(LINE_INFO_OFF) if before is None else os.environ.update({LINE_INFO_OFF: before})


def assembler_path(target: Target) -> str:
    """The ptxas that Triton would run for a target; empty on HIP, whose assembler is part of a library."""
    if target.kind is not Backend.CUDA:
        return ""
    from triton.backends.nvidia.compiler import get_ptxas

    return str(get_ptxas(int(target.arch)).path)


def is_dtype(value: object) -> bool:
    return isinstance(value, triton.language.dtype)


def unwrap_constexpr(value: Any) -> Any:
    return value.value if isinstance(value, triton.language.constexpr) else value


def parse_dtype(text: str) -> Any | None:
    """The Triton data type that a constant such as `tl.float16` names, or None."""
    value = getattr(triton.language, text.removeprefix("tl."), None) if text.startswith("tl.") else None
    return value if isinstance(value, triton.language.dtype) else None
