"""A kernel on one target: what its units there have in common is made once, and is the same object in all of them.

In: a checked `KernelSpec` and a target. Out: options, arguments and readings of combinations, for `expand`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from precast.errors import SpecError
from precast.grid import Expression
from precast.spec.arguments import is_unaligned
from precast.spec.decorators import digest_configs
from precast.spec.hints import hint_sets
from precast.spec.matrix import AXIS_PLACE
from precast.spec.model import (
    Argument,
    ArgumentSpec,
    Constant,
    Hint,
    HintSet,
    KernelSpec,
    Options,
    Scalar,
    SourceReading,
    Unit,
    Values,
    Variant,
)
from precast.spec.types import BITS, ArgumentType, parse_type
from precast.target import OPTIONS, Backend, Target, float8_types

Made = TypeVar("Made")


@dataclass(frozen=True)
class Form:
    """What units have in common whose values decide the same types, hints and requirements.

    A text among the arguments is the name of a constexpr that has each unit's own value.
    """

    hints: tuple[Hint, ...]
    arguments: tuple[Argument | str, ...]
    requires: tuple[str, ...]

    def unit(
        self,
        kernel: TargetKernel,
        values: Values,
        own: Mapping[str, Constant],
        options: Options,
        reading: SourceReading,
    ) -> Unit:
        arguments = [kernel.constexpr(each, own[each]) if type(each) is str else each for each in self.arguments]
        spec = kernel.spec
        return Unit(
            Variant(spec.name, values, self.hints), kernel.target, spec.source, cast(Any, tuple(arguments)), options,
            kernel.grid, reading, self.requires, spec.run_time_defaults, spec.docstring,
        )  # fmt: skip


@dataclass(frozen=True)
class TargetKernel:
    """A kernel on one target: what its units share is made once, and is the same object in all of them."""

    spec: KernelSpec
    target: Target
    forms: dict[tuple[str, ...], dict[tuple[object, ...], tuple[Form, ...]]] = field(default_factory=dict)
    sound_grids: dict[tuple[str, ...], set[tuple[object, ...]]] = field(default_factory=dict)
    _made: dict[tuple[object, ...], Any] = field(default_factory=dict)
    _constexprs: dict[tuple[str, type, Constant], Argument] = field(default_factory=dict)

    def once(self, make: Callable[..., Made], *words: object) -> Made:
        """What `make` makes of `words`; a word is not taken for another that merely equals it (`1`, `true`)."""
        key = (make.__name__, *words, *map(type, words))
        if key not in self._made:
            self._made[key] = make(*words)
        return cast(Made, self._made[key])

    @cached_property
    def configs(self) -> str:
        """The digest of the source's own configs, where the spec takes those."""
        return digest_configs(self.spec.configs_on(self.target)) if self.spec.configs_of_source else ""

    @cached_property
    def options(self) -> Mapping[str, Scalar]:
        """Those of the spec and of the sections for the target, of which later ones win."""
        sections = [section.options for section in self.spec.targets if self.target.matches(section.pattern)]
        return {name: value for options in (self.spec.options, *sections) for name, value in options}

    @cached_property
    def known_options(self) -> frozenset[str]:
        """The options that the target's backend has and the kernel takes as such."""
        return frozenset(rule.name for rule in OPTIONS[self.target.kind]).difference(self.spec.constexprs)

    @cached_property
    def own_options(self) -> Options:
        """The options of units of which no axis or config says one."""
        return self.merge_options({})

    def merge_options(self, said: Mapping[str, Scalar]) -> Options:
        """The options of a unit: those that its axes and config say win."""
        merged = {**self.options, **said}
        return tuple((name, merged[name]) for name in sorted(merged) if name in self.known_options)

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        return dict(self.spec.constants)

    @cached_property
    def defaults(self) -> Mapping[str, Constant]:
        return self.spec.defaults_on(self.target)

    @cached_property
    def arguments(self) -> Mapping[str, ArgumentSpec]:
        return {argument.name: argument for argument in self.spec.arguments}

    @cached_property
    def grid(self) -> tuple[str, ...]:
        return tuple(expression.text for expression in self.spec.grid)

    @cached_property
    def computed_grid(self) -> tuple[Expression, ...]:
        """The dimensions that are more than a number."""
        return tuple(each for each in self.spec.grid if len(each.steps) > 1 or each.names)

    @cached_property
    def grid_constexprs(self) -> tuple[str, ...]:
        """The constexprs that grid, requirements and values of arguments are computed from."""
        values = (expression for _, expression in self.spec.equals)
        expressions = (*self.spec.grid, *self.spec.requires, *values)
        names = {name for expression in expressions for name in expression.names}
        return tuple(name for name in self.spec.constexprs if name in names)

    @cached_property
    def computed_from(self) -> tuple[tuple[Expression, str], ...]:
        """Expressions with the arguments that they read and whose types axes give."""
        loose = {argument.name for argument in self.spec.arguments if "{" in argument.type}
        expressions = (*self.spec.grid, *self.spec.requires)
        return tuple((each, name) for each in expressions for name in each.names if name in loose)

    def hints(self, *present: str) -> tuple[HintSet, ...]:
        return hint_sets(self.spec, present)

    def type(self, name: str, text: str) -> ArgumentType:
        """The type that an argument has by its text with every place filled."""
        argument = self.arguments[name]
        try:
            kind = parse_type(text)
        except SpecError as error:
            raise SpecError(error.message, argument.where, error.hint) from None
        self._check_float8(argument, kind)
        if argument.align > 1 and kind.kind != "none" and is_unaligned(text):
            raise SpecError(f"`align` is for pointers and integers, and `{name}` is `{kind}`", argument.where)
        return kind

    def _check_float8(self, argument: ArgumentSpec, kind: ArgumentType) -> None:
        for word in kind.elements():
            if word.startswith("fp8") and word not in float8_types(self.target):
                known = float8_types(self.target)
                message = f"{self.target} has no type `{word}`, which argument `{argument.name}` needs"
                hint = f'it has {", ".join(known)}; say others in [kernel.{self.spec.name}.target."{self.target}"]'
                raise SpecError(message, argument.where, hint)

    def argument(self, name: str, kind: str, divisor: int, equal: int | None = None) -> Argument:
        """A run-time argument of a type, with the divisor that a hint promises; 0: none does."""
        if kind == "none":
            return Argument(name, "none", True, None)
        if equal == 1 and BITS[kind] > 1:
            return Argument(name, kind, True, 1, equal=1)  # as Triton has the value 1
        if equal is not None:
            return Argument(name, kind, equal=equal)
        promise = self.arguments[name]
        range32 = promise.range32 and self.target.kind is Backend.HIP
        # An alignment of 1 promises nothing, and Triton's attribute is left out for it.
        align = promise.align if promise.align > 1 else 0
        if divisor == 1:
            return Argument(name, kind, True, 1, align)
        return Argument(name, kind, False, None, max(align, divisor), range32)

    def constexpr(self, name: str, value: Constant) -> Argument:
        key = name, type(value), value
        found = self._constexprs.get(key)
        if found is None:
            found = self._constexprs[key] = Argument(name, "constexpr", True, value)
        return found

    @cached_property
    def decisive(self) -> frozenset[str]:
        """The axes and constexprs whose values may decide more of a unit than its constexprs and options."""
        expressions = (*self.spec.requires, *(expression for _, expression in self.spec.equals))
        computed = (name for expression in expressions for name in expression.names)
        return frozenset(
            [
                *self._filled,
                *(place for each in self.spec.arguments for place in AXIS_PLACE.findall(each.type)),
                *computed,
            ]
        )

    @cached_property
    def computing(self) -> frozenset[str]:
        """The axes and constexprs whose values decide whether the grid can be computed."""
        return frozenset([*self._filled, *(name for expression in self.spec.grid for name in expression.names)])

    @cached_property
    def _filled(self) -> frozenset[str]:
        """The axes that fill in `constants`."""
        texts = (value for value in self.constants.values() if isinstance(value, str))
        return frozenset(place for text in texts for place in AXIS_PLACE.findall(text))

    def unit_options(self, values: Mapping[str, Constant]) -> Options:
        """The options that the target's backend has; an option axis or config wins over a section."""
        known = self.known_options
        return self.merge_options(
            {name: value for name, value in values.items() if name in known and isinstance(value, Scalar)}
        )

    def reading(self, *names: str) -> SourceReading:
        """What was read in the source of combinations that give values to `names`."""
        return SourceReading(self._silent(*names), (), self.configs)

    def _silent(self, *names: str) -> Values:
        """The constexprs that have the source's own value."""
        given = {*names, *self.constants}
        return tuple((name, self.defaults[name]) for name in self.spec.constexprs if name not in given)
