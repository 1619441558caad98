"""A loop that each element runs through for itself, at one place. In: the op and a cursor. Out: its results' forms.

The loop is written there, with registers carried. While all lanes of a comparison hold, which is asked in each round,
loads are not masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from precast.engines.cpu.conditions import find_conditions, find_split_at_lanes
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.steps import advanced, find_steps, no_distance
from precast.engines.cpu.values import Cursor, Form, Plain, Scalar, Shifted

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context


def evaluate_loop(context: Context, operation: Op, cursor: Cursor) -> list[Form]:
    """The forms of all results at the cursor."""
    return _ElementLoop(context, operation, cursor).emit()


class _ElementLoop:
    def __init__(self, context: Context, operation: Op, cursor: Cursor) -> None:
        self.context = context
        self.operation = operation
        self.cursor = cursor
        self.body = operation.body
        self.starts = operation.operands[3:]
        self.arguments = self.body.arguments[1:]
        self.yielded = self.body.terminator.operands
        pairs = zip(self.arguments, self.yielded, strict=True)
        self.steps = [find_steps(argument, value) for argument, value in pairs]

    def emit(self) -> list[Form]:
        context, b = self.context, self.context.b
        lower, upper, step = (context.scalar(each) for each in self.operation.operands[:3])
        starts = [context.evaluate(each, self.cursor) for each in self.starts]
        first = [
            no_distance(context, argument) if steps is not None else self._wide(start)
            for argument, steps, start in zip(self.arguments, self.steps, starts, strict=True)
        ]
        index = Scalar(b.fresh(), lower.element)

        def body(_: Scalar, inside: list[Plain]) -> Sequence[Plain]:
            with context.region():
                context.places[self.body.arguments[0]] = index
                return self._round(inside)

        finals = b.loop_named(index, lower, upper, step, first, body)
        return [
            final if steps is None else self._shifted(argument, start, final) if steps else start
            for argument, steps, start, final in zip(self.arguments, self.steps, starts, finals, strict=True)
        ]

    def _wide(self, form: Form) -> Plain:
        return self.context.b.vector(form, self.cursor.width) if self.cursor.lane is not None else self._plain(form)

    def _plain(self, form: Form) -> Plain:
        return self.context.b.plain(form, 1)

    def _shifted(self, argument: Value, start: Form, distance: Plain) -> Form:
        assert isinstance(distance, Scalar)
        return self.context.shifted(argument, start, distance, self.cursor.width)

    def _round(self, inside: list[Plain]) -> Sequence[Plain]:
        context = self.context
        for argument, steps, start, form in zip(self.arguments, self.steps, self.starts, inside, strict=True):
            if steps is not None:
                assert isinstance(form, Scalar)
                distance = form if steps else no_distance(context, argument)  # handed on as it is, of any type
                context.places[argument] = Shifted(start, distance)
            else:
                for address in (False, True):
                    context.remember(argument, self.cursor.addressing(address), form)
        self._compute_scalars()
        known = self._find_known()
        following = [
            advanced(context, form, steps) if isinstance(form, Scalar) and steps is not None else form
            for form, steps in zip(inside, self.steps, strict=True)
        ]
        computed = [place for place, steps in enumerate(self.steps) if steps is None]
        values = [self.yielded[place] for place in computed]
        forms = self._computed(values, [inside[place] for place in computed], known)
        for place, form in zip(computed, forms, strict=True):
            following[place] = form
        return following

    def _compute_scalars(self) -> None:
        for operation in self.body.operations:
            if operation.results and not operation.result.type.is_tensor:
                self.context.compute_scalar(operation)

    def _find_known(self) -> list[tuple[Value, Cursor, Scalar]]:
        """Comparisons with whether they hold in all lanes of this round."""
        if self.cursor.lane is None:
            return []
        found = []
        for condition in find_conditions(self.context, self.cursor, self.yielded):
            split = find_split_at_lanes(self.context, condition)
            if split and split.before:
                whole = self.context.b.compare("sge", split.first, self.context.b.index(self.cursor.width))
                assert isinstance(whole, Scalar)
                found.append((*condition.key, whole))
        return found

    def _computed(
        self, values: list[Value], like: list[Plain], known: list[tuple[Value, Cursor, Scalar]]
    ) -> Sequence[Plain]:
        def masked() -> Sequence[Plain]:
            return [self._wide(self.context.evaluate(each, self.cursor)) for each in values]

        def whole() -> Sequence[Plain]:
            for value, cursor, _ in known:
                self.context.remember(value, cursor, self.context.b.constant(1, "i1"))
            return masked()

        if not known or not values:
            return masked()
        holds = known[0][2]
        for _, _, each in known[1:]:
            holds = self.context.b.integer("andi", holds, each)
        return self.context.branch(holds, like, whole, masked)
