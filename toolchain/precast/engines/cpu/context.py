"""State of lowering one kernel: where values live, scratch memory, memoised forms. In: analyses. Out: forms on demand.

`evaluate` is the heart: it answers what a tensor value is at a cursor, walking the lazy expression tree down to
buffers and scalars; what was answered before in the same loop body is not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from precast.engines.cpu import memory, messages, shapes
from precast.engines.cpu.arithmetic import Arithmetic, stays_affine
from precast.engines.cpu.branches import is_pure
from precast.engines.cpu.builder import Body, Builder
from precast.engines.cpu.element_loops import evaluate_loop
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Block, Dense, Op, Type, Value, element_bytes
from precast.engines.cpu.kinds import is_by_element
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.ordering import needed_first
from precast.engines.cpu.values import Affine, Buffer, Cursor, Form, Plain, Scalar, Shifted

ALIGNMENT = 64
_LONGEST_PART = 1500  # lines of a kernel's text that stay in one function, if they can be cut
_STATUS_BYTES = 64
_BOUNCE_BYTES = 1024  # the widest streaming vector of 64-bit elements


Place = Scalar | Buffer | Shifted
Key = tuple[Value, Cursor]


class Places(dict[Value, Place]):
    """Where values live. What a region adds is valid in it alone: its text names what other regions cannot."""

    def __init__(self) -> None:
        super().__init__()
        self._undo: list[tuple[Value, Place | None]] = []

    def __setitem__(self, value: Value, place: Place) -> None:
        self._undo.append((value, self.get(value)))
        super().__setitem__(value, place)

    @contextmanager
    def region(self) -> Iterator[None]:
        start = len(self._undo)
        yield
        while len(self._undo) > start:
            value, before = self._undo.pop()
            if before is None:
                del self[value]
            else:
                super().__setitem__(value, before)


@dataclass(frozen=True)
class _Known:
    """The keys that a context has an answer for."""

    context: Context

    def __contains__(self, key: object) -> bool:
        return self.context.known(key) is not None  # type: ignore[arg-type]


class Context:
    """One kernel's lowering; used by every lowering module."""

    def __init__(
        self, machine: Machine, scratch: str, widened: frozenset[Value] = frozenset(), threads: int = 1
    ) -> None:
        self.machine = machine
        self.threads = threads  # each of which prints what is not a tensor
        self._widened = widened  # what differs between an address and any other use
        self.b = Builder(machine.half)
        self.arithmetic = Arithmetic(self.b, machine)
        self.places = Places()
        self._scopes: list[dict[Key, Form]] = [{}]
        self._scratch = scratch
        self._used = _STATUS_BYTES + _BOUNCE_BYTES
        self.scratch_bytes = self._used
        self.shared: set[str] = set()  # pointers of buffers that several values live in: nothing may write into them
        self.program: tuple[Scalar, ...] = ()  # ids x, y, z and counts x, y, z
        self.status = scratch
        self.current: Op | None = None  # what is being lowered

    @property
    def bounce(self) -> str:
        """Scratch for one vector, used and done with at once."""
        return self.b.offset(self._scratch, self.b.index(_STATUS_BYTES), "i8")

    def offer_cut(self) -> None:
        """Between two ops: what follows may go into a function of its own, where the text has become long."""
        cuts = self.b.cuts
        if len(self._scopes) > 1 or len(self.b.lines) - (cuts[-1] if cuts else 0) < _LONGEST_PART:
            return
        self._scopes[0].clear()
        for place in self.places.values():
            if isinstance(place, Buffer):
                self.b.crossing[place.pointer] = "!llvm.ptr"
            else:
                scalar = place.distance if isinstance(place, Shifted) else place
                self.b.crossing[scalar.name] = scalar.type
        cuts.append(len(self.b.lines))

    # Scratch memory.

    def allocate(self, type_: Type) -> Buffer:
        """A buffer for a tensor of this type, aligned to a cache line."""
        size = type_.count * element_bytes(type_.element)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        offset = self._used
        self._used += size
        self.scratch_bytes = max(self.scratch_bytes, self._used)
        pointer = self.b.offset(self._scratch, self.b.index(offset), "i8")
        return Buffer(pointer, type_.element, type_.shape)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Inside, forms are memoised apart; afterwards they are forgotten, as their text is in an inner region."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    @contextmanager
    def region(self) -> Iterator[None]:
        """`scope`, and scratch taken and places given inside are free again and forgotten afterwards."""
        used = self._used
        with self.scope(), self.places.region():
            yield
        self._used = used

    # Structured control with memo scopes.

    def loop(
        self,
        index: Scalar,
        lower: Scalar,
        upper: Scalar,
        step: int,
        carried: Sequence[Plain],
        body: Callable[[list[Plain]], Sequence[Plain]],
        known: dict[Key, Form] | None = None,
    ) -> list[Plain]:
        """A loop in whose body the forms in `known` hold."""

        def scoped(_: Scalar, inside: list[Plain]) -> Sequence[Plain]:
            with self.scope():
                self._scopes[-1].update(known or {})
                return body(inside)

        return self.b.loop_named(index, lower, upper, step, carried, scoped)

    def count(self, size: int, body: Body) -> None:
        """A plain loop from 0 to `size`, nothing carried."""

        def scoped(index: Scalar, carried: list[Plain]) -> Sequence[Plain]:
            with self.scope():
                return body(index, carried)

        self.b.loop(self.b.index(0), self.b.index(size), 1, [], scoped)

    def branch(
        self,
        condition: Scalar,
        like: Sequence[Plain],
        then: Callable[[], Sequence[Plain]],
        otherwise: Callable[[], Sequence[Plain]] | None = None,
    ) -> list[Plain]:
        def scoped(body: Callable[[], Sequence[Plain]]) -> Callable[[], Sequence[Plain]]:
            def run() -> Sequence[Plain]:
                with self.scope():
                    return body()

            return run

        return self.b.branch(condition, like, scoped(then), otherwise and scoped(otherwise))

    # Evaluation.

    def scalar(self, value: Value) -> Scalar:
        """A value that is not a tensor; its op was lowered when control came by."""
        place = self.places[value]
        assert isinstance(place, Scalar)
        return place

    def evaluate(self, value: Value, cursor: Cursor) -> Form:
        """The form of `value` at `cursor`."""
        if not value.type.is_tensor:
            return self.scalar(value)
        root = self._key(value, cursor)
        for key in needed_first([root], self._needs, _Known(self)):
            self.remember(*key, self._evaluate(*key))
        form = self.known(root)
        assert form is not None
        return form

    def _key(self, value: Value, cursor: Cursor) -> Key:
        return value, cursor.addressing(cursor.address and value in self._widened)

    def _needs(self, key: Key) -> list[Key]:
        """The tensors, with their places, of which the form is made."""
        value, cursor = key
        place = self.places.get(value)
        if place is not None:
            tensor = isinstance(place, Shifted) and place.start.type.is_tensor
            return [self._key(place.start, cursor)] if isinstance(place, Shifted) and tensor else []
        operation = value.definition
        assert operation is not None, "a tensor argument without a place"
        operands = [each for each in operation.operands if each.type.is_tensor]
        if is_by_element(operation):
            return [self._key(each, cursor) for each in operands]
        if operation.name == "tt.load" and len(operands) > 1:
            mask = self._key(operands[1], cursor)
            form = self.known(mask)
            if form is None:
                return [mask]
            if isinstance(form, Scalar) and form.constant == 0:
                operands = operands[2:]
        return [self._key(each, shapes.operand_cursor(self.b, value, each, cursor)) for each in operands]

    def known(self, key: Key) -> Form | None:
        """What was answered before, here or around here."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def remember(self, value: Value, cursor: Cursor, form: Form) -> None:
        self._scopes[-1][(value, cursor)] = form

    def plain(self, value: Value, cursor: Cursor) -> Plain:
        """`evaluate`, as a scalar or a vector."""
        return self.b.plain(self.evaluate(value, cursor), cursor.width)

    def _evaluate(self, value: Value, cursor: Cursor) -> Form:
        place = self.places.get(value)
        if isinstance(place, Scalar):
            return place
        if isinstance(place, Buffer):
            return memory.read_buffer(self, place, cursor)
        if isinstance(place, Shifted):
            return self._evaluate_shifted(place, value, cursor)
        operation = value.definition
        assert operation is not None, "a tensor argument without a place"
        if operation.name in _SOURCES:
            return _SOURCES[operation.name](self, operation, cursor)
        if operation.name in shapes.MOVES:
            operand = operation.operands[0]
            return self.evaluate(operand, shapes.operand_cursor(self.b, value, operand, cursor))
        if is_by_element(operation):
            for result, form in zip(operation.results, evaluate_loop(self, operation, cursor), strict=True):
                self.remember(result, cursor, form)
            return self._scopes[-1][(value, cursor)]
        return self._evaluate_elementwise(operation, value, cursor)

    def _evaluate_elementwise(self, operation: Op, value: Value, cursor: Cursor) -> Form:
        forms = [self.evaluate(each, shapes.operand_cursor(self.b, value, each, cursor)) for each in operation.operands]
        if cursor.address and stays_affine(operation, forms[0]):
            assert isinstance(forms[0], Affine)
            return self.arithmetic.extend_address(operation, forms[0])
        if operation.name == "tt.map_elementwise":
            results = self.inline(operation, forms, cursor.width)
        else:
            results = self.arithmetic.apply(operation, forms, cursor.width)
        for result, form in zip(operation.results, results, strict=True):
            self.remember(result, cursor, form)
        return results[value.index]

    def _evaluate_shifted(self, place: Shifted, value: Value, cursor: Cursor) -> Form:
        return self.shifted(value, self.evaluate(place.start, cursor), place.distance, cursor.width)

    def shifted(self, value: Value, start: Form, distance: Scalar, width: int) -> Form:
        """The form of a pointer or integer that is `distance` further on than `start`."""
        if distance.constant == 0:
            return start
        name = "tt.addptr" if value.type.is_pointer else "arith.addi"
        return self.arithmetic.apply(Op(name, results=[Value(value.type)]), [start, distance], width)[0]

    def inline(self, operation: Op, forms: Sequence[Form], width: int) -> list[Form]:
        """The region of an op applied to forms: its block arguments stand for them."""
        body = operation.body
        return self._inline_block(body, dict(zip(body.arguments, forms, strict=True)), width)

    def _inline_block(self, block: Block, known: dict[Value, Form], width: int) -> list[Form]:
        for inner in block.operations[:-1]:
            operands = [known[each] if each in known else self.scalar(each) for each in inner.operands]
            if inner.name == "arith.constant":
                results: list[Form] = [self.constant(inner)]
            elif inner.name == "ub.poison":
                results = [self.b.zero(inner.result.type.element, 1)]
            elif inner.name == "scf.if":
                results = self._inline_choice(inner, operands[0], known, width)
            elif inner.name == "tt.assert" and not _is_side(block):
                messages.check(self, inner, self.b.plain(operands[0], width))
                results = []
            elif inner.regions or not is_pure(inner):
                raise refuse(inner, "it is inside a region that is applied to each element")
            else:
                results = self.arithmetic.apply(inner, operands, width)
            known.update(zip(inner.results, results, strict=True))
        return [known[each] if each in known else self.scalar(each) for each in block.terminator.operands]

    def _inline_choice(self, operation: Op, condition: Form, known: dict[Value, Form], width: int) -> list[Form]:
        """Both sides, neither of which has an effect; then the results of the one that the condition names."""
        if not operation.results:
            return []
        first, second = (self._inline_block(region[0], known, width) for region in operation.regions)
        return [self.b.select(condition, x, y, width) for x, y in zip(first, second, strict=True)]

    def compute_scalar(self, operation: Op) -> None:
        """An elementwise op on scalars, where control comes by."""
        if operation.name == "arith.constant":
            self.places[operation.result] = self.constant(operation)
            return
        forms = self.arithmetic.apply(operation, [self.scalar(each) for each in operation.operands], 1)
        for result, form in zip(operation.results, forms, strict=True):
            assert isinstance(form, Scalar)
            self.places[result] = form

    def constant(self, operation: Op) -> Scalar:
        """A scalar constant, or the value of a splat one."""
        value = operation.attributes["value"]
        if isinstance(value, Dense):
            value = value.values[0]
        return self.literal(value, operation.result.type.element)

    def literal(self, value: int | float, element: str) -> Scalar:
        if element == "bf16" or element.startswith("f8"):
            return self.b.constant(memory.encode_float(float(value), element), element)
        return self.b.constant(value, element)


def _is_side(block: Block) -> bool:
    return block.parent is not None and block.parent.name == "scf.if"


def _evaluate_constant(context: Context, operation: Op, cursor: Cursor) -> Form:
    value = operation.attributes["value"]
    if value.splat:
        return context.constant(operation)
    raise refuse(operation, "a tensor constant whose elements differ")


def _evaluate_range(context: Context, operation: Op, cursor: Cursor) -> Form:
    start = context.b.integer("addi", cursor.index[0], operation.attributes["start"])
    element = operation.result.type.element
    base = context.b.resize(start, element)
    assert isinstance(base, Scalar)
    return base if cursor.lane is None else Affine(base, context.b.constant(1, element))


def _evaluate_splat(context: Context, operation: Op, cursor: Cursor) -> Form:
    return context.scalar(operation.operands[0])


def _evaluate_load(context: Context, operation: Op, cursor: Cursor) -> Form:
    return memory.evaluate_load(context, operation, cursor)


def _evaluate_poison(context: Context, operation: Op, cursor: Cursor) -> Form:
    return context.b.zero(operation.result.type.element, 1)


_SOURCES: dict[str, Callable[[Context, Op, Cursor], Form]] = {
    "arith.constant": _evaluate_constant,
    "tt.make_range": _evaluate_range,
    "tt.splat": _evaluate_splat,
    "tt.load": _evaluate_load,
    "ub.poison": _evaluate_poison,
}
