"""Units read back from an index write the same index again, and units of part of it the index of that part."""

from dataclasses import replace

import pytest
from launch_release import all_units

from precast.launch.formats import (
    ImagePlace,
    IndexedUnit,
    ReleaseFile,
    ReleaseIndex,
    describe_interface,
    interface_digest,
    write_index,
)
from precast.launch.formats.index_units import read_units
from precast.spec.model import Argument, Hint, Source, Spelled, Unit, Variant
from precast.target import Target

UNITS = all_units()
PLACE = ImagePlace("lib/x.so", 0, 9, "ab" * 32)
FILE = ReleaseFile(PLACE.file, 9, PLACE.digest)


def index_of(units, facts):
    interface = describe_interface("demo", units)
    indexed = tuple(IndexedUnit(unit, facts[str(unit)], PLACE) for unit in units)
    return write_index(ReleaseIndex(interface, indexed, (FILE,)))


def odd_units():
    """What no other test has: constants of every kind, options, tuples in tuples, arguments that are not there."""
    facts = replace(UNITS[0].facts, parameters=(), options=(("num_warps", 4), ("extra", None)), source_digest="cd" * 32)
    for number, (pair, flag) in enumerate(
        [("(i32, (*fp32, *kfp16), (i8,))", True), ("(none, (none, *kfp16), (i8,))", 1)]
    ):
        arguments = (
            Argument("pair", pair, divisibility=0),
            Argument("x", "*ki32" if number else "none", constant=not number),
            Argument("y", "*kbf16", divisibility=64, range32=True),
            Argument("z", "tensordesc<fp8e5[4,4,4]>"),
            Argument("e", "()"),
            Argument("s", "u8" if number else "u32", divisibility=16),
            Argument("F", "constexpr", value=flag),
            Argument("T", "constexpr", value=Spelled("(1,true)")),
            Argument("N", "constexpr", value=None),
        )
        values = (("F", flag), ("T", Spelled("(1,true)")), ("W", 'odd "word"'), ("R", 0.5), ("I", Spelled("inf")))
        source = Source("a.py", "pack.age", "kernel", True)
        unit = Unit(Variant("odd", values, (Hint("s", 16),)), Target.parse("hip:gfx942"), source, arguments,
                    (("num_warps", 8),), ("cdiv(s, 2)", "1", "1"))  # fmt: skip
        yield unit, facts


def selections():
    facts = {str(each.unit): each.facts for each in UNITS}
    units = [each.unit for each in UNITS]
    yield "all", units, facts
    for target in sorted({str(unit.target) for unit in units}):
        yield target, [unit for unit in units if str(unit.target) == target], facts
    odd = dict(odd_units())
    yield "odd", list(odd), {str(unit): facts for unit, facts in odd.items()}


@pytest.mark.parametrize("units, facts", [pytest.param(*rest, id=name) for name, *rest in selections()])
def test_an_index_is_written_again(units, facts):
    data = index_of(units, facts)
    again = read_units(data)
    assert index_of(again, facts) == data
    assert interface_digest(describe_interface("demo", again)) == interface_digest(describe_interface("demo", units))


def test_parts_give_the_index_of_the_whole_in_any_order():
    facts = {str(each.unit): each.facts for each in UNITS}
    units = [each.unit for each in UNITS]
    targets = sorted({str(unit.target) for unit in units})
    parts = [read_units(index_of([unit for unit in units if str(unit.target) == each], facts)) for each in targets]
    for order in (parts, parts[::-1]):
        # What `release.joining` does besides, constexprs in one order, no kernel here needs.
        assert index_of([unit for part in order for unit in part], facts) == index_of(units, facts)
