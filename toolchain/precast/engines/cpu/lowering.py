"""The `loops` stage: TTIR text to MLIR text. In: a kernel's TTIR. Out: a module with one public entry.

The entry runs a range of programs: `i32 entry(arguments, grid, begin, end, scratch)`. The program itself is a function
of its own, which LLVM puts in place.
"""

from __future__ import annotations

from precast.engines.cpu import inlining, kinds, statements
from precast.engines.cpu.aliasing import Addresses
from precast.engines.cpu.analyses import Analysis, find_widened
from precast.engines.cpu.branches import structure_regions
from precast.engines.cpu.by_element import mark_loops
from precast.engines.cpu.context import Context
from precast.engines.cpu.errors import faults_told
from precast.engines.cpu.expansion import expand_ops
from precast.engines.cpu.flips import replace_flips
from precast.engines.cpu.ir import Function
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.machine import MACHINES, Machine
from precast.engines.cpu.packing import PackedMap
from precast.engines.cpu.parts import split_program
from precast.engines.cpu.program_order import steps_second_axis_first
from precast.engines.cpu.reader import parse_ttir
from precast.engines.cpu.running_sums import reduce_inside
from precast.engines.cpu.scaled import ScaledProduct
from precast.engines.cpu.turning import turn_products
from precast.engines.cpu.values import Scalar, memory_type
from precast.errors import PassError

SCRATCH_ATTRIBUTE = "precast.thread_scratch_bytes"
WRITTEN_ATTRIBUTE = "precast.written_arguments"
_LONGEST_INLINED = 3000  # lines of text
_SPELLED_OUT = {"tt.dot_scaled": ScaledProduct, "tt.map_elementwise": PackedMap}
_GRID = ("x", "y", "z", "grid_x", "grid_y", "grid_z")


def find_kernel(text: str) -> Function:
    """The public function of a TTIR module: without branches between blocks, its calls put in place."""
    functions = parse_ttir(text)
    for each in functions:
        structure_regions(each.operation)
    public = [each for each in functions if each.public]
    if len(public) != 1:
        raise PassError(f"a TTIR module has one kernel; this one has {len(public)}")
    inlining.inline_calls(public[0], {each.name: each for each in functions})
    expand_ops(public[0], _SPELLED_OUT)
    replace_flips(public[0])
    reduce_inside(public[0])
    mark_loops(public[0])
    return public[0]


def lower_module(text: str, level: str, strict: bool = False, threads: int = 1) -> str:
    """The `loops` text of a kernel for a feature level.

    `strict` keeps every load on its side of every store; `threads` is how often a scalar is printed.
    """
    machine = MACHINES[level]
    function = find_kernel(text)
    turn_products(function, machine)
    for value in function.blocks[0].arguments:
        if value.type.element not in _ARGUMENTS or value.type.is_tensor:
            raise PassError(f"the CPU engine cannot take an argument of type `{value.type}`", function.operation.where)
    context = Context(machine, "%scratch", find_widened(function), threads)
    with faults_told(lambda: (context.current or function.operation).where):
        kernel = Kernel(context, Analysis(function, strict), statements.lower_block, statements.write_value)
        _lower_body(kernel, function)
        return _render_module(context, function, machine)


_ARGUMENTS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "ptr", "f8E4M3FN", "f8E5M2")


def _lower_body(kernel: Kernel, function: Function) -> None:
    context = kernel.context
    context.program = tuple(Scalar(f"%{name}", "i32") for name in _GRID)
    for index, value in enumerate(function.blocks[0].arguments):
        context.places[value] = Scalar(f"%argument{index}", value.type.element)
    kernel.lower_block(kernel, function.operation.body)


def find_written(function: Function) -> list[int]:
    """The arguments that the kernel stores through, by number; not those of which that cannot be told."""
    stores = (op for op in function.operation.walk() if op.name in kinds.WRITES)
    addresses = Addresses(function, strict=False)
    bases = {addresses.base(op.operands[0]) for op in stores}
    return [index for index, value in enumerate(function.blocks[0].arguments) if value in bases]


def _render_module(context: Context, function: Function, machine: Machine) -> str:
    types = [value.type.element for value in function.blocks[0].arguments]
    registers = [Scalar("", element).type for element in types]
    wide = f'passthrough = [["prefer-vector-width", "{machine.vector_bits}"]]'
    apart = wide.replace("[[", '["noinline", [')
    # In place from the start: LLVM's inliner comes to it after most passes, which then run once more over its loop.
    in_place = wide.replace("[[", '["alwaysinline", [')
    program = f"{function.name}.program"
    given = {f"%argument{index}": type_ for index, type_ in enumerate(registers)}
    given |= {f"%{each}": "i32" for each in _GRID} | {"%scratch": "!llvm.ptr"}
    functions, body = split_program(program, context.b, given, apart)
    # The entry's loop over programs around very many loops would cost each of LLVM's loop passes the square of them.
    own = apart if len(body) > _LONGEST_INLINED else in_place
    written = ", ".join(map(str, find_written(function)))
    facts = f"{SCRATCH_ATTRIBUTE} = {context.scratch_bytes} : i64, {WRITTEN_ATTRIBUTE} = [{written}]"
    lines = [f"module attributes {{{facts}}} {{"]
    lines += [f"  func.func private @{name}{signature}" for name, signature in sorted(context.b.declarations.items())]
    lines += [*context.b.globals, *functions]
    lines.append(
        f'  func.func private @"{program}"({", ".join(f"{name}: {type_}" for name, type_ in given.items())}) '
        f"attributes {{llvm.linkage = #llvm.linkage<internal>, {own}}} {{"
    )
    lines += [*context.b.prologue, *body, "    return", "  }"]
    axes = ("y", "x") if steps_second_axis_first(function) else ("x", "y")
    lines += _render_entry(function.name, program, types, registers, wide, axes)
    return "\n".join([*lines, "}", ""])


def _render_entry(
    name: str, program: str, types: list[str], registers: list[str], wide: str, axes: tuple[str, str]
) -> list[str]:
    """`axes` are the grid's first two, the one that steps first before the other."""
    inner, outer = axes
    loads = []
    for index, element in enumerate(types):
        loads.append(f"    %slot{index} = llvm.getelementptr %arguments[{index}] : (!llvm.ptr) -> !llvm.ptr, i64")
        raw = "raw" if element == "i1" else "argument"
        loads.append(f"    %{raw}{index} = llvm.load %slot{index} : !llvm.ptr -> {memory_type(element)}")
        if element == "i1":
            loads.append(f"    %argument{index} = arith.trunci %raw{index} : i8 to i1")
    passed = [f"%argument{index}" for index in range(len(types))]
    passed += [f"%{each}" for each in _GRID] + ["%scratch"]
    signature = ", ".join([*registers, *["i32"] * 6, "!llvm.ptr"])
    return [
        f'  func.func @"{name}"(%arguments: !llvm.ptr, %grid: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) '
        f"-> i32 attributes {{{wide}}} {{",
        *loads,
        "    %zero = arith.constant 0 : i32",
        "    %advance = arith.constant 1 : i32",
        "    %one = arith.constant 1 : i64",
        "    llvm.store %zero, %scratch : i32, !llvm.ptr",
        "    %at_y = llvm.getelementptr %grid[1] : (!llvm.ptr) -> !llvm.ptr, i32",
        "    %at_z = llvm.getelementptr %grid[2] : (!llvm.ptr) -> !llvm.ptr, i32",
        "    %grid_x = llvm.load %grid : !llvm.ptr -> i32",
        "    %grid_y = llvm.load %at_y : !llvm.ptr -> i32",
        "    %grid_z = llvm.load %at_z : !llvm.ptr -> i32",
        "    %some_x = arith.maxsi %grid_x, %advance : i32",
        "    %some_y = arith.maxsi %grid_y, %advance : i32",
        "    %wide_x = arith.extsi %some_x : i32 to i64",
        "    %wide_y = arith.extsi %some_y : i32 to i64",
        f"    %first_row = arith.divui %begin, %wide_{inner} : i64",
        f"    %first_{inner} = arith.remui %begin, %wide_{inner} : i64",
        f"    %first_{outer} = arith.remui %first_row, %wide_{outer} : i64",
        f"    %first_z = arith.divui %first_row, %wide_{outer} : i64",
        "    %x0 = arith.trunci %first_x : i64 to i32",
        "    %y0 = arith.trunci %first_y : i64 to i32",
        "    %z0 = arith.trunci %first_z : i64 to i32",
        # The next program's place is counted on: divisions would take longer than a small program.
        "    %end_place:3 = scf.for %program = %begin to %end step %one "
        "iter_args(%x = %x0, %y = %y0, %z = %z0) -> (i32, i32, i32) : i64 {",
        f'      func.call @"{program}"({", ".join(passed)}) : ({signature}) -> ()',
        "      %next_x = arith.addi %x, %advance : i32",
        "      %next_y = arith.addi %y, %advance : i32",
        "      %next_z = arith.addi %z, %advance : i32",
        f"      %row_ends = arith.cmpi eq, %next_{inner}, %grid_{inner} : i32",
        f"      %plane_ends = arith.cmpi eq, %next_{outer}, %grid_{outer} : i32",
        "      %both_end = arith.andi %row_ends, %plane_ends : i1",
        f"      %row_start = arith.select %plane_ends, %zero, %next_{outer} : i32",
        f"      %after_{inner} = arith.select %row_ends, %zero, %next_{inner} : i32",
        f"      %after_{outer} = arith.select %row_ends, %row_start, %{outer} : i32",
        "      %after_z = arith.select %both_end, %next_z, %z : i32",
        "      scf.yield %after_x, %after_y, %after_z : i32, i32, i32",
        "    }",
        "    %status = llvm.load %scratch : !llvm.ptr -> i32",
        "    return %status : i32",
        "  }",
    ]
