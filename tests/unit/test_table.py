"""Tables of units: a column for each axis, sizes that can be read, rows in the order that is asked for."""

import pytest
from rich.cells import cell_len

from precast.errors import SpecError
from precast.progress.fitting import fit_text
from precast.report.table import Row, number_cell, render_table, size_cell, sort_units
from precast.spec.naming import parse_unit_text


def make_row(text, **facts):
    name = parse_unit_text(text)
    return Row(name.variant, name.target, facts)


ROWS = [
    make_row("s:dtype=fp16,BLOCK=1024,stride%16@cuda:90", code=size_cell(18_000), registers=number_cell(40)),
    make_row("s:dtype=fp16,BLOCK=64@cpu:x86-64-v3", code=size_cell(900), registers=number_cell(None)),
    make_row("s:dtype=fp32,BLOCK=256@cuda:90", code=size_cell(3 << 20), registers=number_cell(255)),
]


def test_every_axis_is_a_column():
    assert list(render_table(ROWS, None)) == [
        "target         dtype  BLOCK  hints          code  registers  unit",
        "cuda:90        fp16    1024  stride%16  17.6 KiB         40  s:dtype=fp16,BLOCK=1024,stride%16@cuda:90",
        "cpu:x86-64-v3  fp16      64  –             900 B          –  s:dtype=fp16,BLOCK=64@cpu:x86-64-v3",
        "cuda:90        fp32     256  –           3.0 MiB        255  s:dtype=fp32,BLOCK=256@cuda:90",
    ]


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_a_table_fits_its_terminal(columns):
    long = make_row('s:layout="[red]",NAME="' + "x" * 300 + '"@cuda:90', code=size_cell(1))
    lines = list(render_table([*ROWS, long], columns))
    assert all(cell_len(line) <= columns for line in lines)
    assert (len(lines) == 5) == (columns >= 60)


def test_what_is_too_narrow_for_a_table():
    assert list(render_table(ROWS[:1], 24)) == ["s:dtype=fp16…%16@cuda:90", "  code 17.6 KiB,", "  registers 40"]


def test_a_column_of_nothing_is_not_there():
    assert "registers" not in next(render_table(ROWS[1:2], None))


@pytest.mark.parametrize(
    ("column", "blocks"),
    [("", [1024, 64, 256]), ("BLOCK", [64, 256, 1024]), ("-BLOCK", [1024, 256, 64]), ("code", [64, 1024, 256]),
     ("registers", [1024, 256, 64]), ("-registers", [256, 1024, 64]), ("target", [64, 1024, 256])],
)  # fmt: skip
def test_rows_are_sorted(column, blocks):
    assert [dict(row.variant.values)["BLOCK"] for row in sort_units(ROWS, lambda row: row, column)] == blocks


def test_a_column_that_is_not_there():
    with pytest.raises(SpecError) as caught:
        sort_units(ROWS, lambda row: row, "-registrs")
    assert (caught.value.message, caught.value.hint) == ("there is no column `registrs`", "did you mean `registers`?")


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"), (5 << 40, "5120.0 GiB")],
)
def test_sizes_can_be_read(count, text):
    assert size_cell(count).text == text


@pytest.mark.parametrize("text", ["softmax:dtype=fp16,BLOCK=1024@cuda:90", "核" * 30, "", "a\u0301" * 30])
@pytest.mark.parametrize("columns", [0, 1, 2, 7, 36, 37, 100])
def test_a_text_is_cut_in_its_middle(text, columns):
    cut = fit_text(text, columns)
    assert cell_len(cut) <= columns
    assert cut == text or columns < 3 or "…" in cut
