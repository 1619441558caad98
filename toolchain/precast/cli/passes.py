"""`precast passes`: the pipelines of a target as a listing, as JSON, or as a file to edit and run instead.

In: a target, and a kernel of the project if its own passes are asked for. Out: a line per pass, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from precast.cli.arguments import add_project
from precast.cli.streams import say
from precast.errors import SpecError, nearest_hint
from precast.passes.pipeline import Pipeline, render_pipeline
from precast.passes.registry import read_probes
from precast.passes.saved import render_saved
from precast.target import Backend, Target, expand_native

HELP = "List the passes of a target's stages, the plugins of a project, or what passes found."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", help="such as cuda:90; without it, the project's plugins are listed")
    parser.add_argument("--stage", help="this stage alone")
    parser.add_argument("--kernel", help="a unit, variant or kernel of the project: with the passes selected for it")
    parser.add_argument("--gluon", action="store_true", help="the pipelines of Gluon kernels")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per stage and line")
    form.add_argument("--findings", action="store_true", help="what passes found on built units, as JSON lines")
    form.add_argument("--toml", action="store_true", help="a saved pipeline: edit it and select it as an Override")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # as in builds, unless the project asks for line info
    if arguments.findings:
        return list_findings(arguments)
    if not arguments.target:
        return list_plugins(arguments)
    target = Target.parse(expand_native(arguments.target))
    if arguments.gluon and target.kind is Backend.CPU:
        raise SpecError("Gluon kernels have no CPU target")
    if arguments.kernel:
        return list_kernel(arguments, target)
    from precast.engines.triton.listings import list_target

    sys.stdout.write(render(arguments, choose_stage(arguments, list_target(target, gluon=arguments.gluon))))
    return 0


def choose_stage(arguments: argparse.Namespace, pipelines: tuple[Pipeline, ...]) -> tuple[Pipeline, ...]:
    if not arguments.stage:
        return pipelines
    chosen = tuple(each for each in pipelines if each.stage == arguments.stage)
    if not chosen:
        names = [each.stage for each in pipelines]
        raise SpecError(
            f"stage `{arguments.stage}` runs no passes", hint=nearest_hint(arguments.stage, names, "stages")
        )
    return chosen


def render(arguments: argparse.Namespace, pipelines: tuple[Pipeline, ...]) -> str:
    """The pipelines in the form that was asked for."""
    if arguments.toml:
        return render_saved(pipelines)
    if arguments.json:
        return "".join(json.dumps(describe(each)) + "\n" for each in pipelines)
    return "".join(render_pipeline(each) for each in pipelines)


def describe(pipeline: Pipeline) -> dict[str, object]:
    """A pipeline as JSON: its stage, and the steps of each run."""
    runs = [
        {
            "run": run.name,
            "steps": [{"op": step.op, "args": step.args, "kind": step.kind, "by": step.by} for step in run.steps],
        }
        for run in pipeline.runs
    ]
    return {"stage": pipeline.stage, "runs": runs}


def list_kernel(arguments: argparse.Namespace, target: Target) -> int:
    """The effective pipelines of a kernel's units, each kind once, with the units that have it."""
    from precast.engines.triton.listings import list_unit
    from precast.plan import plan_project
    from precast.project import read_project

    project = read_project(arguments.project)
    wanted = expand_native(arguments.kernel)
    kernel = wanted.partition("@")[0].partition(":")[0]
    units = [each for each in plan_project(project, kernels=(kernel,), targets=(str(target),)).units]
    units = [each for each in units if wanted in (kernel, str(each.unit), str(each.unit.variant))]
    found: dict[str, list[str]] = {}
    for each in units:
        pipelines = choose_stage(arguments, list_unit(each.unit, each.passes, project.folder.resolve()))
        found.setdefault(render(arguments, pipelines), []).append(str(each.unit))
    if not found:
        raise SpecError(f"no unit of `{arguments.kernel}` is built for {target}")
    for text, names in found.items():
        if not arguments.json:
            sys.stdout.write("".join(f"# {name}\n" for name in names))
        sys.stdout.write(text)
    return 0


def list_findings(arguments: argparse.Namespace) -> int:
    """Findings of all built units, or those of `--kernel`, by unit: two builds' lists can be compared."""
    from precast.report.inspect import read_built_units

    wanted = arguments.kernel
    for built in read_built_units(arguments.project / "build" / "units"):
        unit = built.result.unit
        variant = unit.partition("@")[0]
        if wanted and wanted not in (unit, variant, variant.partition(":")[0]):
            continue
        for finding in built.result.findings:
            found = {"unit": unit, "pass": finding.pass_name, "found": json.loads(finding.data)}
            print(json.dumps(found, sort_keys=True, ensure_ascii=False))
    return 0


def list_plugins(arguments: argparse.Namespace) -> int:
    """The project's plugins: name, kind, stage, anchor, options, and where each comes from."""
    project = arguments.project
    probes = read_probes(project, project / "build")
    if not any(probe.plugins for probe in probes):
        say("no plugins: there are none in plugins/ and in installed packages")
    for probe in probes:
        for plugin in probe.plugins:
            options = ", ".join(f"{each.name}: {each.type}" for each in plugin.options)
            print(f"{plugin.name}  {plugin.kind}, {plugin.stage} at {plugin.anchor}  [{probe.owner}]")
            print(f"    {plugin.summary}" + (f"  options: {options}" if options else ""))
    return 0
