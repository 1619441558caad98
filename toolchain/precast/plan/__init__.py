"""Specs, targets and plugins to a plan. In: a `Project`. Out: a frozen `Plan` of units, outputs and unit keys."""

from precast.plan.key import KEY_FILE, Ingredients, read_key, write_key
from precast.plan.parts import FailedPart
from precast.plan.planning import Plan, PlannedUnit, plan_project, unit_folder

__all__ = [
    "KEY_FILE", "FailedPart", "Ingredients", "Plan", "PlannedUnit", "plan_project", "read_key", "unit_folder",
    "write_key",
]  # fmt: skip
