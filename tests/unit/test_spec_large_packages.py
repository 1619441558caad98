"""Import closures of packages with hundreds of modules: as fast as they are large, and the same as the slow way's."""

import random
import time
import tracemalloc
from pathlib import Path

import package_generator
import pytest

from precast.digest import FileDigests
from precast.spec.closure import TOOLS, Closure, read_imports
from precast.spec.modules import find_module, module_of_file
from precast.spec.sources import absolute_name

KERNEL = "import triton\n@triton.jit\ndef kernel(x): pass\n"


def closure_of(folder):
    return Closure(folder, (folder / "src",), (folder / "installed",), FileDigests())


def write_kernel(folder, text):
    (folder / "kernels").mkdir()
    (folder / "kernels/k.py").write_text(f"{text}\n{KERNEL}")
    return module_of_file(folder / "kernels/k.py")


@pytest.mark.parametrize("place", ["src", "installed"])
def test_a_package_of_400_modules(tmp_path, place):
    package_generator.write_package(tmp_path / place, "big", 400, 1, names=12, triton=0.3)
    start = write_kernel(tmp_path, "import big\nfrom big.g1 import n1_1\nbig.g2.m3\n")
    before = time.process_time()
    files = closure_of(tmp_path).files(start)
    assert time.process_time() - before < 2.0
    assert len(files) > (400 if place == "src" else 50)


def test_a_package_of_400_modules_takes_little_memory(tmp_path):
    package_generator.write_package(tmp_path / "src", "big", 400, 1, names=12, triton=0.3)
    start = write_kernel(tmp_path, "import big\n")
    tracemalloc.start()
    try:
        closure_of(tmp_path).files(start)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_another_kernel_of_a_large_package_is_cheap(tmp_path):
    dotted = package_generator.write_package(tmp_path / "src", "big", 400, 2, names=12, triton=0.3)
    starts = [find_module(name, (tmp_path / "src",)) for name in dotted[:40]]
    closure = closure_of(tmp_path)
    closure.files(starts[0])
    before = time.process_time()
    for start in starts:
        closure.files(start)
    assert time.process_time() - before < 2.0


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.all) for seed in range(8, 20))])
def test_the_closure_is_that_of_the_slow_way(tmp_path, seed):
    """Two packages, one kept in the tree and one installed, of which the first imports the second."""
    choice = random.Random(seed)
    near = package_generator.write_package(tmp_path / "src", "near", 2 + seed % 7, seed, names=3, triton=0.3)
    far = package_generator.write_package(tmp_path / "installed", "far", 2 + seed % 9, -seed, names=3, triton=0.3)
    files = [find_module(name, (tmp_path / "src",)).file for name in near]
    for file in choice.sample(files, len(files) // 2 + 1):
        name = f"n{choice.randrange(9)}_{choice.randrange(3)}"
        file.write_text(f"{file.read_text()}from {choice.choice(far)} import {name}\nimport far\nfrom far import *\n")
    closure = closure_of(tmp_path)
    for file in files:
        start = module_of_file(file)
        assert {each.path for each in closure.files(start)} == reach_slowly(tmp_path, start), start.name


def reach_slowly(folder: Path, start):
    """What a closure means, said directly: goes over everything reached until nothing is added any more."""
    paths = (folder / "src", folder / "installed")
    imports = {file: read_imports(file.read_bytes()) for path in paths for file in path.rglob("*.py")}
    asked = {module: set() for module in with_packages(start, paths)}
    size = -1
    while size != (size := sum(1 + len(names) for names in asked.values())):
        for module in list(asked):
            whole = module.root != folder / "installed" or has_triton(imports[module.file])
            for dotted, names, top in imports[module.file]["records"]:
                name = absolute_name(dotted, module.package)
                offered = whole or asked[module] & set(names) or "*" in names
                if name.split(".")[0] in TOOLS or not offered or (module.root != folder / "src" and not top):
                    continue
                for target in (name, *(f"{name}.{each}" for each in names)):
                    for found in with_packages(find_module(target, paths), paths):
                        wanted = names or imports[module.file]["attributes"]
                        asked.setdefault(found, set()).update(asked[module], wanted)
    kept = (each for each in asked if each.root != folder / "installed" or has_triton(imports[each.file]))
    return {module.file for module in kept}


def with_packages(module, paths):
    if module:
        yield module
        parts = module.name.split(".")
        yield from filter(None, (find_module(".".join(parts[:count]), paths) for count in range(1, len(parts))))


def has_triton(imports):
    return any(top and dotted.split(".")[0] == "triton" for dotted, _, top in imports["records"])
