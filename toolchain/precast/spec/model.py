"""What a spec says, as frozen values: kernels, variants, units. In: nothing. Out: types for every later level."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from precast.errors import Place
from precast.grid import Expression
from precast.keyed import Keyed
from precast.spec.problem import Tuning
from precast.spec.spelling import Constant as Constant
from precast.spec.spelling import Spelled as Spelled
from precast.spec.spelling import format_constant as format_constant
from precast.spec.spelling import spell as spell
from precast.target import Target

Scalar = str | bool | int | float
Options = tuple[tuple[str, Scalar], ...]  # sorted by name


@dataclass(frozen=True)
class ArgumentSpec:
    """One argument as the spec writes it; `type` may hold `{axis}` places, `where` is its first character."""

    name: str
    type: str
    align: int = 0  # bytes; a promise that the launcher checks
    range32: bool = False  # a promise: the buffer ends below 2 GiB
    specialize: tuple[int, ...] = ()  # subset of (16, 1)
    each: bool = False
    fixed: bool = False  # a promise: it equals what the kernel's `equals` say
    where: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Hint:
    """A specialisation that holds for an argument of a variant: `divisor` 16 is `%16`, 1 is `==1`."""

    argument: str
    divisor: int

    def __str__(self) -> str:
        return f"{self.argument}%{self.divisor}" if self.divisor != 1 else f"{self.argument}==1"


@dataclass(frozen=True)
class HintSet:
    """Hints that hold together, in the order of the arguments; `where` they are written, if they are."""

    hints: tuple[Hint, ...]
    where: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Axis:
    """One dimension of the matrix and its values in the order written."""

    name: str
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class TargetSection:
    """`[kernel.NAME.target."GLOB"]`: options and axes for the targets that match; later sections win."""

    pattern: str
    options: Options = ()
    axes: tuple[Axis, ...] = ()
    where: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Source(Keyed):
    """Where a kernel's function is: a project-relative file, or a module found through `pythonpath`."""

    file: str  # project-relative path of the file that was found; absolute for a module of an installed package
    module: str  # dotted name when named as a module, else ""
    function: str
    gluon: bool = False

    @property
    def text(self) -> str:
        return f"{self.module or self.file}:{self.function}"


Values = tuple[tuple[str, Constant], ...]


@dataclass(frozen=True)
class ImportedValues:
    """What a kernel's module, imported for a target, says where its text alone does not."""

    target: str
    defaults: Values = ()  # constexprs with a default
    faults: tuple[tuple[str, str], ...] = ()  # constexprs whose default no spec could state, and what it is
    configs: tuple[Values, ...] = ()  # of @triton.autotune


@dataclass(frozen=True)
class KernelSpec:
    """One `[kernel.NAME]` table, checked against the signature that `ast` read from its source."""

    name: str
    source: Source
    grid: tuple[Expression, ...]  # three, or none: then each call gives its own
    arguments: tuple[ArgumentSpec, ...]  # run-time arguments, in the source's order
    constexprs: tuple[str, ...]  # names, in the source's order
    parameters: tuple[str, ...]  # every parameter of the function, in the source's order
    defaults: tuple[tuple[str, Constant], ...] = ()  # constexprs with a literal default
    run_time_defaults: Values = ()  # arguments with a literal number, truth value or None for a default
    constants: tuple[tuple[str, Constant], ...] = ()  # [kernel.NAME.constants]: fixed or `{axis}` text
    equals: tuple[tuple[str, Expression], ...] = ()  # run-time arguments that have one value in each variant
    requires: tuple[Expression, ...] = ()  # what every launch must meet
    hints: tuple[HintSet, ...] = ()  # as written; none: what the arguments' `specialize` makes
    axes: tuple[Axis, ...] = ()
    exclude: tuple[Values, ...] = ()
    configs: tuple[Values, ...] = ()  # joint sets of constexprs and options; each multiplies the matrix
    configs_of_source: bool = False  # `configs = "source"`
    imported: tuple[ImportedValues, ...] = ()  # by target, where the source's text does not say enough
    options: Options = ()
    targets: tuple[TargetSection, ...] = ()
    only: tuple[str, ...] = ("*",)  # target globs that this kernel is built for
    source_configs: tuple[Values, ...] | None = ()  # of @triton.autotune, to be listed; None when they are computed
    heuristics: tuple[str, ...] = ()  # parameters of @triton.heuristics, to be listed
    docstring: str = ""  # of the function, for the help of its launcher
    tuning: Tuning = field(default_factory=Tuning)
    warnings: tuple[str, ...] = field(default=(), compare=False)  # of what it says to no effect
    where: Place | None = field(default=None, compare=False)
    places: Mapping[tuple[str, str], Place] = field(default_factory=dict, compare=False, repr=False)  # of values

    def _imported_on(self, target: Target) -> ImportedValues | None:
        return next((each for each in self.imported if each.target == str(target)), None)

    def defaults_on(self, target: Target) -> Mapping[str, Constant]:
        """The source's defaults of constexprs, as far as they are known."""
        found = self._imported_on(target)
        return {**dict(self.defaults), **dict(found.defaults if found else ())}

    def configs_on(self, target: Target) -> tuple[Values, ...]:
        """The joint sets that multiply the matrix on a target."""
        found = self._imported_on(target)
        return found.configs if found and self.configs_of_source else self.configs

    @property
    def every_config(self) -> tuple[Values, ...]:
        """The joint sets of all targets."""
        of_source = (config for each in self.imported for config in each.configs if self.configs_of_source)
        return tuple(dict.fromkeys((*self.configs, *of_source)))

    @property
    def every_default(self) -> tuple[tuple[str, Constant], ...]:
        """The source's defaults on all targets."""
        return (*self.defaults, *(pair for each in self.imported for pair in each.defaults))


@dataclass(frozen=True)
class SourceReading(Keyed):
    """What the plan read in a kernel's source, beside names and order of its parameters, and built a unit on.

    A worker compares it with what it imports. Where the spec takes the configs of @triton.autotune, `config` is the
    unit's own and `configs` the digest of all of them: every unit of a long list holds but its own.
    """

    defaults: Values = ()  # constexprs that have the source's own value
    config: Values = ()
    configs: str = ""


@dataclass(frozen=True)
class CompileSettings:
    """Project settings that may change code; all of it is in every key."""

    line_info: bool = False
    environment: tuple[tuple[str, str], ...] = ()  # [tool.precast.triton]: TRITON_* variables for the worker
    ptxas: str = ""  # [tool.precast.tools]: a path, or Triton's own
    module_environment: tuple[tuple[str, str], ...] = ()  # [tool.precast.environment]: what kernels' modules hear of


@dataclass(frozen=True)
class Variant:
    """A kernel with axis values and hints fixed; its text is what stands between `:` and `@` of a unit."""

    kernel: str
    values: tuple[tuple[str, Constant], ...]
    hints: tuple[Hint, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}={format_constant(value)}" for name, value in self.values]
        parts += [str(hint) for hint in self.hints]
        return f"{self.kernel}:{','.join(parts)}" if parts else self.kernel


@dataclass(frozen=True)
class Argument(Keyed):
    """One parameter of a unit with everything fixed.

    A constexpr has type `constexpr` and its `value`; an argument with hint `==1` keeps its type and has
    `value` 1 and `constant` set, so the launcher still takes it and the kernel does not. An argument that is absent
    in this variant has type `none`, `value` None and `constant` set: the launcher takes a null pointer or None. One
    that promises to `equal` 1 is a constant too; any other such value replaces the parameter where the kernel uses it.
    """

    name: str
    type: str
    constant: bool = False
    value: Constant = None
    divisibility: int = 0  # tt.divisibility: from `align` or a `%16` hint
    range32: bool = False  # tt.pointer_range 32; on AMD targets alone
    equal: int | None = None  # what the launcher is promised, of 32 bits


@dataclass(frozen=True)
class Unit:
    """Variant × target, complete: enough to compile it anywhere that has the sources."""

    variant: Variant
    target: Target
    source: Source
    arguments: tuple[Argument, ...]  # every parameter of the function, in the source's order
    options: Options
    grid: tuple[str, ...]  # three expressions; none where a call must give one, or where it decides nothing
    reading: SourceReading = SourceReading()
    requires: tuple[str, ...] = ()  # requirements that depend on a launch's arguments; for launchers alone, as `grid`
    defaults: Values = ()  # of run-time arguments; for launchers alone
    docstring: str = ""  # of the function; for launchers alone

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"{self.variant}@{self.target}"

    @property
    def kernel(self) -> str:
        return self.variant.kernel

    @cached_property
    def slug(self) -> str:
        """A file name for the unit: its kernel and 12 hex digits of its text's digest."""
        return f"{self.kernel}-{hashlib.sha256(str(self).encode()).hexdigest()[:12]}"

    @property
    def compiled(self) -> Unit:
        """The unit without what is for launchers alone: equal for units that are compiled alike."""
        if not (self.grid or self.requires or self.defaults or self.docstring):
            return self
        return Unit(self.variant, self.target, self.source, self.arguments, self.options, (), self.reading)

    @property
    def symbol(self) -> str:
        """A C name for the unit: what a CPU object exports."""
        return re.sub(r"\W", "_", self.slug)

    @property
    def stages(self) -> tuple[str, ...]:
        return self.target.stages(gluon=self.source.gluon)
