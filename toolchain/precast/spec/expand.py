"""A kernel's spec to its units: matrix × configs × hint variants for each target.

In: a checked `KernelSpec` and targets. Out: `Unit`s in a fixed order. What only shows with every `{axis}` filled (a
type that does not exist, an 8-bit float that a target has not) is an error here, at the argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from precast.errors import Place, SpecError
from precast.grid import fold
from precast.spec.arguments import hint_variants
from precast.spec.counting import axes_on
from precast.spec.decorators import digest_configs
from precast.spec.matrix import AXIS_PLACE
from precast.spec.model import (
    Argument,
    ArgumentSpec,
    Axis,
    Constant,
    Hint,
    KernelSpec,
    Options,
    SourceReading,
    Unit,
    Values,
    Variant,
    format_constant,
)
from precast.spec.problems import Problems
from precast.spec.types import ArgumentType, normalise_constant, parse_type
from precast.target import OPTIONS, Backend, Target, float8_types


def expand_kernel(spec: KernelSpec, targets: Iterable[Target], problems: Problems) -> tuple[Unit, ...]:
    """Every unit of a kernel on the targets that its `only` lets in; errors, each once, go to `problems`."""
    units: list[Unit] = []
    found = Problems()
    for target in targets:
        if any(map(target.matches, spec.only)):
            units.extend(_expand_on(spec, target, found))
    problems.add({str(error): error for error in reversed(found.errors)}.values())  # with the first unit's hint
    if not units and not found.errors and any(target.matches(glob) for target in targets for glob in spec.only):
        problems.add([SpecError(f"`exclude` leaves no variant of kernel `{spec.name}`", spec.where)])
    return tuple(units)


def _expand_on(spec: KernelSpec, target: Target, problems: Problems) -> Iterator[Unit]:
    sections = [section for section in spec.targets if target.matches(section.pattern)]
    options = dict(spec.options)
    for section in sections:
        options.update(section.options)
    axes, configs = tuple(axes_on(spec, target).values()), spec.configs_on(target)
    digest = digest_configs(configs) if spec.configs_of_source else ""
    for values, config in combinations(axes, configs):
        if not is_excluded(spec, values):
            expansion = _Expansion(spec, target, dict(values), options, config if digest else (), digest)
            problems.add(expansion.grid_errors(values))
            with problems.collect():
                yield from expansion.units(values)


def combinations(axes: tuple[Axis, ...], configs: tuple[Values, ...]) -> Iterator[tuple[Values, Values]]:
    """Every choice of one value per axis, with every joint config, and that config; an axis that it names gives way."""
    for config in configs or ((),):
        free = [axis for axis in axes if axis.name not in dict(config)]
        for chosen in itertools.product(*(axis.values for axis in free)):
            yield (*zip((axis.name for axis in free), chosen, strict=True), *config), config


def is_excluded(spec: KernelSpec, values: Values) -> bool:
    """Whether some `exclude` entry names these values: equal in kind as well, `1` is not `true`."""
    words = {name: format_constant(value) for name, value in values}
    return any(all(words.get(name) == format_constant(value) for name, value in each) for each in spec.exclude)


@dataclass(frozen=True)
class _Expansion:
    """One combination of axis values on one target."""

    spec: KernelSpec
    target: Target
    values: Mapping[str, Constant]
    options: Mapping[str, str | bool | int | float]
    config: Values  # the source's own that it is of, if it is of one
    configs: str  # the digest of all those

    def units(self, values: Values) -> Iterator[Unit]:
        types = {argument.name: self._type(argument) for argument in self.spec.arguments}
        present = [argument for argument in self.spec.arguments if types[argument.name].kind != "none"]
        for hints in hint_variants(present):
            yield Unit(
                Variant(self.spec.name, values, hints),
                self.target,
                self.spec.source,
                tuple(
                    self._argument(name, types, {hint.argument: hint for hint in hints})
                    for name in self.spec.parameters
                ),
                self._unit_options(),
                tuple(expression.text for expression in self.spec.grid),
                self._reading(),
            )

    def _reading(self) -> SourceReading:
        silent = set(self.spec.constexprs) - set(self.values) - set(dict(self.spec.constants))
        defaults = tuple((name, self._constant(name)) for name in self.spec.constexprs if name in silent)
        return SourceReading(defaults, self.config, self.configs)

    def grid_errors(self, values: Values) -> Iterator[SpecError]:
        """A grid that goes wrong whatever the arguments are is told here, and not by each launch."""
        names = {name for expression in self.spec.grid for name in expression.names}
        given = {name: self._constant(name) for name in self.spec.constexprs if name in names} | dict(self.values)
        constants = {name: value for name, value in given.items() if isinstance(value, int)}
        for expression in self.spec.grid:
            try:
                fold(expression, constants)
            except SpecError as error:
                depends = any(name in constants for name in expression.names)
                hint = f"so it is in `{Variant(self.spec.name, values)}`" if depends else None
                yield SpecError(error.message, error.where, hint)

    def _fill(self, text: str, where: Place | None) -> str:
        for name in AXIS_PLACE.findall(text):
            if name not in self.values:
                raise SpecError(f"axis `{name}` has no value on {self.target}", where)
        return AXIS_PLACE.sub(lambda found: _plain(self.values[found[1]]), text)

    def _type(self, argument: ArgumentSpec) -> ArgumentType:
        text = self._fill(argument.type, argument.where)
        try:
            kind = parse_type(text)
        except SpecError as error:
            raise SpecError(error.message, argument.where, error.hint) from None
        self._check_float8(argument, kind)
        return kind

    def _check_float8(self, argument: ArgumentSpec, kind: ArgumentType) -> None:
        for word in kind.elements():
            if word.startswith("fp8") and word not in float8_types(self.target):
                known = float8_types(self.target)
                message = f"{self.target} has no type `{word}`, which argument `{argument.name}` needs"
                hint = f'it has {", ".join(known)}; say others in [kernel.{self.spec.name}.target."{self.target}"]'
                raise SpecError(message, argument.where, hint)

    def _argument(self, name: str, types: Mapping[str, ArgumentType], hints: Mapping[str, Hint]) -> Argument:
        if name not in types:
            return Argument(name, "constexpr", True, self._constant(name))
        if types[name].kind == "none":
            return Argument(name, "none", True, None)
        promise = next(argument for argument in self.spec.arguments if argument.name == name)
        divisor = hints[name].divisor if name in hints else 0
        range32 = promise.range32 and self.target.kind is Backend.HIP
        # An alignment of 1 promises nothing, and Triton's attribute is left out for it.
        align = promise.align if promise.align > 1 else 0
        if divisor == 1:
            return Argument(name, str(types[name]), True, 1, align)
        divisibility = max(align, divisor)
        return Argument(name, str(types[name]), False, None, divisibility, range32)

    def _constant(self, name: str) -> Constant:
        """A constexpr's value: from an axis or config, else `constants`, else the source's default."""
        constants = dict(self.spec.constants)
        if name in self.values:
            return self.values[name]
        if name not in constants:
            return self.spec.defaults_on(self.target)[name]
        value = constants[name]
        if not isinstance(value, str):
            return value
        filled = self._fill(value, self.spec.where)
        whole = AXIS_PLACE.fullmatch(value)
        if whole:
            return self.values[whole[1]]
        try:
            return normalise_constant(filled)
        except SpecError as error:
            raise SpecError(error.message, self.spec.where, error.hint) from None

    def _unit_options(self) -> Options:
        """The options that the target's backend has; an option axis or config wins over a section."""
        known = {rule.name for rule in OPTIONS[self.target.kind]} - set(self.spec.constexprs)
        said = {name: value for name, value in self.values.items() if isinstance(value, str | bool | int | float)}
        merged = {**self.options, **said}
        return tuple((name, merged[name]) for name in sorted(merged) if name in known)


def _plain(value: Constant) -> str:
    return value if isinstance(value, str) else format_constant(value)
