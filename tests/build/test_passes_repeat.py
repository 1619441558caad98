"""Passes that are no functions of their input are found by running them twice."""

import sys

import pytest
from plugin_tree import PluginTree

from precast.engines.registry import Engines
from precast.worker.repeat import find_unsteady

MARK = """
import random, time
from precast.passes.ir import parse_attribute

class Steady(Pass):
    name, stage, at = "steady", "ttir", end()

    def run(self, module, context):
        kernel = find_kernel(module)
        kernel.attributes["steady"] = parse_attribute(kernel, '"always"')

@dataclass(frozen=True)
class Found:
    value: str

@dataclass(frozen=True)
class Mark(Pass):
    name, stage, at = "mark", "{stage}", end()

    def run(self, module, context):
        kernel = find_kernel(module)
        value = {value}
        {do}
"""
PATH = list(sys.path)
CHANGES = "kernel.attributes['mark'] = parse_attribute(kernel, f'\"{value}\"')"


@pytest.fixture(scope="module")
def engines():
    made = Engines()
    yield made
    made.open("triton")._loader.close()  # its modules are no business of the tests that follow


@pytest.fixture(autouse=True)
def path(monkeypatch, engines):
    """The search path without the kernels of the test before, whose module an engine keeps."""
    monkeypatch.setattr(sys, "path", list(PATH))


@pytest.mark.parametrize("value, do, found", [
    ("random.random()", CHANGES, "mark"),
    ("time.time_ns()", CHANGES, "mark"),
    ("id(self)", CHANGES, "mark"),
    ("time.time_ns()", "return Found(str(value))", "mark"),
    ("len(str(kernel))", CHANGES, None),
    ("len(str(kernel))", "return Found(str(value))", None),
])  # fmt: skip
@pytest.mark.parametrize("target, stage", [
    ("cuda:90", "ttir"), pytest.param("cuda:90", "ttgir", marks=pytest.mark.all), ("cpu:x86-64-v3", "loops"),
])  # fmt: skip
def test_a_pass_that_is_no_function_of_its_input_is_named(tmp_path, engines, target, stage, value, do, found):
    tree = PluginTree(tmp_path, (target,))
    tree.plugin(MARK.replace("{stage}", stage).replace("{value}", value, 1).replace("{do}", do))
    tree.select(
        f'use = "steady"\nkernels = "scale"\ntargets = "{target}"',
        f'use = "mark"\nkernels = "scale"\ntargets = "{target}"',
    )
    name = find_unsteady(tree.job("scale", target), engines.open("cpu" if target.startswith("cpu") else "triton"))
    assert (name.pass_name, name.stage) == (found, stage) if found else name is None
