"""A kernel's spec to its units: matrix × configs × hint variants for each target.

In: a checked `KernelSpec` and targets. Out: `Unit`s in a fixed order. What only shows with every `{axis}` filled (a
type that does not exist, an 8-bit float that a target has not) is an error here, at the argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from precast.errors import BugError, Place, SpecError
from precast.grid import Expression, fold
from precast.spec.bounds import Bounds, find_bounds, type_bounds
from precast.spec.counting import axes_on
from precast.spec.matrix import AXIS_PLACE
from precast.spec.model import (
    Argument,
    ArgumentSpec,
    Axis,
    Constant,
    Hint,
    KernelSpec,
    Unit,
    Values,
    Variant,
    format_constant,
)
from precast.spec.on_target import Form, TargetKernel
from precast.spec.problems import Problems
from precast.spec.types import BITS, ArgumentType, normalise_constant, parse_type
from precast.target import Target

COMMON = ("i32", "16")  # one of them makes sense wherever a type has a place


def expand_kernel(spec: KernelSpec, targets: Iterable[Target], problems: Problems) -> tuple[Unit, ...]:
    """Every unit of a kernel on the targets that its `only` lets in; errors, each once, go to `problems`."""
    units: list[Unit] = []
    found = Problems()
    refused: list[frozenset[str]] = []
    for target in targets:
        if any(map(target.matches, spec.only)):
            units.extend(_expand_on(spec, target, found, refused))
    problems.add({str(error): error for error in reversed(found.errors)}.values())  # with the first unit's hint
    if not units and not found.errors and any(target.matches(glob) for target in targets for glob in spec.only):
        problems.add([_nothing_left(spec, refused)])
    return tuple(units)


def _nothing_left(spec: KernelSpec, refused: Sequence[frozenset[str]]) -> SpecError:
    """Why a kernel has no variant: a requirement that none meets, or what is left out altogether."""
    everywhere = frozenset.intersection(*refused) if refused else frozenset()
    for expression in spec.requires:
        if expression.text in everywhere:
            message = f"no variant of kernel `{spec.name}` can meet `{expression.text}`, whatever the launch"
            return SpecError(message, expression.where)
    message = "`exclude` and `requires` leave" if refused else "`exclude` leaves"
    return SpecError(f"{message} no variant of kernel `{spec.name}`", spec.where)


def _expand_on(spec: KernelSpec, target: Target, problems: Problems, refused: list[frozenset[str]]) -> Iterator[Unit]:
    """The units on a target; the requirements that no launch of a combination meets go to `refused`."""
    kernel = TargetKernel(spec, target)
    axes = tuple(axes_on(spec, target).values())
    for config in spec.configs_on(target) or ((),):
        choices = _Choices(kernel, config, axes)
        for values in choices.combinations():
            if not spec.exclude or not is_excluded(spec, values):
                try:
                    yield from _expand_values(choices, values, problems, refused)
                except SpecError as error:
                    problems.add([error])


def _expand_values(
    choices: _Choices, values: Values, problems: Problems, refused: list[frozenset[str]]
) -> Iterator[Unit]:
    """The units of one combination of values."""
    kernel = choices.kernel
    decisive, computing = part_of(values, choices.decisive), part_of(values, choices.computing)
    forms = choices.forms.get(decisive)
    if forms is None or computing not in choices.sound_grids:
        expansion = _Expansion(kernel, dict(values))
        requires, unmet = expansion.requirements(values)
        if unmet:
            refused.append(unmet)
            return
        faults = list(expansion.grid_errors(values))
        problems.add(faults)
        if not faults:  # else the other combinations tell theirs
            choices.sound_grids.add(computing)
        if forms is None:
            forms = choices.forms[decisive] = tuple(expansion.forms(values, requires))
    own = dict(values)
    options = kernel.own_options if choices.has_own_options else kernel.unit_options(own)
    for form in forms:
        yield form.unit(kernel, values, own, options, choices.reading)


def part_of(values: Values, places: Collection[int]) -> tuple[object, ...]:
    """Equal for combinations of the same names that differ in no value at `places`; `1` is not `true`."""
    return tuple([(values[place][1].__class__, values[place][1]) for place in places])


class _Choices:
    """The combinations of one joint config, and what they have in common.

    `names` are those of each combination, in order; `forms` goes by the decisive part of a combination, `sound_grids`
    holds the computing parts for which the grid goes well.
    """

    def __init__(self, kernel: TargetKernel, config: Values, axes: tuple[Axis, ...]) -> None:
        joint = dict(config)
        free = [axis for axis in axes if axis.name not in joint]  # one that the config names gives way
        self.kernel = kernel
        self.config = config
        self.names = (*(axis.name for axis in free), *joint)
        self.decisive = self._places(kernel.decisive)
        self.computing = self._places(kernel.computing)
        self.forms = kernel.forms.setdefault(self.names, {})
        self.sound_grids = kernel.sound_grids.setdefault(self.names, set())
        self.has_own_options = kernel.known_options.isdisjoint(self.names)
        shared = kernel.once(kernel.reading, *self.names)
        self.reading = replace(shared, config=config) if kernel.configs else shared  # where it is the source's own
        self._pairs = [[(axis.name, value) for value in axis.values] for axis in free]

    def combinations(self) -> Iterator[Values]:
        """Every choice of one value per axis, with the config."""
        return (chosen + self.config for chosen in itertools.product(*self._pairs))

    def _places(self, names: Collection[str]) -> tuple[int, ...]:
        return tuple(place for place, name in enumerate(self.names) if name in names)


def is_excluded(spec: KernelSpec, values: Values) -> bool:
    """Whether some `exclude` entry names these values: equal in kind as well, `1` is not `true`."""
    words = {name: format_constant(value) for name, value in values} if spec.exclude else {}
    return any(all(words.get(name) == format_constant(value) for name, value in each) for each in spec.exclude)


@dataclass(frozen=True)
class _Expansion:
    """One combination of axis values on one target."""

    kernel: TargetKernel
    values: Mapping[str, Constant]

    @property
    def spec(self) -> KernelSpec:
        return self.kernel.spec

    def forms(self, values: Values, requires: tuple[str, ...]) -> Iterator[Form]:
        """One for each set of hints."""
        kernel = self.kernel
        types = {argument.name: self._type(argument) for argument in self.spec.arguments}
        for expression, name in kernel.computed_from:
            if not types[name].is_integer:
                message = f"`{name}` is no integer in `{Variant(self.spec.name, values)}`"
                raise SpecError(f"{message}: a {expression.noun} is computed from integers", expression.where)
        present = [name for name, kind in types.items() if kind.kind != "none"]
        texts = {name: str(kind) for name, kind in types.items()}
        equal = {name: self._equal(name, types[name], each, values) for name, each in self.spec.equals}
        plain = {
            name: kernel.once(kernel.argument, name, texts[name], 0, equal.get(name))
            if name in texts
            else self._constexpr(name)
            for name in self.spec.parameters
        }
        for each in kernel.once(kernel.hints, *present):
            for hint in each.hints:
                _check_hint(hint, types[hint.argument], each.where or kernel.arguments[hint.argument].where)
            hinted = {
                hint.argument: kernel.once(kernel.argument, hint.argument, texts[hint.argument], hint.divisor)
                for hint in each.hints
            }
            yield Form(each.hints, tuple({**plain, **hinted}.values()), requires)

    def _constexpr(self, name: str) -> Argument | str:
        return name if name in self.values else self.kernel.constexpr(name, self._constant(name))

    def _equal(self, name: str, kind: ArgumentType, expression: Expression, values: Values) -> int | None:
        """The value that an argument promises to have, which its type holds, and 32 bits; None where it is absent."""
        if kind.kind == "none":
            return None
        variant = Variant(self.spec.name, values)
        if not kind.is_integer:
            message = f"`equal` is for integers, and `{name}` is `{kind}` in `{variant}`"
            raise SpecError(message, expression.where)
        value = self._fold(expression, values)
        if value is None:
            raise BugError(f"`{expression.text}` is not computed from axes and constexprs")
        bits = min(BITS[kind.element], 32)
        signed = kind.element.startswith("i") and bits > 1
        if not (-(2 ** (bits - 1)) if signed else 0) <= value < 2 ** min(31, bits - signed):
            what = str(kind) if bits < 32 else "an integer of 32 bits with a sign"
            message = f"`{name}` would equal {value}, which does not fit in {what}"
            raise SpecError(message, expression.where, f"so it is in `{variant}`")
        return value

    def grid_errors(self, values: Values) -> Iterator[SpecError]:
        """A grid that goes wrong whatever the arguments are is told here, and not by each launch."""
        for expression in self.kernel.computed_grid:
            try:
                self._fold(expression, values)
            except SpecError as error:
                yield error

    def requirements(self, values: Values) -> tuple[tuple[str, ...], frozenset[str]]:
        """The requirements that depend on a launch's arguments, and those that no arguments at all meet."""
        if not self.spec.requires:
            return (), frozenset()
        results = {each: self._fold(each, values) for each in self.spec.requires}
        open_ones = [each for each, holds in results.items() if holds is None]
        unmet = {each.text for each, holds in results.items() if holds == 0}
        if open_ones and not unmet:
            bounds = self._bounds(open_ones, values)
            unmet = {each.text for each in open_ones if find_bounds(each, bounds) in (None, (0, 0))}
        return tuple(each.text for each in open_ones), frozenset(unmet)

    def _bounds(self, expressions: Iterable[Expression], values: Values) -> Mapping[str, Bounds]:
        """Between which numbers the names of expressions lie: what is known exactly, else by their types."""
        equals = dict(self.spec.equals)
        found = {name: (value, value) for name, value in self._integers.items()}
        for name in dict.fromkeys(name for each in expressions for name in each.names if name not in found):
            try:
                kind = self._type(self.kernel.arguments[name])
                equal = self._equal(name, kind, equals[name], values) if name in equals else None
            except SpecError:  # told when the unit is made
                continue
            found[name] = (equal, equal) if equal is not None else type_bounds(kind)
        return found

    def _fold(self, expression: Expression, values: Values) -> int | None:
        constants = self._integers
        try:
            return fold(expression, constants)
        except SpecError as error:
            depends = any(name in constants for name in expression.names)
            hint = f"so it is in `{Variant(self.spec.name, values)}`" if depends else None
            raise SpecError(error.message, error.where, hint) from None

    @cached_property
    def _integers(self) -> Mapping[str, int]:
        """The axes and constexprs that expressions may be computed from."""
        given = {name: self._constant(name) for name in self.kernel.grid_constexprs} | dict(self.values)
        return {name: value for name, value in given.items() if isinstance(value, int)}

    def _fill(self, text: str, where: Place | None) -> str:
        if "{" not in text:
            return text
        for name in AXIS_PLACE.findall(text):
            if name not in self.values:
                raise SpecError(f"axis `{name}` has no value on {self.kernel.target}", where)
        return AXIS_PLACE.sub(lambda found: _plain(self.values[found[1]]), text)

    def _type(self, argument: ArgumentSpec) -> ArgumentType:
        text = self._fill(argument.type, argument.where)
        try:
            return self.kernel.once(self.kernel.type, argument.name, text)
        except SpecError as error:
            where = self._culprit(argument.type, parse_type) or error.where
            raise SpecError(error.message, where, error.hint) from None

    def _culprit(self, template: str, parse: Callable[[str], object]) -> Place | None:
        """Where the one value stands that makes no sense of a text which others in its place would make sense of."""
        names = dict.fromkeys(AXIS_PLACE.findall(template))
        wrong = [name for name in names if any(self._makes_sense(template, parse, name, each) for each in COMMON)]
        return self.spec.places.get((wrong[0], format_constant(self.values[wrong[0]]))) if len(wrong) == 1 else None

    def _makes_sense(self, template: str, parse: Callable[[str], object], name: str, word: str) -> bool:
        filled = {**{each: _plain(value) for each, value in self.values.items()}, name: word}
        try:
            parse(AXIS_PLACE.sub(lambda found: filled[found[1]], template))
        except SpecError:
            return False
        return True

    def _constant(self, name: str) -> Constant:
        """A constexpr's value: from an axis or config, else `constants`, else the source's default."""
        if name in self.values:
            return self.values[name]
        if name not in self.kernel.constants:
            return self.kernel.defaults[name]
        value = self.kernel.constants[name]
        if not isinstance(value, str):
            return value
        filled = self._fill(value, self.spec.where)
        whole = AXIS_PLACE.fullmatch(value)
        if whole:
            return self.values[whole[1]]
        try:
            return normalise_constant(filled)
        except SpecError as error:
            own = self.spec.places.get((name, format_constant(value)), self.spec.where)
            raise SpecError(error.message, self._culprit(value, normalise_constant) or own, error.hint) from None


def _check_hint(hint: Hint, kind: ArgumentType, where: Place | None) -> None:
    """A type with `{axis}` places tells only when they are filled whether it can be specialised."""
    if not kind.is_integer and (kind.kind != "pointer" or hint.divisor == 1):
        message = f"`{hint}`: an argument of type `{kind}` cannot be specialised so"
        raise SpecError(message, where, "integers are multiples of 16 or 1, pointers are multiples of 16")


def _plain(value: Constant) -> str:
    return value if isinstance(value, str) else format_constant(value)
