"""Notes of a program's processes become kernels of a spec file, which keeps all else that it has."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import tomlkit

from precast.errors import SpecError
from precast.launch.package.specs import format_toml
from precast.recording.describing import find_integers
from precast.recording.grids import infer_grid
from precast.recording.merging import merge_notes
from precast.recording.notes import Function, Launch, Notebook, Sample, Tuned, Unsaid, read_notes
from precast.spec.naming import parse_hint

OPS = Function("ops", str(Path(__file__).resolve()), "add", "add")
SPECS = Path(__file__).parent / "recorded.toml"
SOURCE = Path(__file__).name


def launch(types=None, hints=(), function=OPS, tuned=None, options=None, **constants) -> Launch:
    types = types or {"x": "*fp32", "n": "i32"}
    resolved = {"num_warps": 4, "num_stages": 3}
    constants = constants or {"BLOCK": 64}
    return Launch(function, types, constants, options or {}, resolved, tuple(hints), (), tuned, "cuda")


def merge(*notes, text="") -> str:
    return merge_notes(text, SPECS, notes).text


def kernel(text: str, name="add") -> dict:
    return tomlkit.parse(text).unwrap()["kernel"][name]


def test_one_variant_has_no_configs():
    assert merge(launch(hints=["x%16", "n==1"])).partition("\n\n")[2] == (
        f'[kernel.add]\nsource = "{SOURCE}:add"\n\n[kernel.add.args]\n'
        'x = { type = "*fp32", align = 16 }\nn = { type = "i32", equal = 1 }\n\n[kernel.add.constants]\nBLOCK = 64\n'
    )


def test_variants_share_what_they_have_in_common():
    half = {"x": "*fp16", "n": "i64"}
    notes = [launch(half, ["x%16", "n%16"]), launch(hints=["x%16"]), launch(options={"num_warps": 8}, BLOCK=128)]
    found = kernel(merge(*notes))
    assert found["configs"] == [
        {"dtype": "fp16", "n_type": "i64", "BLOCK": 64, "num_warps": 4},
        {"dtype": "fp32", "n_type": "i32", "BLOCK": 64, "num_warps": 4},
        {"dtype": "fp32", "n_type": "i32", "BLOCK": 128, "num_warps": 8},
    ]
    assert found["args"] == {"x": "*{dtype}", "n": "{n_type}"}
    assert found["hints"] == [["x%16", "n%16"], ["x%16"], []]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (1, "1"), (1.0, "1.0"), (-0.0, "-0.0"), (float("inf"), "inf"), (2**70, str(2**70)),
        ("relu", '"relu"'), ('"None"', r'"\"None\""'), ([16, [8, "None"]], '[16, [8, "None"]]'), ("\x7f", r'"\u007f"'),
    ],
)  # fmt: skip
def test_a_value_is_told_from_one_that_equals_it_and_comes_back(value, text):
    written = merge(launch(MODE=value))
    assert f"MODE = {text}\n" in written
    assert merge(launch(MODE=value), text=written) == written
    assert format_toml(value) == text
    other = merge(launch(MODE=value), launch(MODE="another"), text=written)
    assert len(kernel(other)["configs"]) == 2


def test_a_text_with_braces_is_filled_in_nowhere():
    written = merge(launch(MODE="{x}"))
    assert kernel(written)["configs"] == [{"MODE": "{x}"}]
    assert merge(launch(MODE="{x}"), text=written) == written


def test_what_the_file_has_stays_and_what_is_missing_is_added():
    before = merge(launch(hints=["x%16"]), launch(BLOCK=128, hints=["x%16"]))
    edited = before.replace("[kernel.add]", "# the sum\n[kernel.add]  # of two").replace(
        "{ BLOCK = 64 },", "{ BLOCK = 64 },  # for small ones"
    )
    edited = f'# mine\n{edited}\n# last\n[kernel.other]\nsource = "other.py:other"\n'
    assert merge(launch(hints=["x%16"]), text=edited) == edited
    after = merge(launch(BLOCK=256), text=edited)
    assert [line for line in edited.splitlines() if "#" in line] == [line for line in after.splitlines() if "#" in line]
    assert kernel(after)["configs"] == [{"BLOCK": 64}, {"BLOCK": 128}, {"BLOCK": 256}]
    assert kernel(after)["args"]["x"] == "*fp32" and kernel(after)["hints"] == [["x%16"], []]
    assert list(tomlkit.parse(after)["kernel"]) == ["add", "other"]
    assert merge(launch(BLOCK=256), launch(hints=["x%16"]), text=after) == after


def test_a_constant_that_varies_becomes_joint():
    before = merge(launch())
    after = merge(launch(BLOCK=128, hints=["n==1"]), text=before)
    assert "constants" not in kernel(after) and kernel(after)["configs"] == [{"BLOCK": 64}, {"BLOCK": 128}]
    assert kernel(after)["hints"] == [[], ["n==1"]]
    assert merge(launch(), launch(BLOCK=128), text=after) == after


def test_an_option_that_only_some_calls_name_is_the_one_that_the_others_had():
    before = merge(launch())
    assert merge(launch(options={"num_warps": 4}), text=before) == before
    after = merge(launch(options={"num_warps": 8}), text=before)
    assert kernel(after)["configs"] == [{"num_warps": 4}, {"num_warps": 8}]
    assert merge(launch(), text=after) == after


@pytest.mark.parametrize("line", ["[kernel.add.matrix]\nBLOCK = [64]", "[kernel.add.target.'cuda:*']\nnum_warps = 8"])
def test_a_kernel_that_says_more_gets_a_neighbour(line):
    before = merge(launch()).replace("[kernel.add.constants]\nBLOCK = 64", line)
    after = merge(launch(BLOCK=128), text=before)
    assert after.startswith(before)
    assert kernel(after, "add_2")["constants"] == {"BLOCK": 128}
    if "matrix" in line:
        assert merge(launch(), text=before) == before


def test_functions_of_one_name_are_two_kernels(tmp_path):
    other = tmp_path / "ops.py"
    other.touch()
    found = merge(launch(), launch(function=replace(OPS, file=str(other))))
    assert kernel(found, "add_2")["source"] == f"{os.path.relpath(other, SPECS.parent)}:add"


def test_an_installed_function_is_named_by_its_module(tmp_path):
    file = tmp_path / "site-packages" / "pack" / "ops.py"
    file.parent.mkdir(parents=True)
    file.touch()
    found = merge(launch(function=Function("pack.ops", str(file), "Add.run", "Add.run")))
    assert kernel(found, "run")["source"] == "pack.ops:Add.run"


def test_what_no_spec_can_say():
    made = replace(OPS, name="", qualified="make.<locals>.made")
    notes = [
        launch(function=made), launch(function=replace(OPS, file="<string>")), Unsaid("ops.py:f", "a reason"),
        launch(options={"sorcery": 1}), launch({"x": "nvTmaDesc"}), launch(),
    ]  # fmt: skip
    merged = merge_notes("", SPECS, notes)
    assert [each.reason for each in merged.unsaid] == [
        "it is made while the program runs, and no name of its module leads to it",
        "its source is no file: <string>",
        "a reason",
        "a spec has no option `sorcery`",
        "argument `x`: unknown type `nvTmaDesc`",
    ]
    assert (merged.kernels, merged.variants, merged.added) == (1, 1, ("add",))


def tuned(key: str, chosen: int, *others: int) -> Launch:
    return launch(tuned=Tuned(key, tuple(({"BLOCK": each}, {}) for each in others)), BLOCK=chosen)


def test_a_tuner_that_chooses_otherwise_the_next_time_changes_nothing():
    first = [tuned("n=1", 64, 64, 128), tuned("n=2", 128, 64, 128)]
    before = merge(*first, tuned("n=1", 128, 64, 128))
    assert kernel(before)["configs"] == [{"BLOCK": 64}, {"BLOCK": 128}]
    only = merge(first[0])
    assert kernel(only)["constants"] == {"BLOCK": 64}
    assert merge(tuned("n=1", 128, 64, 128), text=only) == only
    assert "configs" in kernel(merge(tuned("n=1", 256, 128, 256), text=only))


def samples(*launches: tuple[dict, tuple], read=()) -> list[Sample]:
    return [Sample(OPS, values, grid, tuple(read)) for values, grid in launches]


@pytest.mark.parametrize(
    ("launches", "read", "grid"),
    [
        ([({"n": 1000, "BLOCK": 64}, (16,)), ({"n": 64, "BLOCK": 64}, (1,))], (), ("cdiv(n, BLOCK)",)),
        ([({"n": 1000, "BLOCK": 64}, (16,))], (), ()),
        ([({"n": 1000, "BLOCK": 64}, (16,))], ("BLOCK",), ("cdiv(n, BLOCK)",)),
        ([({"n": 4096, "BLOCK": 64}, (64,)), ({"n": 128, "BLOCK": 64}, (2,))], (), ("cdiv(n, BLOCK)",)),
        ([({"n": 100, "BLOCK": 64}, (1,)), ({"n": 200, "BLOCK": 64}, (3,))], (), ("n // BLOCK",)),
        ([({"n": 100, "m": 3}, (7,)), ({"n": 200, "m": 3}, (7,))], (), ("7",)),
        ([({"n": 100, "m": 3}, (300, 3)), ({"n": 200, "m": 5}, (1000, 5))], (), ("n * m", "m")),
        ([({"n": 100, "m": 100}, (100,)), ({"n": 7, "m": 7}, (7,))], (), ()),
        ([({}, (1,))], (), ("1",)),
        ([({"n": 30, "stride": 1}, (30, 1)), ({"n": 20, "stride": 1}, (20, 1))], (), ("n", "1")),
        ([({"n": 30}, (11,)), ({"n": 20}, (5,))], (), ()),
        ([({"m": 100, "n": 70, "A": 32, "B": 16}, (20,)), ({"m": 33, "n": 7, "A": 32, "B": 16}, (2,))], (),
         ("cdiv(m, A) * cdiv(n, B)",)),
    ],
)  # fmt: skip
def test_a_grid_is_written_where_launches_leave_one_choice(launches, read, grid):
    assert infer_grid(samples(*launches, read=read), ("BLOCK", "A", "B")) == grid


def test_a_grid_that_a_launch_contradicts_goes():
    before = merge(launch(), *samples(({"n": 100, "BLOCK": 64}, (2,)), ({"n": 500, "BLOCK": 64}, (8,))))
    assert kernel(before)["grid"] == ["cdiv(n, BLOCK)"]
    merged = merge_notes(before, SPECS, [launch(), *samples(({"n": 100, "BLOCK": 64}, (1,)))])
    assert "grid" not in kernel(merged.text)
    assert [each.what for each in merged.unsaid] == ["the grid of `add`"]
    assert merge(launch(), *samples(({"n": 100, "BLOCK": 64}, (1,))), text=merged.text) == merged.text


@pytest.mark.parametrize(
    ("text", "message"),
    [("kernel = 3\n", "`kernel` is no table"), ("[kernel.add\n", "not valid TOML")],
)
def test_a_file_that_is_no_spec_file_is_told_of(text, message):
    with pytest.raises(SpecError, match=message):
        merge(text=text)


def test_notes_come_back_and_half_a_line_does_not(tmp_path):
    notebook = Notebook(tmp_path)
    notes = [launch(tuned=Tuned("n", (({"BLOCK": 2**70}, {}),)), BLOCK=float("inf")), Unsaid("what", "reason")]
    notes += samples(({"n": 3}, (1, 2)), read=("n",))
    for note in (*notes, notes[0]):
        notebook.write(note)
    (path,) = tmp_path.iterdir()
    with path.open("a") as stream:
        stream.write('["unsaid", {"what"')
    assert list(read_notes(tmp_path)) == notes


def test_a_forked_child_writes_its_own_notes(tmp_path):
    notebook = Notebook(tmp_path)
    notebook.write(Unsaid("parent", ""))
    child = os.fork()
    if child == 0:
        notebook.write(Unsaid("child", ""))
        os._exit(0)
    os.waitpid(child, 0)
    assert [note.what for note in read_notes(tmp_path)] == ["parent", "child"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("n", ["i32", "fp32"]), ("n", ["*fp32", "i64"]), ("n", ["tensordesc<fp32[16]>", "*fp32"]),
        ("n", ["i1", "i32"]), ("n", ["(i32)", "i32"]), ("n", ["(i32, i32)", "none"]),
        ("n", ["(i32, i32)", "(i32, i32, i32)"]), ("n", ["((i32, i32), fp32)", "(i32, (i32, fp32))"]),
        ("n", ["tensordesc<fp32[16]>", "tensordesc<fp32[16,16]>"]),
    ],
)  # fmt: skip
def test_what_one_launcher_cannot_take_is_two_kernels(name, kinds):
    notes = [launch({"x": "*fp32", name: kind}, ["x%16", *([f"{name}%16"] if kind == "i32" else [])]) for kind in kinds]
    written = merge(*notes)
    assert [kernel(written, each)["args"][name] for each in ("add", "add_2")] == [
        {"type": kind, "align": 16} if kind == "i32" else kind for kind in kinds
    ]
    assert merge(*reversed(notes), text=written) == written
    more = merge(launch({"x": "*fp16", name: kinds[0]}, ["x%16"]), text=written)
    assert len(kernel(more)["configs"]) == 2 and "configs" not in kernel(more, "add_2")
    assert merge(*notes, text=more) == more


def test_what_a_launcher_can_take_is_one_kernel():
    kinds = ["i32", "i64", "u64", "none", "i8"]
    assert len(kernel(merge(*[launch({"n": kind}) for kind in kinds]))["configs"]) == 5
    parts = merge(launch({"n": "(i32, none, *fp32)"}), launch({"n": "(i64, *fp16, none)"}))
    assert len(kernel(parts)["configs"]) == 2


def test_words_that_c_would_give_one_name_are_in_two_kernels():
    written = merge(launch(MODE="relu"), launch(MODE="none"), launch(MODE="ReLU"))
    assert [each["MODE"] for each in kernel(written)["configs"]] == ["relu", "none"]
    assert kernel(written, "add_2")["constants"] == {"MODE": "ReLU"}


def test_each_kernel_has_the_grid_of_its_own_launches():
    notes = [launch({"n": "i32", "m": "i32"}), launch({"n": "fp32", "m": "i32"})]
    grids = [
        replace(each, types=note.types)
        for note, name in zip(notes, "nm", strict=True)
        for each in samples(*(({"n": n, "m": m}, ({"n": n, "m": m}[name],)) for n, m in ((30, 3), (20, 4))))
    ]
    written = merge(*notes, *grids)
    assert kernel(written)["grid"] == ["n"] and kernel(written, "add_2")["grid"] == ["m"]
    assert merge(*notes, *grids, text=written) == written


def test_configs_that_are_tables_of_the_user_s_grow():
    before = merge(launch()).replace("[kernel.add.constants]\n", "[[kernel.add.configs]]\n# the small one\n")
    after = merge(launch(BLOCK=128), text=before)
    assert "[[kernel.add.configs]]\n# the small one\nBLOCK = 64\n" in after
    assert kernel(after)["configs"] == [{"BLOCK": 64}, {"BLOCK": 128}]
    assert merge(launch(), launch(BLOCK=128), text=after) == after


def test_a_name_of_other_letters():
    types = {"größe": "i32", "x": "*fp32"}
    written = merge(launch(types, ["größe%16"]), launch(types), *samples(({"x": 3}, (3,)), ({"x": 4}, (4,))))
    assert kernel(written)["hints"] == [["größe%16"], []]
    assert [str(parse_hint(each)) for each in ("größe%16", "ñ==1")] == ["größe%16", "ñ==1"]
    assert parse_hint("n%١٦") is None and find_integers({"größe": 3, "n": 2, "f": True}) == {"n": 2}


@pytest.mark.parametrize(
    ("types", "constants", "reason"),
    [
        ({"stream": "i32"}, {}, "`stream` of `add` cannot be an argument's name: every call takes a `stream` of its "
                                "own"),
        ({"x": "(" + "i32, " * 512 + "i32)"}, {}, "kernel `add` has 513 arguments; a launcher takes 512"),
        ({"x": "*fp32"}, {"M": ["a", "ops:make.<locals>.Mode.A"]},
         "constexpr `M` has `ops:make.<locals>.Mode.A`, which no module has under a name of its own"),
        ({"x": "*fp32"}, {"M": "ops:Mode.GRÖSSE"},
         "constexpr `M` has `ops:Mode.GRÖSSE`, which no module has under a name of its own"),
    ],
)  # fmt: skip
def test_a_launch_that_no_release_can_take_is_told_and_the_others_recorded(types, constants, reason):
    merged = merge_notes("", SPECS, [launch(types, **constants), launch(BLOCK=64)])
    assert [each.reason for each in merged.unsaid] == [reason]
    assert kernel(merged.text)["args"] == {"x": "*fp32", "n": "i32"}
