"""A build's reports for CI: what a forge's parser, a scanner and a runner need of them."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from precast.errors import CompileError, Place, SpecError
from precast.progress.annotations import AnnotationReporter
from precast.progress.choosing import make_reports, parse_report
from precast.progress.events import Summary
from precast.progress.json_lines import JsonReporter
from precast.progress.junit import JunitReporter
from precast.progress.places import Places, find_places
from precast.progress.sarif import SarifReporter

FAILED = Summary(built=1, failed=2, units=3, reason="failed", message="2 failed")
UNITS = ('b:layout="[a]",%x@cuda:90', "b:n=1@cuda:90")


@pytest.fixture
def places(tmp_path):
    (tmp_path / "shop/kernels").mkdir(parents=True)
    (tmp_path / "shop/kernels/k 1.py").write_text("x = 1\n")
    return Places(tmp_path, tmp_path / "shop", tmp_path)


def play(reporter, summary=FAILED):
    reporter.begin(3)
    reporter.warned("mind\x1b this, 100%")
    reporter.ended("a@cuda:90", 1.25, False)
    for unit in UNITS:
        place = Place("kernels/k 1.py", 3, 5, 4)
        reporter.failed(unit, CompileError("no\uffff\n<way>: 5%", place, "mend, it", unit=unit, stage="ttgir"))
    reporter.failed("", SpecError("what"))
    reporter.finish(summary)


def test_junit(tmp_path, places):
    play(JunitReporter(tmp_path / "out/build.xml", places))
    root = ElementTree.parse(tmp_path / "out/build.xml").getroot()
    [suite] = root
    assert (root.tag, suite.tag, suite.get("name")) == ("testsuites", "testsuite", "precast")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")] == [
        "5",
        "2",
        "1",
        "1",
        "1.250",
    ]
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == ["a@cuda:90", *UNITS, "plan", "release"]
    assert cases["a@cuda:90"].attrib == {"classname": "cuda:90.a", "name": "a@cuda:90", "time": "1.250"}
    failed = cases[UNITS[0]]
    assert (failed.get("file"), failed.get("line"), failed.get("classname")) == (
        "shop/kernels/k 1.py",
        "3",
        "cuda:90.b",
    )
    assert failed[0].attrib == {"message": "no\\uffff\n<way>: 5%", "type": "compile"}
    assert f"unit:  {UNITS[0]}" in failed[0].text and "hint: mend, it" in failed[0].text
    assert (cases["plan"][0].tag, cases["plan"][0].get("message")) == ("error", "what")
    assert cases["release"][0].tag == "skipped"


def test_junit_of_a_build_of_nothing_has_a_case(tmp_path, places):
    JunitReporter(tmp_path / "build.xml", places).finish(Summary())
    [suite] = ElementTree.parse(tmp_path / "build.xml").getroot()
    assert [(case.get("name"), len(case)) for case in suite] == [("release", 0)]


def test_junit_of_an_interrupted_build_is_no_success(tmp_path, places):
    JunitReporter(tmp_path / "build.xml", places).finish(Summary(reason="interrupted", message="interrupted"))
    [[case]] = ElementTree.parse(tmp_path / "build.xml").getroot()
    assert [(each.tag, each.get("type")) for each in case] == [("error", "interrupted")]


def read_run(path):
    log = json.loads(path.read_bytes())
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    return run


def test_sarif(tmp_path, places):
    play(SarifReporter(tmp_path / "build.sarif", places))
    run = read_run(tmp_path / "build.sarif")
    driver = run["tool"]["driver"]
    assert driver["name"] == "precast" and all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]] == [
        "mind\\x1b this, 100%"
    ]
    assert run["invocations"][0]["executionSuccessful"] is False
    everywhere, here = run["results"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        [location] = result["locations"]  # a scanner shows no result without one
        assert location["physicalLocation"]["region"]["startLine"] >= 1
    assert everywhere["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop/pyproject.toml"
    assert here["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "shop/kernels/k%201.py"},
        "region": {"startLine": 3, "startColumn": 5, "endColumn": 9},
    }
    assert here["properties"] == {"units": sorted(UNITS), "stage": "ttgir", "hint": "mend, it"}


def test_a_finding_is_the_same_when_lines_above_it_come_and_go(tmp_path, places):
    prints = []
    for line in (3, 30):
        reporter = SarifReporter(tmp_path / "build.sarif", places)
        reporter.failed("a", CompileError("no", Place("kernels/k 1.py", line), unit="a"))
        reporter.finish(FAILED)
        prints.append(read_run(tmp_path / "build.sarif")["results"][0]["partialFingerprints"])
    assert prints[0] == prints[1]


def test_sarif_of_a_good_build_has_no_results(tmp_path, places):
    SarifReporter(tmp_path / "build.sarif", places).finish(Summary())
    run = read_run(tmp_path / "build.sarif")
    assert run["results"] == [] and run["invocations"][0]["executionSuccessful"]


def test_annotations(places):
    stream = io.StringIO()
    play(AnnotationReporter(stream, places))
    first, second, third = stream.getvalue().splitlines()
    assert first == "::warning title=precast::mind\\x1b this, 100%25"
    assert second == "::error file=shop/pyproject.toml,line=1,col=1,title=precast%3A spec::what"
    assert third == (
        "::error file=shop/kernels/k 1.py,line=3,col=5,title=precast%3A compile ttgir::no\uffff%0A<way>: 5%25"
        f"%0Aunit: {sorted(UNITS)[0].replace('%', '%25')}%0Aunit: {sorted(UNITS)[1]}%0Ahint: mend, it"
    )


def test_a_warning_stands_at_its_place(tmp_path, places):
    """In annotations, in SARIF and for programs."""
    message = "kernels/k 1.py:3:5: it does nothing"
    stream, lines = io.StringIO(), io.StringIO()
    AnnotationReporter(stream, places).warned(message)
    assert stream.getvalue() == "::warning file=shop/kernels/k 1.py,line=3,col=5,title=precast::it does nothing\n"
    sarif = SarifReporter(tmp_path / "build.sarif", places)
    sarif.warned(message)
    sarif.finish(Summary())
    [note] = read_run(tmp_path / "build.sarif")["invocations"][0]["toolExecutionNotifications"]
    [location] = note["locations"]
    assert note["message"]["text"] == "it does nothing"
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "shop/kernels/k%201.py"},
        "region": {"startLine": 3, "startColumn": 5, "endColumn": 6},
    }
    JsonReporter(lines).warned(message)
    JsonReporter(lines).warned("CC in the environment: ignored")
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first == {"event": "warning", "message": message, "file": "kernels/k 1.py", "line": 3, "column": 5}
    assert (second["file"], second["line"], second["column"]) == ("", 0, 0)


def test_the_environment_says_who_reads_annotations(tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert list(make_reports((), tmp_path, io.StringIO())) == []
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    [reporter] = make_reports((), tmp_path, io.StringIO())
    assert type(reporter) is AnnotationReporter


def test_places_are_the_checkout_s(tmp_path, monkeypatch):
    (tmp_path / "repository/shop").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository/shop")
    named = {"GITHUB_WORKSPACE": str(tmp_path / "repository")}
    assert find_places(Path(), named).path_of("kernels/a.py") == "shop/kernels/a.py"
    assert find_places(Path(), {}).path_of("kernels/a.py") == "kernels/a.py"
    elsewhere = {"CI_PROJECT_DIR": str(tmp_path / "another")}
    assert find_places(Path(), elsewhere).path_of("kernels/a.py") == "kernels/a.py"
    assert find_places(Path(), {}).path_of("/usr/x.py") == "/usr/x.py"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("junit", ("`--report junit` names no file", "write `--report junit=PATH` or `--report sarif=PATH`")),
        ("junit=", ("`--report junit=` names no file", "write `--report junit=PATH` or `--report sarif=PATH`")),
        ("sariff=a", ("there is no report `sariff`", "did you mean `sarif`?")),
    ],
)
def test_a_report_that_nobody_writes(text, told):
    with pytest.raises(SpecError) as caught:
        parse_report(text)
    assert (caught.value.message, caught.value.hint) == told


def test_a_report_s_path_may_hold_anything():
    assert parse_report("junit=a=b c.xml") == ("junit", Path("a=b c.xml"))
