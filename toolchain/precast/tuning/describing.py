"""What a candidates release says of tuning: of each kernel and target its configs, and problems with every argument.

In: specs with their units. Out: the text of `tuning.json`, which `tune` reads on a device machine.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from precast.codec import write_json
from precast.errors import SpecError
from precast.grid import Expression, fold
from precast.spec.model import Constant, KernelSpec, Unit
from precast.spec.problem import Problem, ProblemArgument
from precast.spec.types import parse_type
from precast.tuning.rules import plain

Config = tuple[tuple[str, Constant], ...]
_UNSAID = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)


def digest_code(sources: Iterable[bytes]) -> str:
    """sha256 hex over Python sources, whatever their comments and blank lines are."""
    total = hashlib.sha256()
    for data in sources:
        try:
            tokens = tokenize.tokenize(io.BytesIO(data).readline)
            words = [
                f"{each.type == tokenize.INDENT} {each.string.strip()}" for each in tokens if each.type not in _UNSAID
            ]
        except (SyntaxError, tokenize.TokenError):
            words = [hashlib.sha256(data).hexdigest()]
        total.update("\n".join(words).encode() + b"\0")
    return total.hexdigest()


def config_of(unit: Unit, axes: Sequence[str]) -> Config:
    """What a unit has for the axes that are tuned."""
    return tuple((name, value) for name, value in unit.variant.values if name in axes)


def describe_candidates(
    kernels: Sequence[KernelSpec],
    units: Sequence[Unit],
    sources: Mapping[str, str],
    ships: Mapping[tuple[str, str], Sequence[Config]],
    version: str,
) -> str:
    """`tuning.json`. `sources` are digests by kernel; `ships` the configs by kernel and target that evidence chose.

    `SpecError` at a problem that no variant takes, or whose sizes cannot be computed.
    """
    found: dict[str, Any] = {}
    for spec in kernels:
        if spec.tuning.problems and spec.tuning.axes:
            own = [unit for unit in units if unit.kernel == spec.name]
            targets = {str(target): _describe(spec, [each for each in own if each.target == target])
                       for target in dict.fromkeys(unit.target for unit in own)}  # fmt: skip
            for target, table in targets.items():
                shipped = [{name: plain(value) for name, value in each} for each in ships.get((spec.name, target), ())]
                table["ships"] = [number for number, each in enumerate(table["configs"]) if each in shipped]
            found[spec.name] = {"axes": spec.tuning.axes, "source": sources[spec.name], "targets": targets}
    if not found:
        hint = "write [[kernel.NAME.problem]] with sizes to measure, and `configs` or `tune` with what to choose from"
        raise SpecError("there is nothing to tune: no kernel has a problem, and configs to choose from", hint=hint)
    return write_json({"kernels": found, "precast": version}, indent=1) + "\n"


def _describe(spec: KernelSpec, units: Sequence[Unit]) -> dict[str, Any]:
    configs = dict.fromkeys(config_of(unit, spec.tuning.axes) for unit in units)
    groups: dict[Config, Unit] = {}
    for unit in units:
        groups.setdefault(tuple(pair for pair in unit.variant.values if pair[0] not in spec.tuning.axes), unit)
    standard = {name for name, _ in spec.run_time_defaults}
    problems = [each for problem in spec.tuning.problems for each in _problems_of(problem, groups, standard)]
    return {
        "configs": [{name: plain(value) for name, value in each} for each in configs],
        "problems": list({write_json(each): each for each in problems}.values()),
    }


def _problems_of(
    problem: Problem, groups: Mapping[Config, Unit], standard: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A problem for each combination of what it gives, and of the axes' values that it leaves open.

    Variants with an argument that it says nothing of, and that has no default (`standard`), are not meant.
    """
    given = dict(problem.axes)
    fitting = {
        axes: unit
        for axes, unit in groups.items()
        if all(any(_same(value, each) for each in given[name]) for name, value in axes if name in given)
    }
    if not fitting:
        raise SpecError("no variant has the axes of the problem", problem.where)
    unsaid = {axes: _find_unsaid(problem, unit, standard) for axes, unit in fitting.items()}
    fitting = {axes: unit for axes, unit in fitting.items() if not unsaid[axes]}
    if not fitting:
        raise SpecError(f"the problem says nothing of argument `{min(unsaid.values())}`", problem.where)
    for axes, unit in fitting.items():
        counted = [[(each.name, value) for value in each.numbers] for each in problem.arguments if each.numbers]
        for numbers in itertools.product(*counted):
            yield _state_problem(problem, axes, unit, dict(numbers))


def _find_unsaid(problem: Problem, unit: Unit, standard: Collection[str]) -> str:
    """An argument of a unit that the problem says nothing of; empty where there is none."""
    said = {each.name for each in problem.arguments} | {*standard}
    open_ = (each.name for each in unit.arguments if each.type not in ("none", "constexpr") and each.equal is None)
    return next((name for name in open_ if name not in said), "")


def _same(one: Constant, other: Constant) -> bool:
    return type(one) is type(other) and one == other


def _state_problem(problem: Problem, axes: Config, unit: Unit, numbers: Mapping[str, Any]) -> dict[str, Any]:
    types = {argument.name: argument.type for argument in unit.arguments}
    sizes = {name: value for name, value in numbers.items() if type(value) is int and types[name][:1] in "iu"}
    integers = {**{name: int(value) for name, value in axes if isinstance(value, int)}, **sizes}
    try:
        _compute_integers(problem, types, integers)
        arguments = {
            each.name: _state_number(types[each.name], numbers[each.name])
            if each.numbers
            else _state(each, types[each.name], integers)
            for each in problem.arguments
        }
    except KeyError as error:
        message = f"`{error.args[0]}` is computed from itself, or from nothing that the problem states"
        raise SpecError(message, problem.where) from None
    arguments |= {each.name: {"value": each.equal} for each in unit.arguments if each.equal is not None}
    arguments |= {
        each.name: {"value": None} for each in unit.arguments if each.type == "none" and each.name not in arguments
    }
    return {"axes": {name: plain(value) for name, value in axes}, "sizes": sizes, "arguments": arguments}


def _compute_integers(problem: Problem, types: Mapping[str, str], integers: dict[str, int]) -> None:
    """Adds the integers that expressions give, each once what it is computed from is there."""
    open_ = [each for each in problem.arguments if each.expressions and types[each.name][:1] in "iu"]
    while open_:
        ready = [each for each in open_ if set(each.expressions[0].names) <= integers.keys()]
        if not ready:
            return
        integers.update({each.name: _evaluate(each.expressions[0], integers) for each in ready})
        open_ = [each for each in open_ if each not in ready]


def _state_number(type_text: str, value: Any) -> dict[str, Any]:
    """A number; of a tensor, where variants have other types for it, how many elements it has."""
    kind = parse_type(type_text)
    if kind.kind == "none":
        return {"value": None}
    return {"type": kind.element, "elements": value} if kind.kind == "pointer" else {"value": value}


def _state(argument: ProblemArgument, type_text: str, integers: Mapping[str, int]) -> dict[str, Any]:
    kind = parse_type(type_text)
    if kind.kind == "none":
        return {"value": None}
    if kind.is_integer:
        return {"value": integers[argument.name]}
    values = [_evaluate(each, integers) for each in argument.expressions]
    if kind.kind == "descriptor":
        return {"type": kind.element, "shape": values}
    below = {"below": _evaluate(argument.below, integers)} if argument.below else {}
    return {"type": kind.element, "elements": values[0], **below}


def _evaluate(expression: Expression, integers: Mapping[str, int]) -> int:
    value = fold(expression, integers)
    if value is None:
        raise KeyError(next(name for name in expression.names if name not in integers))
    if value < 0:
        raise SpecError(f"`{expression.text}` is {value}: a size is 0 or more", expression.where)
    return value
