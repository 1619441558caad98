"""The grid language: what parses, what it means (against Python's integers), and the exact errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precast.errors import Place, SpecError
from precast.grid import LARGEST, SMALLEST, Opcode, compile_grid, evaluate, fold, parse_grid

NAMES = ("n", "m", "BLOCK")
LARGEST_HINT = f"the largest is {LARGEST}"


def run_program(program, arguments):
    """The docstring's table, written down a second time, as a C runtime reads it."""
    stack = []
    for opcode, operand in program.steps:
        if opcode == 0:
            stack.append(operand)
        elif opcode == 1:
            stack.append(arguments[operand])
        else:
            b, a = stack.pop(), stack.pop()
            if opcode in (5, 6, 9) and b == 0:
                raise ZeroDivisionError
            stack.append(
                [
                    a + b,
                    a - b,
                    a * b,
                    *([a // b, a % b] if b else [0, 0]),
                    min(a, b),
                    max(a, b),
                    -(-a // b) if b else 0,
                ][opcode - 2]
            )
        if not SMALLEST <= stack[-1] <= LARGEST:
            raise OverflowError
    (result,) = stack
    return result


def expressions():
    leaves = st.integers(0, 1000).map(str) | st.sampled_from(NAMES)
    operators = st.sampled_from(["+", "-", "*", "//", "%"])

    def grow(inner):
        return (
            st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
            | st.tuples(inner, operators, inner).map(lambda t: f"{t[0]}{t[1]}{t[2]}")
            | st.tuples(st.sampled_from(["min", "max", "cdiv"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
        )

    return st.recursive(leaves, grow, max_leaves=12)


def cdiv(a, b):
    return -(-a // b)


@given(expressions(), st.integers(0, 2**40), st.integers(-5, 5), st.integers(1, 2**20))
def test_means_what_python_means(text, n, m, block):
    values = {"n": n, "m": m, "BLOCK": block}
    expression = parse_grid(text, NAMES)
    program = compile_grid(expression, ("m", "n"), {"BLOCK": block})
    try:
        expected = eval(text, {"min": min, "max": max, "cdiv": cdiv}, values)
    except ZeroDivisionError:
        with pytest.raises(SpecError, match=r"divides by zero|overflows"):
            evaluate(expression, values)
        with pytest.raises((ZeroDivisionError, OverflowError)):
            run_program(program, (m, n))
        return
    try:
        result = evaluate(expression, values)
    except SpecError as error:
        if "overflows" in error.message:
            with pytest.raises(OverflowError):
                run_program(program, (m, n))
        else:
            assert expected < 0 and error.message == f"grid `{text}` is negative: {expected}"
        return
    assert result == expected == run_program(program, (m, n))


@pytest.mark.parametrize(
    ("text", "n", "message"),
    [
        ("n * n", 2**40, "grid `n * n` overflows: a value is outside 64 bits"),
        ("n + 1", LARGEST, "grid `n + 1` overflows: a value is outside 64 bits"),
        ("n", 2**63, "grid `n` overflows: `n` is outside 64 bits"),
        ("n // (0 - 1)", SMALLEST, "grid `n // (0 - 1)` overflows: a value is outside 64 bits"),
        ("4 % n", 0, "grid `4 % n` divides by zero"),
        ("cdiv(4, n)", 0, "grid `cdiv(4, n)` divides by zero"),
        ("n - 5", 2, "grid `n - 5` is negative: -3"),
    ],
)
def test_evaluation_errors(text, n, message):
    with pytest.raises(SpecError) as caught:
        evaluate(parse_grid(text, NAMES), {"n": n})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "column", "length", "message", "hint"),
    [
        ("cdiv(n, BLOK)", 9, 4, "unknown name `BLOK` in a grid expression", "did you mean `BLOCK`?"),
        ("ceil(n, 2)", 1, 4, "unknown function `ceil` in a grid expression", "known functions: `cdiv`, `max`, `min`"),
        ("n / 2", 3, 1, "unexpected `/` in a grid expression", None),
        ("n +", 4, 1, "expected a value and found the end in a grid expression", None),
        ("", 1, 1, "expected a value and found the end in a grid expression", None),
        ("-n", 1, 1, "expected a value and found `-` in a grid expression", None),
        ("(n", 3, 1, "expected `)` and found the end in a grid expression", None),
        ("cdiv(n)", 7, 1, "expected `,` and found `)` in a grid expression", None),
        ("cdiv(n, 2, 3)", 10, 1, "expected `)` and found `,` in a grid expression", None),
        ("n m", 3, 1, "unexpected `m` in a grid expression", None),
        ("9223372036854775808", 1, 19, "`9223372036854775808` does not fit in 64 bits", LARGEST_HINT),
        ("9" * 5000, 1, 5000, f"`{'9' * 5000}` does not fit in 64 bits", LARGEST_HINT),
        ("(" * 17 + "n" + ")" * 17, 18, 1, "the grid expression is nested too deeply", "at most 16 parentheses deep"),
        ("n+" * 128 + "n", 258, 1, "the grid expression is too long", "it may have 256 names and operators"),
    ],
)
def test_parse_errors_have_places(text, column, length, message, hint):
    with pytest.raises(SpecError) as caught:
        parse_grid(text, NAMES, Place("k.toml", 3, 10))
    error = caught.value
    assert error.message == message
    assert error.where == Place("k.toml", 3, column + 9, length)
    assert error.hint == (hint or "a grid has integers, names, `+ - * // %`, parentheses, `min`, `max` and `cdiv`")


@given(expressions(), st.integers(0, 2**40), st.integers(-5, 5), st.integers(0, 3))
def test_what_is_known_early_is_what_evaluation_finds(text, n, m, block):
    expression = parse_grid(text, NAMES)
    try:
        early = fold(expression, {"BLOCK": block})
    except SpecError as error:
        with pytest.raises(SpecError):
            evaluate(expression, {"n": n, "m": m, "BLOCK": block})
        assert str(error).startswith(f"grid `{text}` ")
        return
    if early is not None:
        assert early == evaluate(expression, {"n": n, "m": m, "BLOCK": block})
    assert early is None or not {"n", "m"} & set(expression.names)


def test_program_binds_constants_and_arguments():
    expression = parse_grid("cdiv(n, BLOCK) * max(m, 1, 2)", NAMES)
    assert expression.names == ("n", "BLOCK", "m")
    program = compile_grid(expression, ("x", "n", "m"), {"BLOCK": 128})
    assert program.steps == (
        (Opcode.ARGUMENT, 1),
        (Opcode.CONSTANT, 128),
        (Opcode.CDIV, 0),
        (Opcode.ARGUMENT, 2),
        (Opcode.CONSTANT, 1),
        (Opcode.MAXIMUM, 0),
        (Opcode.CONSTANT, 2),
        (Opcode.MAXIMUM, 0),
        (Opcode.MULTIPLY, 0),
    )


def test_a_name_that_is_both_is_a_constant():
    """An argument that equals a number is still in the call, and what the grid is made of is the number."""
    program = compile_grid(parse_grid("n + m", NAMES), ("n", "m"), {"n": 7})
    assert program.steps == ((Opcode.CONSTANT, 7), (Opcode.ARGUMENT, 1), (Opcode.ADD, 0))
