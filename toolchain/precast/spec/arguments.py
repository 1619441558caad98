"""The `args` table of a kernel: types, promises and specialisation. In: TOML nodes. Out: `ArgumentSpec`s and hints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from precast.errors import Place
from precast.spec.keys import ARGUMENT_KEYS
from precast.spec.model import ArgumentSpec, Hint
from precast.spec.problems import Problems
from precast.spec.toml import Node, describe
from precast.spec.types import is_unknown

MAXIMUM_HINT_VARIANTS = 8
MAXIMUM_ALIGN = 2**30  # as Triton's attribute has 32 bits, with a sign
UNALIGNED = ("none", "i1", "u1")  # types that no `align` is for, beside floats, descriptors and tuples


def read_argument(name: str, node: Node, problems: Problems) -> ArgumentSpec | None:
    """One entry of `args`: a type's text, or a table of `ARGUMENT_KEYS`; None when it has no type."""
    if isinstance(node.value, str):
        return ArgumentSpec(name, node.text(), where=node.inside)
    with problems.collect():
        if not isinstance(node.value, dict):
            message = f"`{name}` must be a string or a table, not {describe(node.value)}"
            raise node.error(message, 'write its type, as `"i32"`')
        fields = node.table()
        problems.add(node.unknown_keys(ARGUMENT_KEYS.names))
        if "type" not in fields:
            raise node.key_error(f"argument `{name}` has no type", 'write `type = "i32"`')
        kind = fields["type"]
        argument = ArgumentSpec(
            name,
            kind.text(),
            _align(fields["align"]) if "align" in fields else 0,
            fields["range32"].boolean() if "range32" in fields else False,
            _specialize(fields["specialize"], kind.text()) if "specialize" in fields else (),
            fields["each"].boolean() if "each" in fields else False,
            "equal" in fields,
            kind.inside,
        )
        _check_promises(argument, fields)
        return argument
    return None


def _align(node: Node) -> int:
    align = node.integer()
    if align < 1 or align & (align - 1):
        raise node.error(f"`align` must be a power of two, not {align}")
    if align > MAXIMUM_ALIGN:
        raise node.error(f"`align` must be at most {MAXIMUM_ALIGN}, not {align}")
    return align


def _specialize(node: Node, kind: str) -> tuple[int, ...]:
    for item in node.items():
        if item.integer() not in (16, 1):
            raise item.error(f"an argument is specialised to 16 (divisible by 16) or 1 (equal to 1), not {item.value}")
        check_divisor(item, kind, item.integer())
    check_specialized(node, kind)
    return tuple(dict.fromkeys(item.integer() for item in node.items()))


def check_divisor(node: Node, kind: str, divisor: int) -> None:
    """`SpecError` at `node` where no argument of the type, as far as it is written, can be specialised so."""
    if divisor == 1 and kind.startswith("*"):
        raise node.error("a pointer cannot be specialised to 1", "only integers can")


def check_specialized(node: Node, kind: str) -> None:
    """`SpecError` at `node` where no argument of the type, as far as it is written, can be specialised at all."""
    if kind.startswith(("fp", "bf", "tensordesc", "(", "none")):
        raise node.error(f"an argument of type `{kind}` cannot be specialised", "only integers and pointers can")


def _check_promises(argument: ArgumentSpec, fields: dict[str, Node]) -> None:
    if is_unknown(argument.type):  # which is told itself
        return
    if argument.range32 and not argument.type.startswith("*"):
        raise fields["range32"].key_error(f"`range32` is for pointers, not for `{argument.type}`")
    if argument.align > 1 and is_unaligned(argument.type):
        raise fields["align"].key_error(f"`align` is for pointers and integers, not for `{argument.type}`")
    if argument.each and not argument.specialize:
        raise fields["each"].key_error("`each` needs `specialize`", "write `specialize = [16]` beside it")
    if argument.fixed:
        _check_fixed(argument, fields)


def is_unaligned(kind: str) -> bool:
    """Whether `align` says nothing of a type, as far as it is written."""
    return kind in UNALIGNED or kind.startswith(("fp", "bf", "tensordesc", "("))


def _check_fixed(argument: ArgumentSpec, fields: dict[str, Node]) -> None:
    if not argument.type.startswith(("i", "u", "{")):
        raise fields["equal"].key_error(f"`equal` is for integers, not for `{argument.type}`")
    for key in ("specialize", "align"):
        if key in fields:
            raise fields[key].key_error(f"`{key}` says nothing of an argument whose value `equal` says", "leave it out")


def hint_variants(arguments: Iterable[ArgumentSpec]) -> tuple[tuple[Hint, ...], ...]:
    """Every set of hints that a variant can have, the most specific first, the one without hints last.

    Arguments without `each` are joint: for a divisor, all that name it hold or none. Where both hold, `==1` is said.
    """
    specialised = [argument for argument in arguments if argument.specialize]
    order = {argument.name: index for index, argument in enumerate(specialised)}
    variants = [tuple(sorted(itertools.chain(*sets), key=lambda hint: order[hint.argument])) for sets in
                itertools.product(*_choices(specialised))]  # fmt: skip
    return tuple(dict.fromkeys(variants))


def count_hint_variants(arguments: Iterable[ArgumentSpec]) -> int:
    """How many `hint_variants` there are, without making any."""
    return math.prod(map(len, _choices([argument for argument in arguments if argument.specialize])))


def _choices(specialised: Sequence[ArgumentSpec]) -> list[list[tuple[Hint, ...]]]:
    """For each group of arguments that hold together, its hint sets."""
    groups = [[argument] for argument in specialised if argument.each]
    joint = [argument for argument in specialised if not argument.each]
    return [_group_choices(group) for group in ([joint] if joint else []) + groups]


def _group_choices(group: Sequence[ArgumentSpec]) -> list[tuple[Hint, ...]]:
    """The hint sets of arguments that hold together: one for each set of divisors that hold."""
    named = sorted({divisor for argument in group for divisor in argument.specialize})
    subsets = [set(holding) for size in range(len(named), -1, -1) for holding in itertools.combinations(named, size)]
    sets = [_hints_when(group, holding) for holding in subsets]
    return list(dict.fromkeys(sets))


def _hints_when(group: Sequence[ArgumentSpec], holding: set[int]) -> tuple[Hint, ...]:
    found = []
    for argument in group:
        divisors = holding & set(argument.specialize)
        if divisors:
            found.append(Hint(argument.name, min(divisors)))
    return tuple(found)


def hint_place(arguments: Iterable[ArgumentSpec]) -> Place | None:
    """Where to complain about the number of hint variants: the first argument that makes some."""
    return next((argument.where for argument in arguments if argument.specialize), None)
