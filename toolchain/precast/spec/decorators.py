"""What `@triton.autotune` and `@triton.heuristics` say, as far as it is literal. In: decorators. Out: values."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from precast.digest import digest_text
from precast.spec.model import Constant, Values, format_constant
from precast.spec.syntax import ModuleSyntax

# The options that a `triton.Config` takes after its table of constexprs, in Triton's order.
CONFIG_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
# What it sets where it is not told.
CONFIG_DEFAULTS: Mapping[str, Constant] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}


@dataclass(frozen=True)
class Config:
    """One literal `triton.Config`: constexprs, then the options that it names, in the order written."""

    values: tuple[tuple[str, Constant], ...]


def describe_config(config: Values) -> str:
    """A config by all that it sets, the same text whatever its own says and in which order."""
    said = {**CONFIG_DEFAULTS, **{name: value for name, value in config if (name, value) != ("maxnreg", None)}}
    return ", ".join(f"{name}={format_constant(said[name])}" for name in sorted(said))


def digest_configs(configs: Iterable[Values]) -> str:
    """sha256 hex over a set of configs."""
    return digest_text("\n".join(sorted({describe_config(config) for config in configs})))


def last_word(module: ModuleSyntax, use: ast.expr) -> str:
    """A decorator's own name: `autotune` for `@triton.autotune(…)`."""
    return module.dotted(use.func if isinstance(use, ast.Call) else use).rpartition(".")[2]


def is_tritons(module: ModuleSyntax, use: ast.expr) -> bool:
    """Whether a call is of something of Triton's, be it re-exported; another's of the same name may do as it likes."""
    return "triton" in module.dotted(use.func if isinstance(use, ast.Call) else use).split(".")[:-1]


def read_configs(module: ModuleSyntax, use: ast.expr) -> tuple[Config, ...] | None:
    """The configs of an autotune decorator; None when they are not all literal."""
    node = _argument(use, 0, "configs")
    if isinstance(node, ast.Name):
        binding = module.binding(node.id)
        # A list that anything else reaches may have grown by the time that the decorator sees it.
        certain = module.is_bound_once(node.id) and module.is_read_by(node.id, "autotune")
        node = binding.value if certain and isinstance(binding, (ast.Assign, ast.AnnAssign)) else None
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    configs = [_read_config(module, each) for each in node.elts]
    found = tuple(each for each in configs if each is not None)
    return found if len(found) == len(configs) else None


def read_heuristics(use: ast.expr) -> tuple[str, ...]:
    """The parameters that a heuristics decorator computes."""
    table = _argument(use, 0, "values")
    keys = table.keys if isinstance(table, ast.Dict) else []
    return tuple(key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def _read_config(module: ModuleSyntax, node: ast.expr) -> Config | None:
    if not isinstance(node, ast.Call) or last_word(module, node) != "Config" or not is_tritons(module, node):
        return None
    if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
        return None
    table = _argument(node, 0, "kwargs")
    pairs = list(_pairs(table)) if table is not None else []
    for index, name in enumerate(CONFIG_OPTIONS):
        value = _argument(node, 1 + index, name)
        if value is not None:
            pairs.append((name, value))
    values = [(name, *module.literal(value)) for name, value in pairs]
    if not all(name and literal for name, literal, _ in values):
        return None
    return Config(tuple((name, value) for name, _, value in values))


def _pairs(table: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The entries of `{"BLOCK": 128}` or `dict(BLOCK=128)`; an empty name where the name is not literal."""
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            yield (key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""), value
    elif isinstance(table, ast.Call) and isinstance(table.func, ast.Name) and table.func.id == "dict":
        yield from ((keyword.arg or "", keyword.value) for keyword in table.keywords)
        yield from (("", value) for value in table.args)
    else:
        yield "", table


def _argument(call: ast.expr, index: int, name: str) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    if index < len(call.args):
        return call.args[index]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
