"""Modules import only from lower levels, as docs/architecture.md has them, and each compiler in one package."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "toolchain" / "precast"
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def read_levels() -> dict[str, tuple[int, int]]:
    """Level and place in the page's table of every module or package; `engines/cpu` and `engines/triton` are one."""
    rows = re.findall(r"^\| (\d) \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = [(int(level), name.partition("/")[0]) for level, cell in rows for name in re.findall(r"`(.*?)`", cell)]
    return {name: (level, place) for place, (level, name) in reversed(list(enumerate(names)))}


LEVELS = read_levels()
HOMES = {
    # launch/package/ goes into releases as it is; there the Triton is the server's own, in its own process.
    # backend/ is a part of Triton's, in the user's process too, and so is what watches a program there, and what
    # stands there for a device.
    "triton": ("engines/triton", "launch/package", "backend", "recording/watch.py", "recording/no_device"),
    "mlir": ("engines/triton", "engines/cpu"),
    "llvmlite": ("engines/cpu",),
    "SCons": ("graph",),
}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, but for what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not is_type_checking(child):
            yield child
            yield from executed_nodes(child)


@functools.cache
def imports_of(path: Path) -> list[str]:
    found = []
    for node in executed_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def may_import(user: str, used: str) -> bool:
    """Whether `user` stands above `used`; within a level the page's order counts."""
    return user == used or LEVELS[user] > LEVELS[used]


def test_modules_import_only_from_lower_levels():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] == "__init__":
            continue
        for name in imports_of(path):
            if name.startswith("precast."):
                used = name.split(".")[1]
                if used in LEVELS and not may_import(parts[0], used):
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_each_foreign_compiler_has_one_home():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for name in imports_of(path):
            homes = HOMES.get(name.split(".")[0])
            if homes and not place.startswith(homes):
                wrong.append(f"{place} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_every_module_has_a_level():
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert modules - {"__init__"} == set(LEVELS)


def module_of(name: str) -> str:
    """The module of ours that a dotted name leads to: `precast.a.b.C` to `precast.a.b`."""
    while name and not (ROOT.parent / f"{name.replace('.', '/')}.py").is_file():
        if (ROOT.parent / name.replace(".", "/") / "__init__.py").is_file():
            return name
        name = name.rpartition(".")[0]
    return name


def test_no_package_has_a_circle_inside():
    edges = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
        used = {module_of(each) for each in imports_of(path) if each.startswith("precast.")}
        edges[name] = {each for each in used if each != name and not name.startswith(f"{each}.")}
    assert find_circle(edges) == []


def find_circle(edges: dict[str, set[str]]) -> list[str]:
    """The modules of some circle, or none; modules that lead nowhere are taken away until nothing changes."""
    left = {name: set(used) for name, used in edges.items()}
    while ends := [name for name, used in left.items() if not used & left.keys()]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_a_circle_is_found():
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["a", "b", "c", "d"]
