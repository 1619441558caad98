"""`precast opt`: passes on an IR file or on a built unit's IR, for writing and testing passes.

In: a file of ttir, ttgir or the CPU engine's loops, or a unit's name; passes. Out: the IR after them. Works under lit
with FileCheck, with MLIR's own conventions for split input and expected diagnostics.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from precast.bounded import read_bounded
from precast.cli.arguments import add_project
from precast.cli.streams import say
from precast.diagnostic import format_error
from precast.errors import PassError, PrecastError, SpecError
from precast.passes.expectations import Diagnostic, find_mismatches, parse_diagnostics, parse_expected
from precast.target import Target, expand_native

if TYPE_CHECKING:
    from precast.engines import UnitFacts
    from precast.engines.triton.opt import Subject
    from precast.engines.triton.opt_passes import ChosenPass
    from precast.passes.probes import Probe

HELP = "Run passes on an IR file or on a built unit's IR, and print the result."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", help="a file (.ttir, .ttgir, .loops, .mlir; - for standard input), or a built unit")
    parser.add_argument("--target", help="such as cuda:90; a built unit has its own")
    parser.add_argument(
        "--pass",
        dest="passes",
        action="append",
        default=[],
        metavar="NAME{option=value …}",
        help="a pass to run, with its options in braces; repeatable",
    )
    parser.add_argument("--native", action="append", default=[], metavar="LIBRARY", help="a native plugin library")
    parser.add_argument("--stage", help="a built unit's stage to start from (default: ttir); the IR of standard input")
    parser.add_argument("--pipeline", type=Path, metavar="FILE", help="run a saved pipeline")
    parser.add_argument("--run-reproducer", action="store_true", help="run the pipeline that the file itself holds")
    parser.add_argument("--stop-after", metavar="STAGE", help="go on with the compiler's own stages, up to this one")
    parser.add_argument("--split-input-file", action="store_true", help="parts between `// -----` lines are files")
    parser.add_argument("--verify-diagnostics", action="store_true", help="compare with `expected-error` comments")
    parser.add_argument("--print-before", action="append", default=[], metavar="NAME|all", help="the IR before a pass")
    parser.add_argument("--print-after", action="append", default=[], metavar="NAME|all", help="the IR after a pass")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    subject = read_subject(arguments)
    chosen = choose_passes(arguments, subject)
    from precast.engines.triton.opt import split_input

    parts = split_input(subject.text) if arguments.split_input_file else [subject.text]
    results = [run_part(arguments, subject, part, chosen) for part in parts]
    sys.stdout.write("// -----\n".join(text for text, _ in results))
    return int(any(failed for _, failed in results))


def read_subject(arguments: argparse.Namespace) -> Subject:
    """The IR to work on and the target it is for."""
    from precast.engines.triton.opt import Subject, stage_of_file

    name = arguments.input
    if name == "-" or Path(name).is_file():
        if not arguments.target:
            raise SpecError("an IR file needs `--target`", hint="such as `--target cuda:90`")
        target = Target.parse(expand_native(arguments.target))
        text = _decode(sys.stdin.buffer.read() if name == "-" else read_bounded(name), name)
        stage = arguments.stage or stage_of_file("input.ttir" if name == "-" else name, target)
        return Subject(text, "input.ttir" if name == "-" else Path(name).name, stage, target)
    return read_unit(arguments)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SpecError(f"`{name}` is no text of IR", hint="passes run on the text of a stage") from None


def read_unit(arguments: argparse.Namespace) -> Subject:
    from precast.engines.triton.opt import Subject
    from precast.report.inspect import find_units, read_built_units, read_stage

    built = read_built_units(arguments.project / "build" / "units")
    if not built:
        raise SpecError(f"there is no file `{arguments.input}`, and no unit is built in `{arguments.project}`")
    try:
        found = find_units(built, expand_native(arguments.input))
    except SpecError as error:
        raise SpecError(f"there is no file `{arguments.input}`, and {error.message}", hint=error.hint) from None
    if len(found) > 1:
        raise SpecError(f"{len(found)} built units match `{arguments.input}`", hint=f"one is `{found[0].result.unit}`")
    unit, stage = found[0], arguments.stage or "ttir"
    target = Target.parse(unit.result.unit.rpartition("@")[2])
    name = f"{unit.kernel}.{stage}"
    text = _decode(read_stage(unit, stage), name)
    told = find_told(arguments.project, unit.kernel, unit.result.unit)
    return Subject(text, name, stage, target, unit.result.facts.options, told)


def find_told(project: Path, kernel: str, name: str) -> UnitFacts | None:
    """What passes are told of a unit, as the project has it now; None where it has no such unit any more."""
    from precast.plan import plan_project
    from precast.project import read_project
    from precast.worker.walk import describe_unit

    try:
        plan = plan_project(read_project(project), kernels=(kernel,), keep_going=True)
    except PrecastError:
        return None
    return next((describe_unit(each.unit) for each in plan.units if str(each.unit) == name), None)


def choose_passes(arguments: argparse.Namespace, subject: Subject) -> tuple[ChosenPass, ...]:
    """The passes of the command line, in its order; then those of a saved pipeline or of the file's own reproducer."""
    from precast.engines.triton.opt_passes import Shelf, choose_steps, find_full_name, names_plugins, parse_word
    from precast.engines.triton.reproducer import parse_passes, read_reproducer
    from precast.passes.saved import read_pipeline

    libraries = tuple((Path(each).resolve(), load_native(Path(each).resolve())) for each in arguments.native)
    native = {name for _, names in libraries for name in names}
    names = [parse_word(word)[0] for word in arguments.passes]
    saved = read_pipeline(arguments.pipeline, subject.stage) if arguments.pipeline else None
    plugins = any(name not in native and not find_full_name(name) for name in names) or (saved and names_plugins(saved))
    shelf = Shelf(libraries, read_plugins(arguments.project) if plugins else (), arguments.project.resolve())
    chosen = [shelf.find(word) for word in arguments.passes]
    chosen += choose_steps(saved, shelf) if saved else ()
    if arguments.run_reproducer:
        chosen += choose_steps(parse_passes(read_reproducer(subject.text)), shelf)
    return tuple(chosen)


def load_native(library: Path) -> tuple[str, ...]:
    from precast.engines.triton.native import load_library

    return load_library(library).passes


def read_plugins(project: Path) -> tuple[Probe, ...]:
    from precast.passes.registry import read_probes

    return read_probes(project, project / "build")


def run_part(
    arguments: argparse.Namespace, subject: Subject, text: str, chosen: tuple[ChosenPass, ...]
) -> tuple[str, bool]:
    """One part of the input: its text after the passes ("" if there is none), and whether it failed."""
    part = replace(subject, text=text)
    if arguments.verify_diagnostics:
        return verify_part(arguments, part, chosen)
    output, failure = transform(arguments, part, chosen)
    if failure:
        say(format_error(failure))
    return output, failure is not None


def verify_part(arguments: argparse.Namespace, part: Subject, chosen: tuple[ChosenPass, ...]) -> tuple[str, bool]:
    """As `run_part`, where the part fails unless exactly the diagnostics come that its comments expect."""
    from precast.engines.triton.capture import capture_errors

    with capture_errors() as errors:
        output, failure = transform(arguments, part, chosen)
        given = parse_diagnostics(errors.read(), part.name)
    if failure and not any(each.kind == "error" for each in given):
        line = failure.where.line if failure.where and failure.where.file == part.name else 0
        given = (*given, Diagnostic("error", line, failure.message))
    problems = find_mismatches(parse_expected(part.text), given)
    for problem in problems:
        say(f"{part.name}: {problem}")
    return output, bool(problems)


def transform(
    arguments: argparse.Namespace, part: Subject, chosen: tuple[ChosenPass, ...]
) -> tuple[str, PrecastError | None]:
    """Runs the passes, and the stages that `--stop-after` asks for. Returns text, or what went wrong."""
    from precast.engines import StageFailure
    from precast.engines.triton.opt import open_workbench

    passes = {each.step.by: each.selected for each in chosen}
    try:
        bench = open_workbench(part)
        for each in chosen:
            show(arguments.print_before, "before", each.step.by, bench.print)
            bench.run(each.step, passes)
            show(arguments.print_after, "after", each.step.by, bench.print)
        text = bench.compile(arguments.stop_after) if arguments.stop_after else bench.print()
    except StageFailure as failure:
        return "", PassError(f"pass `{failure.pass_name}`: {failure.message}", failure.where, failure.hint)
    except PrecastError as error:
        return "", error
    findings = "".join(f"// finding {finding.pass_name}: {finding.data}\n" for finding in bench.findings)
    return text.rstrip("\n") + "\n" + findings, None


def show(wanted: Sequence[str], moment: str, name: str, text: Callable[[], str]) -> None:
    """The IR before or after a pass, on standard error, with the heading that MLIR's own dumps have."""
    if "all" in wanted or name in wanted:
        say(f"// -----// IR Dump {moment.capitalize()} {name} //----- //\n{text()}")
