"""Pipelines as data: edits in order, anchors that must be clear, saved files that come back the same."""

import pytest

from precast.errors import PassError
from precast.passes.anchors import after, before, end, parse_anchor, start
from precast.passes.pipeline import Edit, Pipeline, Run, Step, edit_pipeline, render_pipeline
from precast.passes.saved import parse_pipeline, render_saved

OWN = Pipeline(
    "ttgir",
    (
        Run("early", (Step("ttir.convert", ("cuda:90", "$num_warps", 32)),)),
        Run("late", (Step("common.cse"), Step("ttgpuir.pipeline", ("$num_stages", False)), Step("common.cse"))),
    ),
)


def insert(name: str, anchor) -> Edit:
    return Edit("insert", name, anchor, (Step(f"python.{name}", (), "python", name),))


def names(pipeline: Pipeline) -> list[list[str]]:
    return [[step.op for step in run.steps] for run in pipeline.runs]


def test_passes_at_one_anchor_run_in_the_order_of_selection():
    edits = [
        insert(name, anchor) for anchor in (start(), end(), before("pipeline"), after("pipeline")) for name in "ab"
    ]
    assert names(edit_pipeline(OWN, edits)) == [
        ["python.a", "python.b", "ttir.convert"],
        ["common.cse", "python.a", "python.b", "ttgpuir.pipeline", "python.a", "python.b", "common.cse", "python.a",
         "python.b"],
    ]  # fmt: skip


def test_a_number_says_which_of_several():
    assert names(edit_pipeline(OWN, [insert("a", after("cse", 2))]))[1][-1] == "python.a"
    assert names(edit_pipeline(OWN, [insert("a", before("common.cse", 1))]))[1][0] == "python.a"


def test_anchors_never_name_what_plugins_put_there():
    with pytest.raises(PassError, match=r"anchor `after\(a\)` of pass `b`: stage `ttgir` has no pass `a`"):
        edit_pipeline(OWN, [insert("a", end()), insert("b", after("a"))])


def test_an_ambiguous_anchor_lists_what_is_there():
    with pytest.raises(PassError) as caught:
        edit_pipeline(OWN, [insert("a", before("cse"))], "cuda:90")
    assert caught.value.message == (
        "anchor `before(cse)` of pass `a`: pass `cse` stands 2 times in stage `ttgir` of cuda:90"
    )
    assert caught.value.hint == (
        "say which with a number from 1 to 2; it has: ttir.convert, common.cse, ttgpuir.pipeline"
    )


def test_a_number_that_is_too_large_is_an_error():
    with pytest.raises(PassError, match="pass `cse` stands 2 times in stage `ttgir`"):
        edit_pipeline(OWN, [insert("a", before("cse", 3))])


def test_drop_and_replace_take_the_place_of_a_step():
    edits = [
        Edit("drop", "no-first", before("cse", 1)),
        Edit("replace", "other", before("pipeline"), (Step("ttgpuir.prefetch", (), "builtin", "other"),)),
    ]
    assert names(edit_pipeline(OWN, edits))[1] == ["ttgpuir.prefetch", "common.cse"]


def test_a_dropped_step_is_no_anchor():
    with pytest.raises(PassError, match="stage `ttgir` has no pass `pipeline`"):
        edit_pipeline(OWN, [Edit("drop", "a", before("pipeline")), insert("b", after("pipeline"))])


def test_override_takes_a_saved_pipeline_and_later_passes_stand_in_it():
    saved = Pipeline("ttgir", (Run("early", ()), Run("late", (Step("common.sccp"),))))
    edits = [Edit("override", "mine", start(), pipeline=saved), insert("a", after("sccp"))]
    assert names(edit_pipeline(OWN, edits)) == [[], ["common.sccp", "python.a"]]


def test_override_must_have_the_stages_own_runs():
    saved = Pipeline("ttgir", (Run("late", ()),))
    with pytest.raises(PassError) as caught:
        edit_pipeline(OWN, [Edit("override", "mine", start(), pipeline=saved)])
    assert caught.value.message == "the saved pipeline of `mine` has runs late"
    assert caught.value.hint == "stage `ttgir` has runs early, late, in that order"


def test_override_after_another_pass_is_an_error():
    edit = Edit("override", "mine", start(), pipeline=OWN)
    with pytest.raises(PassError, match="would throw away the passes selected before it: `a`"):
        edit_pipeline(OWN, [insert("a", end()), edit])


def test_a_stage_without_passes_takes_none():
    with pytest.raises(PassError, match="pass `a` cannot stand in stage `ptx`: it runs no passes"):
        edit_pipeline(Pipeline("ptx", ()), [insert("a", end())])


@pytest.mark.parametrize("text", ["start", "end", "before(cse)", "after(common.cse, 2)"])
def test_anchors_parse_back(text: str):
    assert str(parse_anchor(text)) == text


def test_anchors_take_the_form_of_python_too():
    assert parse_anchor(' before( "loop_unroll" , 2 ) ') == before("loop_unroll", 2)
    assert parse_anchor("start()") == start()


def test_what_is_no_anchor_lists_the_forms():
    with pytest.raises(PassError, match="`befor\\(x\\)` is not an anchor") as caught:
        parse_anchor("befor(x)")
    assert "`before(op, n)`" in str(caught.value.hint)


def test_saved_pipelines_come_back_the_same():
    assert parse_pipeline(render_saved((OWN,)), "ttgir") == OWN


def test_saved_pipelines_name_plugins_passes_and_leave_out_what_triton_has_itself():
    again = Edit("insert", "again", end(), (Step("common.cse", (), "builtin", "again"),))
    edited = edit_pipeline(OWN, [insert("a", start()), again])
    saved = parse_pipeline(render_saved((edited,)), "ttgir")
    assert saved.steps == (Step("python.a"), *OWN.steps)


@pytest.mark.parametrize(
    "text, message",
    [
        ("[[run]\n", "not TOML"),
        ('[[run]]\nstage = "ttir"\nname = "x"\nsteps = []\n', "has no run of stage `ttgir`"),
        ('[[run]]\nstage = "ttgir"\nname = "x"\nsteps = [[1.5]]\n', "is not a step"),
        ('[[run]]\nstage = "ttgir"\nsteps = []\n', "has `stage`, `name` and `steps`, and nothing else"),
    ],
)
def test_a_wrong_saved_pipeline_is_told(text: str, message: str):
    with pytest.raises(PassError, match=message):
        parse_pipeline(text, "ttgir")


def test_listing_names_who_put_a_step_there():
    text = render_pipeline(edit_pipeline(OWN, [insert("count", end())]))
    assert text.splitlines()[-1] == "  python.count  # python pass of count"
    assert '  ttir.convert("cuda:90", $num_warps, 32)' in text
