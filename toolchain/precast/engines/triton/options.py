"""A unit's arguments and options in Triton's terms. In: a `Unit`. Out: signature, constants, attributes, options.

Arguments keep the kernel's order. An argument that is fixed, as a constexpr or by an `==1` hint, is a constant and
has no parameter; the others carry their promises as attributes of the parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from precast.engines import StageFailure
from precast.engines.parameters import parse_type
from precast.engines.triton import v3_9
from precast.engines.triton.constants import make_constants
from precast.errors import nearest_hint
from precast.spec.model import Argument, Options, Scalar, Unit
from precast.target import ENGINE_OPTIONS, OPTIONS, Backend, Target, float8_types

Attributes = list[list[str | int]]
# What decides nothing before the ttgir stage, which CPU units do not have.
GPU_ONLY = ("num_warps", "num_ctas", "num_stages", "maxnreg")


@dataclass(frozen=True)
class Specialization:
    """What Triton's source object is made of."""

    signature: dict[str, Any]
    constants: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], Attributes]
    values: dict[str, int]  # of parameters that have one value, which the kernel is compiled for


def specialize(unit: Unit, function: Any) -> Specialization:
    """The signature, constants and attributes of a unit, as Triton's JIT would make them for such arguments."""
    signature: dict[str, Any] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Attributes] = {}
    fixed = make_constants(unit, function)
    for index, argument in enumerate(unit.arguments):
        if argument.name in fixed:
            signature[argument.name] = "constexpr"
            constants[(index,)] = fixed[argument.name]
            continue
        signature[argument.name] = parse_type(argument.type)
        found = make_attributes(argument, unit.target.kind)
        if found:
            attributes[(index,)] = found
    values = {each.name: each.equal for each in unit.arguments if each.equal is not None and not each.constant}
    return Specialization(signature, constants, attributes, values)


def make_attributes(argument: Argument, backend: Backend) -> Attributes:
    """What is promised of a parameter. The 32-bit range is a promise that only AMD's compiler takes."""
    found: Attributes = []
    if argument.divisibility:
        found.append(["tt.divisibility", argument.divisibility])
    if argument.range32 and backend is Backend.HIP:
        found.append(["tt.pointer_range", 32])
    return found


def make_options(target: Target, options: Options, backend: Any) -> Any:
    """The backend's option record for a unit; `StageFailure` for an option or value that it cannot have."""
    own = ENGINE_OPTIONS if target.kind is Backend.CPU else {}
    known = (*v3_9.option_names(backend), *own)
    for name, _ in options:
        if name not in known:
            raise StageFailure(f"target {target} has no option `{name}`", hint=nearest_hint(name, known, "options"))
    left_out = (*GPU_ONLY, *own) if target.kind is Backend.CPU else ()
    wanted: dict[str, Any] = {name: value for name, value in options if name not in left_out}
    if target.kind is Backend.CPU:
        wanted["supported_fp8_dtypes"] = tuple(sorted(float8_types(target)))  # our engine's, not the front end's
    try:
        return v3_9.parse_options(backend, wanted)
    except (ValueError, AssertionError, TypeError) as error:
        raise StageFailure(f"target {target} cannot have these options: {error}") from error


def list_options(unit: Unit, options: Any) -> tuple[tuple[str, Scalar | None], ...]:
    """Every option that a spec could have stated for the unit's target, with the value that it was compiled with."""
    values = {
        rule.name: getattr(options, rule.name, ENGINE_OPTIONS.get(rule.name)) for rule in OPTIONS[unit.target.kind]
    }
    plain = {name: value for name, value in values.items() if value is None or isinstance(value, str | int | float)}
    return tuple(sorted({**plain, **dict(unit.options)}.items()))
