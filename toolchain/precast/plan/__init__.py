"""Specs, targets and plugins to a plan. In: a `Project`. Out: a frozen `Plan` of units, outputs and unit keys."""

from precast.plan.evidence import KernelSelection
from precast.plan.key import KEY_FILE, Ingredients, UnitInputs, read_key, write_key
from precast.plan.model import Plan, PlannedUnit, make_job
from precast.plan.parts import FailedPart
from precast.plan.planning import plan_again, plan_project

__all__ = [
    "KEY_FILE", "FailedPart", "Ingredients", "KernelSelection", "Plan", "PlannedUnit", "UnitInputs", "make_job",
    "plan_again", "plan_project", "read_key", "write_key",
]  # fmt: skip
