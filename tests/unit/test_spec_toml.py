"""TOML with places: where every key and value stands, and typed access with errors."""

import pytest

from precast.errors import Place, SpecError
from precast.spec.toml import parse_document, read_document

TEXT = """\
# comment
top = 1
[a.b]
"quoted key" = { x = "é", y.z = [1,  # one
  22] }
'é' = '''
text'''
[[list]]
k = true
[list.sub]  # a table in the first element
deep = 1.5
[[list]]
k = false
"""


def node_at(*path):
    node = parse_document(TEXT, "f.toml").root
    for part in path:
        node = node.table()[part] if isinstance(part, str) else node.items()[part]
    return node


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("top",), (2, 1, 3), (2, 7, 1)),
        (("a",), (3, 2, 1), (3, 2, 1)),
        (("a", "b"), (3, 4, 1), (3, 4, 1)),
        (("a", "b", "quoted key"), (4, 1, 12), (4, 16, 26)),
        (("a", "b", "quoted key", "x"), (4, 18, 1), (4, 22, 3)),
        (("a", "b", "quoted key", "y"), (4, 27, 1), (4, 27, 1)),
        (("a", "b", "quoted key", "y", "z"), (4, 29, 1), (4, 33, 9)),
        (("a", "b", "quoted key", "y", "z", 1), (4, 29, 1), (5, 3, 2)),
        (("a", "b", "é"), (6, 1, 3), (6, 7, 3)),
        (("list", 0, "k"), (9, 1, 1), (9, 5, 4)),
        (("list", 0, "sub"), (10, 7, 3), (10, 7, 3)),
        (("list", 0, "sub", "deep"), (11, 1, 4), (11, 8, 3)),
        (("list", 1), (12, 3, 4), (12, 3, 4)),
        (("list", 1, "k"), (13, 1, 1), (13, 5, 5)),
    ],
)
def test_places(path, key, value):
    node = node_at(*path)
    assert (node.key.line, node.key.column, node.key.length) == key
    assert (node.place.line, node.place.column) == value[:2]
    if path[-1] != "quoted key" and path[-1] != "z":
        assert node.place.length == value[2]


def test_inside_a_string():
    document = parse_document("a = 'xy'\nb = '''xy'''\n", "f.toml")
    assert document.root.table()["a"].inside == Place("f.toml", 1, 6)
    assert document.root.table()["b"].inside == Place("f.toml", 2, 8)


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("a = 1", "text", "`a` must be a string, not an integer"),
        ("a = true", "integer", "`a` must be an integer, not true or false"),
        ("a = 1", "boolean", "`a` must be true or false, not an integer"),
        ("a = 1.5", "integer", "`a` must be an integer, not a float"),
        ("a = {}", "items", "`a` must be an array, not a table"),
        ("a = []", "table", "`a` must be a table, not an array"),
        ("a = 1979-05-27", "scalar", "`a` must be a string, a number, true or false, not a date"),
    ],
)
def test_wrong_kinds(text, read, message):
    with pytest.raises(SpecError) as caught:
        getattr(parse_document(text, "f.toml").root.table()["a"], read)()
    assert (caught.value.message, caught.value.where.line, caught.value.where.column) == (message, 1, 5)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("a = \n", 1, 5), ("a = 1\na = 2\n", 2, 6), ("[a\n", 1, 3), ("a = 'x", 1, 7), ("ä = 1\n", 1, 1)],
)
def test_syntax_errors_have_places(text, line, column):
    with pytest.raises(SpecError) as caught:
        parse_document(text, "f.toml")
    assert caught.value.message.startswith("not valid TOML: ")
    assert (caught.value.where.line, caught.value.where.column) == (line, column)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecError, match=r"cannot read `x.toml`: no such file or directory"):
        read_document(tmp_path / "x.toml", "x.toml")
    (tmp_path / "x.toml").write_bytes("é = 'é'\né = 'é".encode() + b"\xff'")
    with pytest.raises(SpecError) as caught:
        read_document(tmp_path / "x.toml", "x.toml")
    assert str(caught.value) == "x.toml:2:7: not UTF-8 text: byte 0xff"
    (tmp_path / "x.toml").write_text(f"a = {'9' * 5000}")
    with pytest.raises(SpecError, match=r"^x.toml:1:1: not valid TOML: Exceeds the limit"):
        read_document(tmp_path / "x.toml", "x.toml")


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbfa = 3\n")
    node = read_document(tmp_path / "x.toml", "x.toml").root.table()["a"]
    assert (node.value, str(node.place)) == (3, "x.toml:1:5")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = " + "[" * 5000 + "]" * 5000, ":2:5004"),
        ("a = " + "{ b = " * 5000 + "1" + "}" * 5000, f":1:{5 + 6 * 4999}"),
        (".".join("a" * 5000) + " = 1", ":1:9998"),
        ("[" + ".".join("a" * 5000) + "]", ":1:9999"),
    ],
)
def test_what_is_nested_too_deeply_is_told_at_its_place(text, place):
    with pytest.raises(SpecError) as caught:
        parse_document(text, "f.toml")
    assert str(caught.value) == f"f.toml{place}: not valid TOML: nested too deeply"
