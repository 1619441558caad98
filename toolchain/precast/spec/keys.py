"""The keys of a spec file, as data. In: the options of all backends. Out: tables by which specs are checked and taught.

What a key may say beyond its shape (names, expressions, promises that go together) its reader checks.
"""

from __future__ import annotations

from precast.schema import Array, Boolean, Either, Integer, Key, Nested, Real, Shape, Table, Text
from precast.spec.problem import MOST_SHIPPED
from precast.target import OPTIONS, OptionRule

MAXIMUM_REQUIREMENTS = 32

SCALAR = Either((Text(), Boolean(), Integer(), Real()), "text, number, `true` or `false`")
CONSTANT = Nested(SCALAR)
VALUES = Array(CONSTANT, 1)
EXPRESSION = Either((Text(), Integer()), "expression")


def _option_shape(rule: OptionRule) -> Shape:
    if rule.kind is bool:
        return Boolean()
    if rule.kind is str:
        return Text(tuple(str(each) for each in rule.choices))
    choices = tuple(each for each in rule.choices if isinstance(each, int))
    return Integer(None if choices else rule.minimum, rule.maximum, choices, rule.power_of_two)


def _option_keys() -> tuple[Key, ...]:
    """Every option of every backend, with the backends that have it."""
    rules = {rule.name: rule for rules in OPTIONS.values() for rule in rules}
    having = {name: [each.value for each in OPTIONS if rule in OPTIONS[each]] for name, rule in rules.items()}
    return tuple(
        Key(name, _option_shape(rule), f"of {', '.join(having[name])} targets") for name, rule in rules.items()
    )


OPTION_KEYS = Table("[kernel.NAME.options]", _option_keys(), noun="a table of options")

ARGUMENT_KEYS = Table(
    "[kernel.NAME.args]: ARGUMENT = { … }",
    (
        Key("type", Text(), "the argument's type; `{axis}` in it is filled in from the matrix", required=True),
        Key("align", Integer(1, power_of_two=True), "a promise: this divides the address or the integer", "1"),
        Key("range32", Boolean(), "a promise: the buffer ends below 2 GiB", "false"),
        Key("equal", EXPRESSION, "a promise: it has this value, of axes and constexprs"),
        Key("specialize", Array(Integer(choices=(16, 1))), "variants for a multiple of 16, and for the value 1", "[]"),
        Key("each", Boolean(), "specialised on its own, not together with the others", "false"),
    ),
    noun="a table of the argument's keys",
)

MATRIX_KEYS = Table(
    "[kernel.NAME.matrix]",
    (Key("exclude", Array(Table("", others=CONSTANT)), "combinations of axis values that are no variants", "[]"),),
    VALUES,
    "an axis: values of the constexpr or option of that name, or for `{…}` places",
    "a table of axes",
)

TARGET_KEYS = Table(
    '[kernel.NAME.target."GLOB"]',
    others=CONSTANT,
    others_meaning="an option's value, or an axis with one value or an array of them, for the targets that match",
    noun="a table of options and axes",
)

TENSOR_KEYS = Table(
    "",
    (
        Key("elements", EXPRESSION, "the tensor's number of elements", required=True),
        Key("below", EXPRESSION, "what its integers are less than; else they are 0"),
    ),
    noun="`{ elements, below }`",
)

PROBLEM_KEYS = Table(
    "[[kernel.NAME.problem]]",
    others=Either(
        (SCALAR, Array(CONSTANT), TENSOR_KEYS), "number, expression, array of such, or `{ elements, below }`"
    ),
    others_meaning="what a call to measure gives an argument, or an axis",
)

SELECTION_KEYS = Table(
    "[[kernel.NAME.selection]]",
    (Key("when", Array(Text()), "comparisons of two expressions, which the call must meet", "[]"),),
    CONSTANT,
    "the value of an axis that a call gets where it leaves it out",
    "a table of conditions and axes",
)

KERNEL_KEYS = Table(
    "[kernel.NAME]",
    (
        Key("source", Text(), "`file.py:function`, relative to the spec, or `package.module:function`", required=True),
        Key("grid", Array(EXPRESSION, 1, 3), "programs in x, y and z", "each call gives its own"),
        Key(
            "requires",
            Array(Text(), maximum=MAXIMUM_REQUIREMENTS),
            "comparisons of two expressions, which every launch must meet",
            "[]",
        ),
        Key("only", Array(Text(), 1), "globs of targets to build for", '["*"]'),
        Key("hints", Array(Array(Text()), 1), "sets of hints that hold together, a variant for each"),
        Key(
            "args",
            Table("", others=Either((Text(), ARGUMENT_KEYS)), noun="a table: a type, or a table, for each argument"),
            "every run-time argument by name",
        ),
        Key("matrix", MATRIX_KEYS, "axes: every combination of their values is a variant"),
        Key("constants", Table("", others=CONSTANT, noun="a table of values"), "constexprs with one value"),
        Key(
            "configs",
            Either((Text(("source",)), Array(Table("", others=CONSTANT, noun="a table of values"), 1))),
            "joint sets of constexprs and options, each of which multiplies the matrix; `source` takes the tuner's",
        ),
        Key("options", OPTION_KEYS, "options of the compiler"),
        Key(
            "target",
            Table("", others=TARGET_KEYS, noun="a table of tables"),
            "options and axes by target; of several that match, the later wins",
        ),
        Key("problem", Array(PROBLEM_KEYS), "calls that `precast tune` measures"),
        Key("selection", Array(SELECTION_KEYS), "what a call gets on targets that there is no evidence for"),
        Key("tune", Array(Text()), "axes that tuning chooses", "what `configs` set"),
        Key("ship", Integer(1), "configs that tuning may choose", str(MOST_SHIPPED)),
    ),
)
