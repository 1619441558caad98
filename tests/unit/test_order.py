"""The order in which units are compiled: longest first, one kernel's together."""

from small_projects import KERNEL, SPEC, make_project, plan

from precast.graph.order import estimate_seconds, longest_first
from precast.graph.steps import plan_steps

FILES = {
    "kernels/dot.py": KERNEL.replace("scale_kernel", "dot_kernel"),
    "kernels/dot.toml": SPEC.replace("scale", "dot").replace("[128]", "[65536, 1048576]").replace(', "fp32"', ""),
    "kernels/wide.py": KERNEL.replace("scale_kernel", "wide_kernel"),
    "kernels/wide.toml": SPEC.replace("scale", "wide").replace("[128]", "[256]").replace(', "fp32"', ""),
}


def make_steps(folder):
    planned = plan(make_project(folder, FILES), targets=("cuda:90",))
    return plan_steps(planned.project, planned.units, planned.tools).units


def order(steps, seconds_of=lambda step: None):
    return [step.name.removesuffix("@cuda:90") for step in longest_first(steps, seconds_of)]


def test_without_a_record_the_largest_tile_goes_first(tmp_path):
    steps = make_steps(tmp_path)
    assert [step.name for step in steps][:2] == [
        "dot:dtype=fp16,BLOCK=65536@cuda:90",
        "dot:dtype=fp16,BLOCK=1048576@cuda:90",
    ]
    assert order(steps) == [
        "dot:dtype=fp16,BLOCK=1048576",
        "dot:dtype=fp16,BLOCK=65536",
        "wide:dtype=fp16,BLOCK=256",
        "scale:dtype=fp16,BLOCK=128",
        "scale:dtype=fp32,BLOCK=128",
    ]


def test_what_was_measured_counts_more_and_a_kernel_stays_together(tmp_path):
    steps = make_steps(tmp_path)
    assert order(steps, lambda step: 9.0 if step.name.startswith("scale:dtype=fp32") else None) == [
        "scale:dtype=fp32,BLOCK=128",
        "scale:dtype=fp16,BLOCK=128",
        "dot:dtype=fp16,BLOCK=1048576",
        "dot:dtype=fp16,BLOCK=65536",
        "wide:dtype=fp16,BLOCK=256",
    ]


def test_an_estimate_grows_with_the_constants_and_ends_somewhere(tmp_path):
    times = {step.name: estimate_seconds(step.planned.unit) for step in make_steps(tmp_path)}
    assert times["scale:dtype=fp16,BLOCK=128@cuda:90"] < times["dot:dtype=fp16,BLOCK=65536@cuda:90"] < 0.3
    assert times["dot:dtype=fp16,BLOCK=1048576@cuda:90"] == 1.2
    huge = make_project(tmp_path / "huge", {"kernels/scale.toml": SPEC.replace("[128]", f"[{2**40}]")})
    assert estimate_seconds(plan(huge).units[0].unit) == 64.2
