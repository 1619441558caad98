"""Modules import only from lower levels, and each foreign compiler is imported in one package (DESIGN §3)."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "toolchain" / "precast"
LEVELS = {
    "errors": 0, "diagnostic": 0, "target": 0, "codec": 0,
    "artifact": 1, "spec": 1, "grid": 1, "project": 1, "digest": 1, "reads": 1, "store": 1,
    "passes": 2,
    "plan": 3, "job": 3,
    "engines": 4,
    "worker": 5, "release": 5, "launch": 5,
    "graph": 6, "report": 6,
    "cli": 7, "__main__": 7,
}  # fmt: skip
# Modules of one level that may use one another, lower first: the order in which data passes through.
WITHIN = {
    0: ("errors", "diagnostic", "target", "codec"),
    1: ("digest", "reads", "artifact", "store", "grid", "spec", "project"),
    3: ("job", "plan"),
    5: ("worker", "launch", "release"),
    7: ("cli", "__main__"),
}
HOMES = {
    # launch/package/ goes into releases as it is; there the Triton is the server's own, in its own process.
    "triton": ("engines/triton", "launch/package"),
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
    if user == used:
        return True
    if LEVELS[user] != LEVELS[used]:
        return LEVELS[user] > LEVELS[used]
    order = WITHIN.get(LEVELS[user], ())
    return user in order and used in order and order.index(user) > order.index(used)


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
    assert modules - {"__init__"} <= set(LEVELS)
