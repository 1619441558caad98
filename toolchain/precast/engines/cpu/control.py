"""Loops and branches. In: the op. Out: structured control on scalars; tensors that cross it live in buffers.

Carried pointers and integers that advance by a uniform step are one scalar. Carried tensors are assigned all at once:
what a buffer is written from is read before it is overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.engines.cpu import assignment, dot
from precast.engines.cpu.context import Context
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Block, Op, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.steps import advanced, find_steps, no_distance
from precast.engines.cpu.values import Buffer, Plain, Scalar, Shifted

_TERMINATORS = ("scf.yield", "scf.condition", "tt.return", "cf.br", "cf.cond_br", "tt.map_elementwise.return")


def is_terminator(operation: Op) -> bool:
    return operation.name in _TERMINATORS


# Loops.


@dataclass(frozen=True)
class Carried:
    """One value that a loop carries: as a scalar, as a scalar distance from `start`, or in a buffer."""

    start: Value
    argument: Value
    step: tuple[Value, ...] | None = None  # what is added each time round; () for a value that stays
    buffer: Buffer | None = None

    @property
    def is_scalar(self) -> bool:
        return not self.argument.type.is_tensor


def lower_for(kernel: Kernel, operation: Op) -> None:
    context, b = kernel.context, kernel.context.b
    if operation.attributes.get("unsigned"):
        raise refuse(operation, "its bounds are compared as unsigned numbers")
    lower, upper, step = (context.scalar(each) for each in operation.operands[:3])
    body = operation.body
    starts: list[assignment.Pair] = []
    carried = [
        _plan_carried(kernel, operation, start, argument, yielded, starts)
        for start, argument, yielded in zip(
            operation.operands[3:], body.arguments[1:], body.terminator.operands, strict=True
        )
    ]
    assignment.assign(kernel, starts)
    dot.pack_before(kernel, operation)
    in_registers = [each for each in carried if each.buffer is None and each.step != ()]
    first = [_first_scalar(context, each) for each in in_registers]
    index = Scalar(b.fresh(), lower.element)

    def emit(_: Scalar, inside: list[Plain]) -> Sequence[Plain]:
        with context.region():
            context.places[body.arguments[0]] = index
            _place_arguments(context, carried, in_registers, inside)
            kernel.lower_block(kernel, body)
            return _yield_for(kernel, body, carried, in_registers, inside)

    finals = b.loop_named(index, lower, upper, step, first, emit)
    _place_results(context, operation, carried, in_registers, finals)


def _plan_carried(
    kernel: Kernel, operation: Op, start: Value, argument: Value, yielded: Value, starts: list[assignment.Pair]
) -> Carried:
    """How a value is carried; what its buffer begins with is added to `starts`."""
    if not argument.type.is_tensor:
        return Carried(start, argument)
    steps = find_steps(argument, yielded)
    if steps is not None:
        if kernel.analysis.reads_memory(start):
            kernel.fill(start)
        return Carried(start, argument, steps)
    return Carried(start, argument, None, _start_buffer(kernel, operation, start, starts))


def _start_buffer(kernel: Kernel, operation: Op, start: Value, starts: list[assignment.Pair]) -> Buffer:
    """A buffer for the initial value, to be filled by `starts`; the value's own when the loop is all that reads it."""
    place = kernel.context.places.get(start)
    analysis = kernel.analysis
    owned = isinstance(place, Buffer) and place.pointer not in kernel.context.shared
    if owned and analysis.users[start] == [operation] and analysis.same_loops(start, operation):
        assert isinstance(place, Buffer)
        return place
    buffer = kernel.context.allocate(start.type)
    starts.append((start, buffer))
    return buffer


def _first_scalar(context: Context, carried: Carried) -> Scalar:
    if carried.is_scalar:
        return context.scalar(carried.start)
    return no_distance(context, carried.argument)


def _place_arguments(
    context: Context, carried: list[Carried], in_registers: list[Carried], inside: Sequence[Plain]
) -> None:
    for each in carried:
        if each.buffer:
            context.places[each.argument] = each.buffer
        elif each.step == ():
            context.places[each.argument] = Shifted(each.start, _first_scalar(context, each))
    for each, form in zip(in_registers, inside, strict=True):
        assert isinstance(form, Scalar)
        context.places[each.argument] = form if each.is_scalar else Shifted(each.start, form)


def _yield_for(
    kernel: Kernel, body: Block, carried: list[Carried], in_registers: list[Carried], inside: Sequence[Plain]
) -> list[Plain]:
    context = kernel.context
    yielded = dict(zip([each.argument for each in carried], body.terminator.operands, strict=True))
    next_values: list[Plain] = []
    for each, form in zip(in_registers, inside, strict=True):
        if each.is_scalar:
            next_values.append(context.scalar(yielded[each.argument]))
            continue
        assert isinstance(form, Scalar)
        next_values.append(advanced(context, form, each.step or ()))
    pairs = [(yielded[each.argument], each.buffer) for each in carried if each.buffer]
    assignment.assign(kernel, [(value, buffer) for value, buffer in pairs if buffer])
    return next_values


def _place_results(
    context: Context, operation: Op, carried: list[Carried], in_registers: list[Carried], finals: Sequence[Plain]
) -> None:
    final = dict(zip([each.argument for each in in_registers], finals, strict=True))
    for result, each in zip(operation.results, carried, strict=True):
        if each.buffer:
            context.places[result] = each.buffer
            continue
        form = final.get(each.argument) or _first_scalar(context, each)
        assert isinstance(form, Scalar)
        context.places[result] = form if each.is_scalar else Shifted(each.start, form)


# While.


def lower_while(kernel: Kernel, operation: Op) -> None:
    """`before` decides; tensors that it passes on unchanged share one buffer, others get a second one."""
    context = kernel.context
    before, after = operation.regions[0][0], operation.regions[1][0]
    passed = before.terminator.operands[1:]
    starts: list[assignment.Pair] = []
    buffers = {
        argument: _start_buffer(kernel, operation, start, starts)
        for start, argument in zip(operation.operands, before.arguments, strict=True)
        if argument.type.is_tensor
    }
    assignment.assign(kernel, starts)
    passed_buffers = {
        argument: buffers.get(value) or context.allocate(value.type)
        for value, argument in zip(passed, after.arguments, strict=True)
        if value.type.is_tensor
    }
    first = [context.scalar(start) for start in operation.operands if not start.type.is_tensor]
    finals = _WhileText(kernel, before, after, buffers, passed_buffers).emit(first)
    for result, argument in zip(operation.results, after.arguments, strict=True):
        context.places[result] = passed_buffers[argument] if argument in passed_buffers else finals.pop(0)


@dataclass(frozen=True)
class _WhileText:
    kernel: Kernel
    before: Block
    after: Block
    buffers: dict[Value, Buffer]
    passed_buffers: dict[Value, Buffer]

    def emit(self, first: list[Scalar]) -> list[Scalar]:
        """Writes the loop; returns its scalar results."""
        context, b = self.kernel.context, self.kernel.context.b
        inputs = [Scalar(b.fresh(), each.element) for each in first]
        passed = [value for value in self.before.terminator.operands[1:] if not value.type.is_tensor]
        types = ", ".join(Scalar("", value.type.element).type for value in passed)
        name = b.fresh()
        head = f"{name}:{len(passed)} = " if len(passed) > 1 else f"{name} = " if passed else ""
        pairs = ", ".join(f"{new.name} = {old.name}" for new, old in zip(inputs, first, strict=True))
        input_types = ", ".join(each.type for each in first)
        start = f"({pairs}) : " if pairs else ": "
        b.line(f"{head}scf.while {start}({input_types}) -> ({types}) {{")
        with context.region():
            self._before(inputs)
        self._after(passed)
        results = b.results(name, [Scalar("", value.type.element) for value in passed]) if passed else []
        return [each for each in results if isinstance(each, Scalar)]

    def _place(self, arguments: list[Value], scalars: Sequence[Scalar], buffers: dict[Value, Buffer]) -> None:
        remaining = list(scalars)
        for argument in arguments:
            self.kernel.context.places[argument] = buffers[argument] if argument in buffers else remaining.pop(0)

    def _before(self, inputs: list[Scalar]) -> None:
        context, b = self.kernel.context, self.kernel.context.b
        self._place(self.before.arguments, inputs, self.buffers)
        self.kernel.lower_block(self.kernel, self.before)
        condition, *passed = self.before.terminator.operands
        tensors = [
            (value, self.passed_buffers[argument])
            for value, argument in zip(passed, self.after.arguments, strict=True)
            if argument in self.passed_buffers
        ]
        assignment.assign(self.kernel, tensors)
        scalars = [context.scalar(value) for value in passed if not value.type.is_tensor]
        tail = (
            f" {', '.join(each.name for each in scalars)} : {', '.join(each.type for each in scalars)}"
            if scalars
            else ""
        )
        b.line(f"scf.condition({context.scalar(condition).name}){tail}")

    def _after(self, passed: list[Value]) -> None:
        context, b = self.kernel.context, self.kernel.context.b
        inside = [Scalar(b.fresh(), value.type.element) for value in passed]
        b.line("} do {")
        b.line(f"^bb0({', '.join(f'{each.name}: {each.type}' for each in inside)}):" if inside else "^bb0:")
        with context.region():
            self._place(self.after.arguments, inside, self.passed_buffers)
            self.kernel.lower_block(self.kernel, self.after)
            yielded = self.after.terminator.operands
            pairs = zip(yielded, self.before.arguments, strict=True)
            assignment.assign(
                self.kernel, [(value, self.buffers[argument]) for value, argument in pairs if argument in self.buffers]
            )
            scalars = [context.scalar(value) for value in yielded if not value.type.is_tensor]
        names, types = ", ".join(each.name for each in scalars), ", ".join(each.type for each in scalars)
        b.line(f"scf.yield {names} : {types}" if scalars else "scf.yield")
        b.line("}")


# Branches.


def lower_if(kernel: Kernel, operation: Op) -> None:
    context = kernel.context
    condition = context.scalar(operation.operands[0])
    buffers = {result: context.allocate(result.type) for result in operation.results if result.type.is_tensor}
    scalars = [result for result in operation.results if not result.type.is_tensor]
    like: list[Plain] = [Scalar("", result.type.element) for result in scalars]

    def side(block: Block) -> Sequence[Plain]:
        with context.region():
            kernel.lower_block(kernel, block)
            pairs = list(zip(block.terminator.operands, operation.results, strict=True))
            assignment.assign(kernel, [(value, buffers[result]) for value, result in pairs if result in buffers])
            return [context.scalar(value) for value, result in pairs if result not in buffers]

    sides = [region[0] for region in operation.regions if region]
    if any(len(region) > 1 for region in operation.regions):
        raise refuse(operation, "a side of it branches out")
    otherwise = (lambda: side(sides[1])) if len(sides) > 1 else None
    forms = context.branch(condition, like, lambda: side(sides[0]), otherwise)
    for result, form in zip(scalars, forms, strict=True):
        assert isinstance(form, Scalar)
        context.places[result] = form
    for result, buffer in buffers.items():
        context.places[result] = buffer
