"""Reading and changing IR in Python passes, where `tt` and `ttg` ops are ops without a Python class.

In: an `mlir.ir.Module`. Out: its kernel, its ops in order, attributes and types parsed from text, one more parameter
where a pass asks for it. The bindings are reached through the values that come in, never imported.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from precast.errors import Place

if TYPE_CHECKING:
    from mlir.ir import Block, Module, Operation, Value

_CAPSULE = b"mlir.ir.Operation._CAPIPtr"
_address_in: Callable[[object, bytes], int] = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_SOURCE_LINE = re.compile(r'"([^"]+)":(\d+):(\d+)')


def find_functions(module: Module) -> Iterator[Operation]:
    """Every `tt.func` (or, in the CPU engine's IR, `func.func`) of the module, in order."""
    for op in module.body.operations:
        if op.operation.name in ("tt.func", "func.func", "llvm.func"):
            yield op.operation


def find_kernel(module: Module) -> Operation:
    """The one public function of the module; `ValueError` when there is none."""
    for function in find_functions(module):
        visibility = function.attributes["sym_visibility"].value if "sym_visibility" in function.attributes else ""
        if visibility in ("", "public"):
            return function
    raise ValueError("the module has no public function")


def walk(op: Any) -> Iterator[Operation]:
    """Every op below `op` (an op, or a module), outer before inner.

    Between two ops anything may be changed, added and erased: what was erased is not given any more, nor what was in
    it. What was added to a block that was entered already is not given either.
    """
    open_blocks = [_OpenBlock(block) for block in reversed(_blocks(op))]
    while open_blocks:
        child = open_blocks[-1].next()
        if child is None:
            open_blocks.pop()
            continue
        yield child
        if _drop_what_is_gone(open_blocks):
            open_blocks += [_OpenBlock(block) for block in reversed(_blocks(child))]


class _OpenBlock:
    """A block whose ops are being given: those that are left, and how many ops it had at the last look.

    The bindings remember of an op that was erased only in the object that it was erased by, so that others must be
    looked for in the block, by their addresses, before they are touched: even their hash reads the op. An op erased
    for one that was added is found by its own object.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._left = [each.operation for each in reversed(list(block.operations))]
        self._count = len(self._left)
        self.given: Operation | None = None

    def next(self) -> Operation | None:
        while self._left:
            self.given = self._left.pop()
            if _address(self.given) is not None:
                return self.given
        return None

    def look_again(self) -> bool:
        """Whether the op that was given last is still there."""
        if self.given is None:
            return True
        if len(self._block.operations) == self._count:
            return _address(self.given) is not None
        there = {_address(each.operation) for each in self._block.operations}
        self._count = len(there)
        self._left = [each for each in self._left if _address(each) in there]
        return _address(self.given) in there


def _drop_what_is_gone(open_blocks: list[_OpenBlock]) -> bool:
    """Leaves the blocks of ops that were erased, outermost first; whether the op that was given last is there."""
    for place, each in enumerate(open_blocks):
        if not each.look_again():
            del open_blocks[place + 1 :]
            return False
    return True


def _blocks(op: Any) -> list[Block]:
    return [block for region in op.operation.regions for block in region.blocks]


def _address(op: Operation) -> int | None:
    """Where an op lies, told without a look at it; None when its object knows that it was erased."""
    try:
        return _address_in(op._CAPIPtr, _CAPSULE)
    except RuntimeError:
        return None


def entry_block(function: Operation) -> Block:
    """The first block of a function; its arguments are the function's."""
    return function.regions[0].blocks[0]


def parse_attribute(op: Any, text: str) -> Any:
    """The attribute that `text` says, in `op`'s context: `2 : i32`, `"name"`, `#ttg.shared_memory`, …"""
    return type(op.operation.location.attr).parse(text, op.context)


def parse_type(op: Any, text: str) -> Any:
    """The type that `text` says, in `op`'s context: `i32`, `!tt.ptr<f32>`, `tensor<16xf32>`, …"""
    return parse_attribute(op, text).value


def find_place(op: Any) -> Place | None:
    """The line of source that `op` comes from: the innermost that its location names."""
    found = _SOURCE_LINE.search(str(op.operation.location))
    return Place(found[1], int(found[2]), int(found[3])) if found else None


def own_bytes(pointer: Value, size: int) -> Value:
    """The start of this program's `size` bytes in memory for all programs of the grid, which lies at `pointer`.

    `pointer` (to i32) is a parameter of the kernel. Program x, y, z of a grid of X, Y, Z has number x + X*(y + Y*z).
    """
    block, wide = pointer.owner, parse_type(pointer.owner.owner, "i64")
    first = _prepend(block)

    def number(kind: str, axis: int) -> Value:
        narrow = first(f"tt.get_{kind}", parse_type(block.owner, "i32"), [], axis=f"{axis} : i32")
        return first("arith.extsi", wide, [narrow])

    place = number("program_id", 2)
    for axis in (1, 0):
        rows = first("arith.muli", wide, [place, number("num_programs", axis)])
        place = first("arith.addi", wide, [rows, number("program_id", axis)])
    words = first("arith.constant", wide, [], value=f"{size // 4} : i64")
    return first("tt.addptr", pointer.type, [pointer, first("arith.muli", wide, [place, words])])


def _prepend(block: Block) -> Callable[..., Value]:
    """A function that makes ops of one result each, in order, before all that the block holds now."""
    following = block.operations[0]
    create = type(following.operation).create

    def make(name: str, result: Any, operands: list[Value], **attributes: str) -> Value:
        parsed = {key: parse_attribute(following, text) for key, text in attributes.items()}
        op = create(name, [result], operands, parsed, loc=block.owner.location)
        block.append(op)
        op.move_before(following)
        return op.results[0]

    return make


def append_pointer(module: Module, element: str) -> Value:
    """One more parameter `!tt.ptr<element>` of the kernel, with 16-byte alignment promised."""
    kernel = find_kernel(module)
    pointer = f"!tt.ptr<{element}>"
    inputs = [str(argument.type) for argument in entry_block(kernel).arguments]
    results = str(kernel.attributes["function_type"]).rpartition("->")[2].strip()
    kernel.attributes["function_type"] = parse_attribute(kernel, f"({', '.join([*inputs, pointer])}) -> {results}")
    described = [str(each) for each in kernel.attributes["arg_attrs"]] if "arg_attrs" in kernel.attributes else []
    described = [*(described or ["{}"] * len(inputs)), "{tt.divisibility = 16 : i32}"]
    kernel.attributes["arg_attrs"] = parse_attribute(kernel, f"[{', '.join(described)}]")
    return entry_block(kernel).add_argument(parse_type(kernel, pointer), kernel.location)
