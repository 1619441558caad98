"""A build as JUnit's XML, which every CI server shows: a test case for each step that ran, and one for the release.

In: events. Out: one file, written when the build ends, however it does.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from precast.errors import PrecastError, escape_controls
from precast.progress.events import COMPLETE, FAILED, SilentReporter, Summary
from precast.progress.failure import describe_failure
from precast.progress.places import Places
from precast.store import write_file

RELEASE = "release"


class JunitReporter(SilentReporter):
    """Writes `path` at the end. A step that was not stale is no test case; so that a build of nothing has one, the
    release always is."""

    def __init__(self, path: Path, places: Places) -> None:
        self._path = path.absolute()
        self._places = places
        self._suite = ElementTree.Element("testsuite", name="precast")
        self._seconds = 0.0

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._seconds += seconds
        self._case(step, seconds)

    def failed(self, step: str, error: PrecastError) -> None:
        record = describe_failure(step, error)
        case = self._case(step or record.unit or "plan", 0.0)
        if record.where:
            place = self._places.place_of(record.where)
            case.attrib |= {"file": _clean(place.file), "line": str(place.line)}
        _add(case, "failure" if step else "error", record.kind, record.message, record.text)

    def finish(self, summary: Summary) -> None:
        case = self._case(RELEASE, 0.0)
        if summary.reason == FAILED:
            _add(case, "skipped", "", summary.message, "")
        elif summary.reason != COMPLETE:
            _add(case, "error", summary.reason, summary.message, "")
        counts = {
            "tests": str(len(self._suite)),
            "failures": str(len(self._suite.findall("testcase/failure"))),
            "errors": str(len(self._suite.findall("testcase/error"))),
            "skipped": str(len(self._suite.findall("testcase/skipped"))),
            "time": f"{self._seconds:.3f}",
        }
        self._suite.attrib |= counts
        root = ElementTree.Element("testsuites", counts)
        root.append(self._suite)
        ElementTree.indent(root)
        write_file(self._path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")

    def _case(self, step: str, seconds: float) -> ElementTree.Element:
        variant, at, target = step.rpartition("@")
        group = f"{target}.{variant.partition(':')[0]}" if at else "build"
        names = {"classname": _clean(group), "name": _clean(step), "time": f"{seconds:.3f}"}
        return ElementTree.SubElement(self._suite, "testcase", names)


def _add(case: ElementTree.Element, kind: str, type_: str, message: str, text: str) -> None:
    child = ElementTree.SubElement(case, kind, {"message": _clean(message)})
    if type_:
        child.set("type", type_)
    child.text = _clean(text) or None


def _clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return escape_controls(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
