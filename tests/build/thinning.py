"""Specs with fewer variants, for tests that compile something of each kernel. In: a spec's text. Out: another's."""

import random
import re
from collections.abc import Callable


def with_first_values(spec: str) -> str:
    """No hint variants, and of every axis the first value alone."""
    spec = re.sub(r",? *(specialize|each) *= *(\[[^]]*\]|true)", "", spec)
    return with_chosen_values(spec.replace("{,", "{").replace("{  type", "{ type"), lambda values: values[0])


def with_chosen_values(spec: str, choose: Callable[[list[str]], str]) -> str:
    """Of every axis one value alone; what else the spec excludes does not matter then."""

    def choose_each(table: re.Match[str]) -> str:
        lines = [line for line in table[0].splitlines() if not line.startswith("exclude")]
        chosen = [re.sub(r"\[(.*)\]", lambda axis: f"[{choose(axis[1].split(','))}]", line) for line in lines]
        return "\n".join([*chosen, ""])

    return re.sub(r"(?<=\.matrix\]\n)([^[\n].*\n)+", choose_each, spec)


def draw_values(seed: object) -> Callable[[str], str]:
    """As `with_chosen_values`, for values drawn at random, the same for the same spec."""
    return lambda spec: with_chosen_values(spec, random.Random(f"{seed} {spec}").choice)
