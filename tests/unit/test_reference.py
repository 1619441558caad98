"""The reference page and the JSON Schemas say what the checkers, the parser and the writer of events go by."""

import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
from small_projects import SPEC, make_project

from precast.cli import COMMANDS, main
from precast.diagnostic import format_error
from precast.errors import CompileError, Place, PrecastError, SpecError
from precast.progress.event_keys import EVENTS
from precast.progress.events import Summary
from precast.progress.json_lines import JsonReporter
from precast.project import read_project
from precast.report.reference import events_schema, settings_schema, spec_schema
from precast.schema import Table
from precast.settings import PROJECT_KEYS
from precast.spec.kernel import Surroundings, kernel_tables, read_kernel
from precast.spec.keys import ARGUMENT_KEYS, KERNEL_KEYS, OPTION_KEYS
from precast.spec.problems import Problems
from precast.spec.sources import SourceReader
from precast.spec.toml import parse_document
from precast.target import OPTIONS, Target

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
VALUES = (
    '"text"', '"1GB"', "3", "16", "0", "-1", "true", "1.5", "[]", '["*"]', "[16]", "[[1]]", '[["*"]]', "[{ a = 1 }]",
    "{}", "{ a = 1 }", '{ a = "i32" }', "{ a = [1] }", "{ a = { b = 1 } }",
)  # fmt: skip
SHAPE = re.compile(r"must be (a|an|at|true|one|not)\b|is an array of texts|unknown (key|tool|option)|has one value")
NOT_SHAPE = re.compile(r"must be a power of two|unknown constexpr")


def test_the_page_is_the_one_that_the_code_makes(capsys, update):
    assert main(["schema", "page"]) == 0
    page = capsys.readouterr().out
    if update:
        PAGE.write_text(page)
    assert PAGE.read_text() == page


@pytest.mark.parametrize("what", ["settings", "spec", "events"])
def test_a_schema_is_one(capsys, what):
    assert main(["schema", what]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def refused(schema, text):
    """Whether the schema refuses a document."""
    return not jsonschema.Draft202012Validator(schema).is_valid(parse_document(text, "a.toml").data)


def told_of_settings(folder, text):
    (folder / "pyproject.toml").write_text(text)
    try:
        read_project(folder)
    except PrecastError as error:
        return format_error(error)
    return ""


def told_of_spec(folder, text):
    def import_nothing(source, targets):
        raise SpecError("only an import would tell")

    targets = (Target("cuda", "90"),)
    around = Surroundings(SourceReader(folder, (folder,)), targets, {}, import_nothing, 10_000)
    problems = Problems()
    for name, node in kernel_tables(parse_document(text, "scale.toml"), problems):
        with problems.collect():
            read_kernel(name, node, folder / "kernels", around)
    return format_error(problems.joined()) if problems.errors else ""


def compare(schema, text, told, case):
    """What the schema refuses, the checkers refuse; and they refuse no shape that it takes."""
    if refused(schema, text):
        assert told, f"the schema alone refuses {case}"
    else:
        shape = SHAPE.search(told) and not NOT_SHAPE.search(told)
        assert not shape, f"the schema takes {case}: {told}"


def settings_of(name, value):
    entries = {"name": '"demo"', "targets": '["cuda:90"]', name: value}
    return "[tool.precast]\n" + "".join(f"{key} = {each}\n" for key, each in entries.items())


def sub_tables(key):
    """Keys of the tables that a setting holds: `budget.release_bytes`."""
    shape = getattr(key.shape, "of", key.shape)
    return [(key, inner) for inner in shape.keys] if isinstance(shape, Table) and shape is not OPTION_KEYS else []


@pytest.mark.parametrize("name", [*PROJECT_KEYS.names, "unknown"])
def test_settings_are_checked_as_the_schema_says(tmp_path, name):
    make_project(tmp_path)
    schema = settings_schema()
    for value in VALUES:
        text = settings_of(name, value)
        compare(schema, text, told_of_settings(tmp_path, text), f"{name} = {value}")


@pytest.mark.parametrize("table", [table for table in PROJECT_KEYS.keys if sub_tables(table)], ids=lambda key: key.name)
def test_tables_of_settings_are_checked_as_the_schema_says(tmp_path, table):
    make_project(tmp_path)
    schema, array = settings_schema(), hasattr(table.shape, "of")
    for _, inner in [*sub_tables(table), (table, None)]:
        for value in VALUES:
            name = inner.name if inner else "unknown"
            needed = 'use = "a"\n' if array and name != "use" else ""
            header = f"[[tool.precast.{table.name}]]" if array else f"[tool.precast.{table.name}]"
            text = settings_of("line_info", "true") + f"{header}\n{needed}{name} = {value}\n"
            compare(schema, text, told_of_settings(tmp_path, text), f"{table.name}.{name} = {value}")


def kernel_with(name, value):
    """The spec of `small_projects` with one entry of the kernel's table in place of its own."""
    headers = {"args", "matrix"} - {name}
    parts = [
        part for part in re.split(r"(?m)^(?=\[)", SPEC) if part.split("]")[0].rpartition(".")[2] in (*headers, "scale")
    ]
    lines = [line for line in parts[0].splitlines() if not line.startswith(f"{name} =") and line]
    return "\n".join([*lines, f"{name} = {value}", "", *parts[1:]])


@pytest.mark.parametrize("name", [*KERNEL_KEYS.names, "unknown"])
def test_specs_are_checked_as_the_schema_says(tmp_path, name):
    make_project(tmp_path)
    schema = spec_schema()
    for value in VALUES:
        text = kernel_with(name, value)
        compare(schema, text, told_of_spec(tmp_path, text), f"{name} = {value}")


@pytest.mark.parametrize("name", [*ARGUMENT_KEYS.names, "unknown"])
def test_arguments_are_checked_as_the_schema_says(tmp_path, name):
    make_project(tmp_path)
    schema = spec_schema()
    for value in VALUES:
        kind = "" if name == "type" else 'type = "i64", '
        text = SPEC.replace('"i64"', f"{{ {kind}{name} = {value} }}")
        compare(schema, text, told_of_spec(tmp_path, text), f"{name} = {value}")


def test_options_are_checked_as_the_schema_says():
    values = [True, -1, 0, 1, 2, 3, 4, 16, 32, 33, 64, 255, 256, 1.5, "text", "tf32", "wgp", []]
    properties = OPTION_KEYS.schema["properties"]
    for rule in {rule for rules in OPTIONS.values() for rule in rules}:
        for value in values:
            taken = jsonschema.Draft202012Validator(properties[rule.name]).is_valid(value)
            assert taken == (rule.fault(value) is None), f"{rule.name} = {value}"


def test_defaults_are_those_of_the_code(tmp_path):
    make_project(tmp_path, {"pyproject.toml": '[tool.precast]\nname = "demo"\ntargets = ["cuda:90"]\n'})
    project = read_project(tmp_path)
    said = {key.name: key.default for key in PROJECT_KEYS.keys}
    numbers = {"time_limit_s": project.time_limit_s, "memory_limit_mb": project.memory_limit_mb,
               "max_units": project.max_units}  # fmt: skip
    assert {name: float(said[name]) for name in numbers} == numbers
    assert json.loads(said["kernels"]) == list(project.kernels)
    assert json.loads(said["pythonpath"]) == list(project.python_path)
    assert json.loads(said["line_info"]) is project.settings.line_info
    cache = {
        key.name: key.default
        for key in dict(zip(PROJECT_KEYS.names, PROJECT_KEYS.keys, strict=True))["cache"].shape.keys
    }
    assert (json.loads(cache["read"]), json.loads(cache["write"])) == (project.cache.read, project.cache.write)


def test_events_are_those_that_are_written():
    stream = io.StringIO()
    reporter = JsonReporter(stream)
    reporter.begin(2)
    reporter.started("a@cuda:90")
    reporter.ended("a@cuda:90", 0.5, False)
    reporter.failed("b@cuda:90", CompileError("no", unit="b@cuda:90", where=Place("k.py", 3)))
    reporter.warned("look")
    reporter.finish(Summary(1, 0, 1, 2, checked=3))
    written = [json.loads(line) for line in stream.getvalue().splitlines()]
    written.append({"event": "stale", "step": "a@cuda:90", "reasons": ["never built"]})  # of `build -n`
    assert {event["event"] for event in written} == set(EVENTS)
    for event in written:
        jsonschema.validate(event, events_schema())
        assert set(event) - {"event"} == set(EVENTS[event["event"]].names)


def test_every_command_and_option_is_on_the_page():
    page = PAGE.read_text()
    assert re.findall(r"^### `precast (\S+)`$", page, re.M) == list(COMMANDS)
    assert not re.search(r"\| \|$|None|==SUPPRESS==", page.partition("## Commands")[2])
