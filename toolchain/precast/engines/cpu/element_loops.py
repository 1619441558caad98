"""A loop that each element runs through for itself, at one place. In: the op and a cursor. Out: its results' forms.

The loop is written there, with registers carried. It begins with the rounds in which all lanes of the comparisons
hold, where loads are not masked; in the others every load is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from precast.engines.cpu.conditions import Condition, find_conditions, find_test_of_lanes
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.steps import advanced, find_steps, no_distance
from precast.engines.cpu.values import Cursor, Form, Plain, Scalar, Shifted

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context

Test = tuple[Condition, Plain]


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
        if self._has_tests(index, first):
            begun, *first = self._whole_rounds(lower, upper, step, first)
            assert isinstance(begun, Scalar)
            lower = begun

        def body(_: Scalar, inside: list[Plain]) -> Sequence[Plain]:
            with self._round(index, inside):
                return self._following(inside, self._compute_masked(inside))

        finals = b.loop_named(index, lower, upper, step, first, body)
        return [
            final if steps is None else self._shifted(argument, start, final) if steps else start
            for argument, steps, start, final in zip(self.arguments, self.steps, starts, finals, strict=True)
        ]

    def _has_tests(self, index: Scalar, inside: list[Plain]) -> bool:
        """Whether there are tests of a round's lanes; what is written to find them is taken back."""
        written = len(self.context.b.lines)
        with self._round(index, inside):
            found = bool(self._find_tests(True))
        del self.context.b.lines[written:]
        return found

    def _whole_rounds(self, lower: Scalar, upper: Scalar, step: Scalar, first: list[Plain]) -> list[Plain]:
        """The rounds as long as all lanes of every comparison hold; the index and what is carried after them."""
        b = self.context.b
        tests: list[Test] = []

        def test(asked: list[Plain]) -> Scalar:
            index, *inside = asked
            assert isinstance(index, Scalar)
            with self._round(index, inside):
                tests[:] = self._find_tests(True)
                holds = b.compare("slt", index, upper)
                for _, each in tests:
                    holds = b.binary("andi", holds, each)
            assert isinstance(holds, Scalar)
            return holds

        def body(asked: list[Plain]) -> Sequence[Plain]:
            index, *inside = asked
            assert isinstance(index, Scalar)
            with self._round(index, inside):
                following = self._following(inside, self._compute(tests, True))
                return [b.integer("addi", index, step), *following]

        return b.repeat([lower, *first], test, body)

    def _wide(self, form: Form) -> Plain:
        return self.context.b.vector(form, self.cursor.width) if self.cursor.lane is not None else self._plain(form)

    def _plain(self, form: Form) -> Plain:
        return self.context.b.plain(form, 1)

    def _shifted(self, argument: Value, start: Form, distance: Plain) -> Form:
        assert isinstance(distance, Scalar)
        return self.context.shifted(argument, start, distance, self.cursor.width)

    @contextmanager
    def _round(self, index: Scalar, inside: list[Plain]) -> Iterator[None]:
        """Inside, the body's arguments are those of the round."""
        context = self.context
        with context.region():
            context.places[self.body.arguments[0]] = index
            for argument, steps, start, form in zip(self.arguments, self.steps, self.starts, inside, strict=True):
                if steps is not None:
                    assert isinstance(form, Scalar)
                    distance = form if steps else no_distance(context, argument)  # handed on as it is, of any type
                    context.places[argument] = Shifted(start, distance)
                else:
                    for address in (False, True):
                        context.remember(argument, self.cursor.addressing(address), form)
            for operation in self.body.operations:
                if operation.results and not operation.result.type.is_tensor:
                    context.compute_scalar(operation)
            yield

    def _find_tests(self, value: bool) -> list[Test]:
        """Comparisons, and whether they have `value` in all lanes of this round."""
        conditions = find_conditions(self.context, self.cursor, self.yielded)
        tests = ((each, find_test_of_lanes(self.context, each, value)) for each in conditions)
        return [(condition, test) for condition, test in tests if test is not None]

    def _compute(self, known: Sequence[Test], value: bool) -> list[Plain]:
        """What is computed for the next round; the conditions in `known` have `value` in all lanes."""
        for condition, _ in known:
            self.context.remember(*condition.key, self.context.b.constant(int(value), "i1"))
        values = [each for each, steps in zip(self.yielded, self.steps, strict=True) if steps is None]
        return [self._wide(self.context.evaluate(each, self.cursor)) for each in values]

    def _compute_masked(self, inside: list[Plain]) -> list[Plain]:
        """`_compute`, where no lane may hold: loads that are masked off would fetch what they do not read."""
        b, tests = self.context.b, self._find_tests(False)
        if not tests:
            return self._compute([], False)
        none = tests[0][1]
        for _, each in tests[1:]:
            none = b.binary("andi", none, each)
        assert isinstance(none, Scalar)
        like = [form for form, steps in zip(inside, self.steps, strict=True) if steps is None]
        return self.context.branch(none, like, lambda: self._compute(tests, False), lambda: self._compute([], False))

    def _following(self, inside: list[Plain], computed: Sequence[Plain]) -> list[Plain]:
        """What the next round is given."""
        remaining = iter(computed)
        return [
            advanced(self.context, form, steps) if isinstance(form, Scalar) and steps is not None else next(remaining)
            for form, steps in zip(inside, self.steps, strict=True)
        ]
