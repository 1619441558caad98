"""Evidence files: what is written is what the schema says, and what others write wrongly is told at its place."""

import json
from pathlib import Path

import jsonschema
import pytest

import precast.tuning
from precast.errors import SpecError
from precast.tuning import running
from precast.tuning.evidence import evidence_name, render_evidence, sort_problems
from precast.tuning.reading import read_evidence

GOOD = {
    "axes": ["BLOCK", "num_warps"],
    "configs": [{"BLOCK": 64, "num_warps": 4}, {"BLOCK": 128, "num_warps": 8}],
    "device": "NVIDIA H200",
    "kernel": "add",
    "problems": [
        {"axes": {"dtype": "fp16"}, "sizes": {"n": 4096}, "times": [3.5, None], "faults": {"1": "no memory"}},
        {"axes": {"dtype": "fp16"}, "sizes": {"n": 64}, "times": [1.5, 1]},
    ],
    "schema": 1,
    "ships": [1],
    "source": "ab" * 32,
    "target": "cuda:90",
}


def test_files_are_named_by_kernel_and_device():
    assert evidence_name("add", "NVIDIA H200") == "add.nvidia-h200.json"
    assert evidence_name("add", "Intel(R) Xeon(R) @ 2.80GHz") == "add.intel-r-xeon-r-2-80ghz.json"


def test_a_file_is_sorted_has_a_line_for_each_problem_and_reads_back(tmp_path):
    data = {**GOOD, "problems": sort_problems(GOOD["problems"])}
    text = render_evidence(data)
    assert json.loads(text) == data
    assert text == render_evidence(dict(reversed(data.items())))
    lines = text.splitlines()
    assert lines[:4] == ["{", ' "axes": ["BLOCK", "num_warps"],', ' "configs": [', '  {"BLOCK": 64, "num_warps": 4},']
    assert [line for line in lines if '"sizes"' in line] == [
        '  {"axes": {"dtype": "fp16"}, "sizes": {"n": 64}, "times": [1.5, 1]},',
        '  {"axes": {"dtype": "fp16"}, "faults": {"1": "no memory"}, "sizes": {"n": 4096}, "times": [3.5, null]}',
    ]
    (tmp_path / "add.json").write_text(text)
    evidence = read_evidence(tmp_path / "add.json", "tuning/add.json")
    assert (evidence.kernel, evidence.device, evidence.ships) == ("add", "NVIDIA H200", (1,))
    assert [each.times for each in evidence.problems] == [(1.5, 1), (3.5, None)]


def test_the_schema_takes_what_is_written():
    schema = json.loads((Path(precast.tuning.__file__).parent / "evidence.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**GOOD, "schema": 2}, schema)


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('"schema": 1', '"schema": 7', ":13:12", "evidence of schema 7; this Precast reads 1"),
        ("[1.5, 1]", "[1.5]", ":10:60", "`times` must have a time, or null, for each of the 2 configs"),
        ("[1.5, 1]", "[1.5, -1]", ":10:66", "-1 is no time"),
        ("[1.5, 1]", "[1.5, true]", ":10:66", "true is no time"),
        ('{"n": 64}', '{"n": 6.5}', ":10:40", "`sizes` must give arguments integers"),
        ('"num_warps": 8}', '"warps": 8}', ":5:3", "each config gives values to BLOCK, num_warps and to nothing else"),
        ('"target"', '"tarket"', ":16:12", "unknown key `tarket`"),
        ('"ships": [1]', '"ships": [2]', ":14:11", "`ships` lists configs by number, from 0"),
        ('"device": "NVIDIA H200",', "", ":1:1", "there is no `device`"),
        ('"kernel": "add",', '"kernel": "add"', ":9:2", "not JSON: expecting ',' delimiter"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(old, new, where, message, tmp_path):
    text = render_evidence({**GOOD, "problems": sort_problems(GOOD["problems"])})
    assert old in text
    (tmp_path / "add.json").write_text(text.replace(old, new))
    with pytest.raises(SpecError) as caught:
        read_evidence(tmp_path / "add.json", "tuning/add.json")
    assert (caught.value.message, str(caught.value.where)) == (message, f"tuning/add.json{where}")
    assert caught.value.hint


HEAD = {"kernel": "scale", "configs": [{"BLOCK": 128}]}
KNOWN = [{"axes": {}, "sizes": {"n": 1}, "times": [1.0]}]
DAMAGED = [
    [],
    None,
    3,
    {},
    {"problems": KNOWN},
    {**HEAD, "problems": 5},
    {**HEAD, "problems": [{}]},
    {**HEAD, "problems": [None]},
    {**HEAD, "problems": {"axes": 1}},
]


@pytest.mark.parametrize("data", DAMAGED, ids=json.dumps)
def test_what_a_stopped_run_left_counts_if_it_is_whole(data, tmp_path):
    path = tmp_path / "scale.json"
    left = running._unfinished(path)
    left.write_text(json.dumps({**HEAD, "problems": KNOWN}))
    assert running._read_unfinished(path, HEAD) == KNOWN
    left.write_text(json.dumps(data))
    assert running._read_unfinished(path, HEAD) == []
