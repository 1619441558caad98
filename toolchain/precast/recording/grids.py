"""The grid of a kernel from launches of it, as expressions of its arguments where they leave one choice.

In: grids with the integers that they may have been computed from. Out: texts in the grid language, or none: what two
expressions fit that are not the same is not guessed at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from precast.errors import SpecError
from precast.grid import evaluate, parse_grid
from precast.recording.notes import Sample

_MOST_CHOICES = 4096  # of expressions for each dimension, together


def infer_grid(samples: Sequence[Sample], constexprs: Iterable[str]) -> tuple[str, ...]:
    """One expression for each dimension that some launch has; none where the samples do not tell.

    What a grid's own function read has a place in it, so that one launch may be enough to tell.
    """
    if not samples:
        return ()
    names = [
        name
        for name in samples[0].values
        if all(name in each.values for each in samples) and any(each.values[name] != 1 for each in samples)
    ]  # one that is always 1 is so in every variant: the JIT makes another for any other number
    divisors = [name for name in names if name in set(constexprs)]
    rank = max(len(each.grid) for each in samples)
    sizes = [[(*each.grid, 1, 1)[axis] for each in samples] for axis in range(rank)]
    values = [each.values for each in samples]
    choices = [find_expressions(values, each, names, divisors) for each in sizes]
    read = {name for each in samples for name in each.read if name in names}
    found = [each for each in _combine(choices) if read <= {name for text in each for name in _names(text, names)}]
    return found[0] if len(found) == 1 else ()


def _combine(choices: Sequence[Sequence[str]]) -> Iterable[tuple[str, ...]]:
    count = 1
    for each in choices:
        count *= len(each)
    return itertools.product(*choices) if count <= _MOST_CHOICES else ()


def _names(text: str, names: Iterable[str]) -> tuple[str, ...]:
    return parse_grid(text, set(names)).names


def find_expressions(
    values: Sequence[Mapping[str, int]], sizes: Sequence[int], names: Sequence[str], divisors: Sequence[str]
) -> list[str]:
    """The expressions that come to these sizes: a number, a name, `cdiv`, and products of two of those.

    `n // BLOCK` is one only where no `cdiv` fits: where a size is a multiple in every launch, they are the same.
    """
    number = [str(sizes[0])] if len(set(sizes)) == 1 else []
    plain = [name for name in names if name not in divisors] + [name for name in names if name in divisors]
    ceilings = [f"cdiv({name}, {divisor})" for divisor in divisors for name in names if name != divisor]
    floors = [f"{name} // {divisor}" for divisor in divisors for name in names if name != divisor]
    for quotients in (ceilings, floors):
        factors = {text: _compute(text, values) for text in (*plain, *quotients)}
        singles = [text for text in factors if factors[text] == list(sizes)]
        several = {text: each for text, each in factors.items() if each and set(each) != {1} and text not in divisors}
        pairs = [
            f"{_factor(left)} * {_factor(right)}"
            for left, right in itertools.combinations(several, 2)
            if [a * b for a, b in zip(several[left], several[right], strict=True)] == list(sizes)
        ]
        found = [*number, *singles, *pairs]
        if singles or pairs:
            return found
    return number


def _factor(text: str) -> str:
    return f"({text})" if " // " in text else text


def _compute(text: str, values: Sequence[Mapping[str, int]]) -> list[int]:
    """What an expression comes to in each launch; empty where it goes wrong in one."""
    names = values[0].keys()
    expression = parse_grid(text, set(names))
    try:
        return [evaluate(expression, each) for each in values]
    except SpecError:
        return []


def fits(grid: Sequence[str], sample: Sample) -> bool:
    """Whether a grid as a spec writes it is the one of a launch; True where it cannot be told."""
    found = [_compute(str(text), [sample.values]) if _readable(str(text), sample) else [] for text in grid]
    sizes = (*sample.grid, 1, 1)
    return all(not each or each[0] == size for each, size in zip(found, sizes, strict=False))


def _readable(text: str, sample: Sample) -> bool:
    try:
        parse_grid(text, set(sample.values))
    except SpecError:
        return False
    return True
