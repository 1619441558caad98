"""The grid language: how many programs a launch has, and what it requires, computed from its arguments.

In: the text of one grid dimension, as `cdiv(n_rows, BLOCK)`, or of a requirement, as `n_cols <= BLOCK`. Out: an
`Expression`, which Python evaluates and which `compile_grid` binds to a unit as a `GridProgram` for the C runtime.
One semantics for both.

Language: decimal integers, names (integer arguments, axes, constexprs), `+ - * // %`, parentheses,
`min(a, b, …)`, `max(a, b, …)`, `cdiv(a, b)`. There is no unary minus. A requirement is two such expressions with one
of `< <= == != >= >` between them.

Semantics: every value is a signed 64-bit integer; a comparison is 1 where it holds, else 0. Intermediate values may be
negative; `//` rounds towards minus infinity, `%` has the sign of the divisor, `cdiv` rounds towards plus infinity.
It is an error when

- a value, given or computed, is below -2**63 or above 2**63 - 1 (so is `-2**63 // -1`; `-2**63 % -1` is 0),
- the divisor of `//`, `%` or `cdiv` is 0,
- the result of a grid is negative.

A postfix program is a sequence of (opcode, operand) on a stack that never holds more than `MAXIMUM_STACK`
values; it has at most `MAXIMUM_STEPS` steps and leaves exactly one value. The operand is a signed 64-bit
integer, 0 where the opcode takes none:

==  ========  ==================================================================================
 0  CONSTANT  push the operand
 1  ARGUMENT  push run-time argument number `operand` (in the order of the names given to `compile_grid`)
 2  ADD       pop b, pop a, push a + b
 3  SUBTRACT  pop b, pop a, push a - b
 4  MULTIPLY  pop b, pop a, push a * b
 5  DIVIDE    pop b, pop a, push floor(a / b)
 6  MODULO    pop b, pop a, push a - b * floor(a / b)
 7  MINIMUM   pop b, pop a, push the smaller
 8  MAXIMUM   pop b, pop a, push the larger
 9  CDIV      pop b, pop a, push ceil(a / b)
10  LESS      pop b, pop a, push whether a < b
11  AT_MOST   pop b, pop a, push whether a <= b
12  EQUAL     pop b, pop a, push whether a == b
13  UNEQUAL   pop b, pop a, push whether a != b
14  AT_LEAST  pop b, pop a, push whether a >= b
15  MORE      pop b, pop a, push whether a > b
==  ========  ==================================================================================
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from precast.errors import BugError, Place, SpecError, nearest_hint

MAXIMUM_STACK = 64
MAXIMUM_STEPS = 256
MAXIMUM_NESTING = 16
SMALLEST, LARGEST = -(2**63), 2**63 - 1


class Opcode(enum.IntEnum):
    """What a step does; the numbers are part of the launch ABI."""

    CONSTANT = 0
    ARGUMENT = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5
    MODULO = 6
    MINIMUM = 7
    MAXIMUM = 8
    CDIV = 9
    LESS = 10
    AT_MOST = 11
    EQUAL = 12
    UNEQUAL = 13
    AT_LEAST = 14
    MORE = 15


@dataclass(frozen=True)
class Step:
    """One step of an expression in postfix order; `name` is set, and `operand` 0, where a name is pushed."""

    opcode: Opcode
    operand: int = 0
    name: str = ""
    span: tuple[int, int] = field(default=(0, 0), compare=False)  # of an operator: where its second operand stands


@dataclass(frozen=True)
class Expression:
    """One parsed grid dimension or requirement, as `noun` says; `where` is the place of its first character."""

    text: str
    steps: tuple[Step, ...]
    where: Place | None = field(default=None, compare=False)
    noun: str = "grid"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the expression reads, each once, in order of first use."""
        return tuple(dict.fromkeys(step.name for step in self.steps if step.name))


@dataclass(frozen=True)
class GridProgram:
    """An expression bound to one unit: (opcode, operand) pairs for the C runtime."""

    steps: tuple[tuple[int, int], ...]


def parse_grid(text: str, names: Collection[str], where: Place | None = None) -> Expression:
    """The expression that `text` writes; `where` is the place of its first character.

    `SpecError` with the place of the offending word when it is not in the language or a name is unknown.
    """
    return _Parser(text, names, where, "grid").parse()


def parse_value(text: str, names: Collection[str], where: Place | None = None) -> Expression:
    """As `parse_grid`, of what an argument equals."""
    return _Parser(text, names, where, "value").parse()


def parse_requirement(text: str, names: Collection[str], where: Place | None = None) -> Expression:
    """As `parse_grid`, of two expressions with a comparison between them: 1 where it holds, else 0."""
    return _Parser(text, names, where, "requirement").parse_comparison()


def evaluate(expression: Expression, values: Mapping[str, int]) -> int:
    """The number of programs along one dimension; `SpecError` on overflow, division by zero or a negative result."""
    result = fold(expression, values)
    if result is None:
        raise BugError(f"{expression.noun} `{expression.text}` was evaluated without a value of each name")
    return result


def fold(expression: Expression, values: Mapping[str, int]) -> int | None:
    """As `evaluate`, while some values are not known yet: None when the result depends on them.

    What goes wrong whatever they will be is a `SpecError` at its place.
    """
    stack: list[int | None] = []
    for step in expression.steps:
        if step.opcode is Opcode.ARGUMENT:
            stack.append(_known(expression, step.name, values))
        elif step.opcode is Opcode.CONSTANT:
            stack.append(step.operand)
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_apply(expression, step, left, right))
    if stack[0] is not None and stack[0] < 0 and expression.noun == "grid":
        raise SpecError(f"{expression.noun} `{expression.text}` is negative: {stack[0]}", _place(expression))
    return stack[0]


def _known(expression: Expression, name: str, values: Mapping[str, int]) -> int | None:
    return _checked(expression, int(values[name]), f"`{name}`") if name in values else None


def compile_grid(expression: Expression, arguments: Sequence[str], constants: Mapping[str, int]) -> GridProgram:
    """Bind an expression to a unit: its run-time `arguments` in order, its axes and constexprs as `constants`.

    A name that is in both is a constant. `SpecError` when a constant does not fit in 64 bits.
    """
    steps = []
    for step in expression.steps:
        if step.name in constants:
            step = Step(Opcode.CONSTANT, _checked(expression, int(constants[step.name]), f"`{step.name}`"))
        elif step.name:
            step = replace(step, operand=arguments.index(step.name))
        steps.append((int(step.opcode), step.operand))
    return GridProgram(tuple(steps))


def _checked(expression: Expression, value: int, what: str) -> int:
    if not SMALLEST <= value <= LARGEST:
        raise SpecError(
            f"{expression.noun} `{expression.text}` overflows: {what} is outside 64 bits", _place(expression)
        )
    return value


def _place(expression: Expression, span: tuple[int, int] | None = None) -> Place | None:
    """The place of a part of the expression's text; of all of it without `span`."""
    start, end = span or (0, len(expression.text))
    where = expression.where
    return where and where.within(start, end - start)


def _apply(expression: Expression, step: Step, left: int | None, right: int | None) -> int | None:
    if step.opcode in _DIVISIONS and right == 0:
        raise SpecError(f"{expression.noun} `{expression.text}` divides by zero", _place(expression, step.span))
    if left is None or right is None:
        return None
    return _checked(expression, compute(step.opcode, left, right), "a value")


def compute(opcode: Opcode, left: int, right: int) -> int:
    """What an operator makes of two numbers, of any size; its divisor is not 0."""
    return {
        Opcode.ADD: lambda: left + right,
        Opcode.SUBTRACT: lambda: left - right,
        Opcode.MULTIPLY: lambda: left * right,
        Opcode.DIVIDE: lambda: left // right,
        Opcode.MODULO: lambda: left % right,
        Opcode.MINIMUM: lambda: min(left, right),
        Opcode.MAXIMUM: lambda: max(left, right),
        Opcode.CDIV: lambda: -(-left // right),
        Opcode.LESS: lambda: int(left < right),
        Opcode.AT_MOST: lambda: int(left <= right),
        Opcode.EQUAL: lambda: int(left == right),
        Opcode.UNEQUAL: lambda: int(left != right),
        Opcode.AT_LEAST: lambda: int(left >= right),
        Opcode.MORE: lambda: int(left > right),
    }[opcode]()


_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>//|[<>=!]=|[-+*%(),<>])|(?P<wrong>\S))")
_SUMS = {"+": Opcode.ADD, "-": Opcode.SUBTRACT}
_PRODUCTS = {"*": Opcode.MULTIPLY, "//": Opcode.DIVIDE, "%": Opcode.MODULO}
_DIVISIONS = (Opcode.DIVIDE, Opcode.MODULO, Opcode.CDIV)
COMPARISONS = {
    "<": Opcode.LESS, "<=": Opcode.AT_MOST, "==": Opcode.EQUAL, "!=": Opcode.UNEQUAL, ">=": Opcode.AT_LEAST,
    ">": Opcode.MORE,
}  # fmt: skip
_HINTS = {
    "value": "a value has integers, axes and constexprs, `+ - * // %`, parentheses, `min`, `max` and `cdiv`",
    "grid": "a grid has integers, names, `+ - * // %`, parentheses, `min`, `max` and `cdiv`",
    "requirement": "it is two grid expressions with one of `< <= == != >= >` between them, as `n_cols <= BLOCK`",
}
_THINGS = {"grid": "grid expression", "requirement": "requirement", "value": "value"}
_FUNCTIONS = {"min": Opcode.MINIMUM, "max": Opcode.MAXIMUM, "cdiv": Opcode.CDIV}


class _Parser:
    """Recursive descent over the tokens of one expression; appends steps in postfix order."""

    def __init__(self, text: str, names: Collection[str], where: Place | None, noun: str) -> None:
        self._text = text
        self._noun = noun
        self._names = names
        self._where = where
        self._tokens = [match for match in _TOKEN.finditer(text)]
        self._index = 0
        self._nesting = 0
        self._steps: list[Step] = []
        self._depth = 0

    def parse(self) -> Expression:
        self._sum()
        return self._finish()

    def parse_comparison(self) -> Expression:
        self._sum()
        if self._word not in COMPARISONS:
            found = f"`{self._word}`" if self._word else "the end"
            raise self._error(f"expected a comparison and found {found} in a {self._thing}")
        opcode = COMPARISONS[self._take()]
        self._emit_after(self._sum, opcode)
        return self._finish()

    def _finish(self) -> Expression:
        if self._word:
            raise self._error(f"unexpected `{self._word}` in a {self._thing}")
        return Expression(self._text, tuple(self._steps), self._where, self._noun)

    @property
    def _thing(self) -> str:
        return _THINGS[self._noun]

    @property
    def _word(self) -> str:
        return self._tokens[self._index][0].strip() if self._index < len(self._tokens) else ""

    @property
    def _kind(self) -> str:
        return self._tokens[self._index].lastgroup or "" if self._index < len(self._tokens) else "end"

    @property
    def _offset(self) -> int:
        at_end = self._index >= len(self._tokens)
        return len(self._text) if at_end else self._tokens[self._index].end() - len(self._word)

    def _place(self) -> Place | None:
        if self._where is None:
            return None
        return self._where.within(self._offset, len(self._word))

    def _error(self, message: str, hint: str | None = None) -> SpecError:
        hint = hint or _HINTS[self._noun]
        return SpecError(message, self._place(), hint)

    def _take(self) -> str:
        word = self._word
        self._index += 1
        return word

    def _expect(self, sign: str) -> None:
        if self._word != sign:
            found = f"`{self._word}`" if self._word else "the end"
            raise self._error(f"expected `{sign}` and found {found} in a {self._thing}")
        self._index += 1

    def _emit(self, step: Step) -> None:
        self._depth += 1 if step.opcode in (Opcode.CONSTANT, Opcode.ARGUMENT) else -1
        if len(self._steps) == MAXIMUM_STEPS or self._depth > MAXIMUM_STACK:
            raise self._error(f"the {self._thing} is too long", f"it may have {MAXIMUM_STEPS} names and operators")
        self._steps.append(step)

    def _emit_after(self, operand: Callable[[], None], opcode: Opcode) -> None:
        """An operator behind its second operand, whose place it keeps."""
        start = self._offset
        operand()
        self._emit(Step(opcode, span=(start, self._tokens[self._index - 1].end())))

    def _sum(self) -> None:
        self._chain(_SUMS, self._product)

    def _product(self) -> None:
        self._chain(_PRODUCTS, self._atom)

    def _chain(self, operators: Mapping[str, Opcode], operand: Callable[[], None]) -> None:
        operand()
        while self._word in operators:
            opcode = operators[self._take()]
            self._emit_after(operand, opcode)

    def _atom(self) -> None:
        if self._kind == "number":
            self._number()
        elif self._kind == "name":
            self._name()
        elif self._word == "(":
            self._take()
            self._nested(self._sum)
            self._expect(")")
        else:
            found = f"`{self._word}`" if self._word else "the end"
            raise self._error(f"expected a value and found {found} in a {self._thing}")

    def _nested(self, rule: Callable[[], None]) -> None:
        self._nesting += 1
        if self._nesting > MAXIMUM_NESTING:
            raise self._error(f"the {self._thing} is nested too deeply", f"at most {MAXIMUM_NESTING} parentheses deep")
        rule()
        self._nesting -= 1

    def _number(self) -> None:
        if len(self._word.lstrip("0")) > len(str(LARGEST)) or int(self._word) > LARGEST:
            raise self._error(f"`{self._word}` does not fit in 64 bits", f"the largest is {LARGEST}")
        self._emit(Step(Opcode.CONSTANT, int(self._word)))
        self._take()

    def _name(self) -> None:
        name = self._word
        follower = self._tokens[self._index + 1][0].strip() if self._index + 1 < len(self._tokens) else ""
        if follower == "(":
            self._call(name)
        elif name not in self._names:
            raise self._error(f"unknown name `{name}` in a {self._thing}", nearest_hint(name, self._names, "names"))
        else:
            self._emit(Step(Opcode.ARGUMENT, name=name))
            self._take()

    def _call(self, name: str) -> None:
        if name not in _FUNCTIONS:
            raise self._error(
                f"unknown function `{name}` in a {self._thing}", nearest_hint(name, _FUNCTIONS, "functions")
            )
        self._index += 2
        self._nested(self._sum)
        self._expect(",")
        self._emit_after(lambda: self._nested(self._sum), _FUNCTIONS[name])
        while name != "cdiv" and self._word == ",":
            self._take()
            self._emit_after(lambda: self._nested(self._sum), _FUNCTIONS[name])
        self._expect(")")
