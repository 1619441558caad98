"""Generates packages whose modules import each other in every way: chains, stars, re-exports, circles."""

import random
from pathlib import Path


def write_package(folder: Path, name: str, modules: int, seed: int, *, names: int, triton: float) -> list[str]:
    """Writes package `name` into `folder`; gives the dotted names of its modules.

    A module defines up to `names` names of its own, asks others for names and for attributes, and imports Triton with
    probability `triton`.
    """
    random_of = random.Random(seed)
    groups = [f"{name}.g{number}" for number in range(max(1, modules // 20))]
    dotted = [f"{random_of.choice([name, *groups])}.m{number}" for number in range(modules)]
    packages = [name, *groups]
    for package in packages:
        inside = [each for each in [*dotted, *groups] if each.rpartition(".")[0] == package]
        lines = [_import_of(random_of, each, names) for each in random_of.sample(inside, min(len(inside), 40))]
        _write(folder, f"{package}.__init__", lines)
    for number, module in enumerate(dotted):
        chain = dotted[(number + 1) % modules]  # one circle through all of them
        others = [chain, *random_of.sample([*dotted, *packages], random_of.randint(0, min(6, modules)))]
        lines = ["import triton"] if random_of.random() < triton else []
        lines += [_import_of(random_of, each, names) for each in others if random_of.random() < 0.8]
        lines += [f"n{number}_{each} = x.a{random_of.randrange(names * modules)}" for each in range(names)]
        _write(folder, module, lines)
    return dotted


def _import_of(random_of: random.Random, module: str, names: int) -> str:
    package, _, last = module.rpartition(".")
    number = last.removeprefix("m") if last.startswith("m") else "0"
    asked = ", ".join(f"n{number}_{random_of.randrange(names)}" for _ in range(3))
    forms = [f"from {module} import {asked}", f"from {module} import {asked}", f"from {module} import *"]
    forms += [f"import {module}", f"import {module} as other", f"def f{number}():\n    from {module} import {asked}"]
    forms += [f"from {package} import {last}"] if package else []
    return random_of.choice(forms)


def _write(folder: Path, module: str, lines: list[str]) -> None:
    file = folder.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*lines, ""]))
