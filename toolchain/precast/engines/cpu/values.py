"""What a tensor looks like at a place of a loop nest. In: nothing. Out: the forms that evaluation answers with.

A form stays symbolic as long as it can: uniform scalar, affine in the lane, uniform pointer with vector offsets; a
vector register is the last resort.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.engines.cpu.ir import ELEMENT_BITS, Value

# Elements that are kept as their bits, the engine converts and rounds them itself; and what only registers hold.
_BITS = {"bf16": "i16", "ptr": "!llvm.ptr", "index": "i64", "matrix": "!llvm.x86_amx"}


def register_type(element: str) -> str:
    """The MLIR type of one element in registers."""
    return "i8" if element.startswith("f8") else _BITS.get(element, element)


def memory_type(element: str) -> str:
    """The MLIR type of one element in memory."""
    return "i8" if element == "i1" else register_type(element)


@dataclass(frozen=True)
class Scalar:
    """One value for all lanes; `constant` when it is known."""

    name: str
    element: str
    constant: int | float | None = None

    @property
    def type(self) -> str:
        return register_type(self.element)


@dataclass(frozen=True)
class Vector:
    """A value for each lane, in a vector register (or several)."""

    name: str
    element: str
    width: int

    @property
    def type(self) -> str:
        return f"vector<{self.width}x{register_type(self.element)}>"


@dataclass(frozen=True)
class Affine:
    """base + stride · lane: an integer modulo its width, or a pointer with a stride in elements of `pointee` (an i64).

    `assumes` are the narrower integers of which it was widened: it holds where they do not wrap from lane to lane.
    """

    base: Scalar
    stride: Scalar
    pointee: str = ""
    assumes: tuple[Affine, ...] = ()

    @property
    def element(self) -> str:
        return self.base.element


@dataclass(frozen=True)
class Offsets:
    """A uniform pointer and an offset for each lane, in elements of `pointee`."""

    base: Scalar
    offsets: Vector
    pointee: str
    element: str = "ptr"


Form = Scalar | Vector | Affine | Offsets
Plain = Scalar | Vector


@dataclass(frozen=True)
class Cursor:
    """A place in a tensor: an i64 index for each dimension; lanes run along dimension `lane` from its index on.

    With `address`, an integer is wanted to address memory with: it may be taken not to wrap when it is widened.
    """

    index: tuple[Scalar, ...]
    lane: int | None
    width: int
    address: bool = False

    def __post_init__(self) -> None:
        """The hash is found once: what is known of values is looked up by it many times."""
        object.__setattr__(self, "_hash", hash((self.index, self.lane, self.width, self.address)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def without(self, axis: int) -> Cursor:
        """The cursor of the tensor without dimension `axis`: uniform where lanes ran along it."""
        index = self.index[:axis] + self.index[axis + 1 :]
        if self.lane is None or self.lane == axis:
            return Cursor(index, None, 1, self.address)
        return Cursor(index, self.lane - (self.lane > axis), self.width, self.address)

    def at(self, axis: int, index: Scalar) -> Cursor:
        """The same place with another index in dimension `axis`, uniform along it."""
        indices = (*self.index[:axis], index, *self.index[axis + 1 :])
        if self.lane == axis:
            return Cursor(indices, None, 1, self.address)
        return Cursor(indices, self.lane, self.width, self.address)

    def addressing(self, address: bool) -> Cursor:
        return self if self.address == address else Cursor(self.index, self.lane, self.width, address)


@dataclass(frozen=True)
class Buffer:
    """A tensor in scratch memory; `pointer` is an `!llvm.ptr`. Row-major, but where it is another one seen turned.

    A view has `turned`, the stride of each dimension, and begins `first` elements after the pointer.
    """

    pointer: str
    element: str
    shape: tuple[int, ...]
    turned: tuple[int, ...] = ()
    first: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        if self.turned:
            return self.turned
        strides: list[int] = []
        step = 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return tuple(strides)

    def flipped(self, axis: int) -> Buffer:
        """The same elements, those of dimension `axis` in reverse."""
        strides = self.strides
        turned = (*strides[:axis], -strides[axis], *strides[axis + 1 :])
        first = self.first + (self.shape[axis] - 1) * strides[axis]
        return Buffer(self.pointer, self.element, self.shape, turned, first)


@dataclass(frozen=True)
class Shifted:
    """A carried tensor of pointers or integers: another tensor plus one scalar."""

    start: Value
    distance: Scalar  # i64 elements for pointers, else of the tensor's element


def integer_bounds(element: str, signed: bool) -> tuple[int, int]:
    """Smallest and largest value of an integer element."""
    bits = ELEMENT_BITS[element]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
