"""What multiplies a kernel into variants: `matrix` with `exclude`, `configs`, and `constants` that hold in all.

In: the nodes of a kernel's table. Out: axes, excluded combinations, joint configs, constants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from precast.errors import SpecError
from precast.spec.decorators import CONFIG_DEFAULTS
from precast.spec.imported import ImportedKernel
from precast.spec.model import Axis, Constant, Values, format_constant, spell
from precast.spec.signature import Signature
from precast.spec.spelling import MAXIMUM_NESTING
from precast.spec.table import KernelTable
from precast.spec.toml import Node
from precast.spec.types import normalise_constant
from precast.target import OPTIONS

AXIS_PLACE = re.compile(r"\{(\w+)\}")


def read_axes(table: KernelTable) -> tuple[Axis, ...]:
    axes = []
    for name, node in table.sub_table("matrix").items():
        if name != "exclude":
            with table.problems.collect():
                axes.append(read_axis(table, name, node))
    return tuple(axes)


def read_axis(table: KernelTable, name: str, node: Node) -> Axis:
    """An axis and its values; an empty array and a repeated value are errors."""
    values: dict[str, Constant] = {}
    for item in node.items():
        value = read_constant(table, item)
        if format_constant(value) in values:
            raise item.error(f"axis `{name}` has the value {format_constant(value)} twice")
        values[format_constant(value)] = value
    if not values:
        raise node.error(f"axis `{name}` has no values")
    return Axis(name, tuple(values.values()))


def read_constant(table: KernelTable, node: Node) -> Constant:
    """As `_read_constant`; the table remembers where the value stands."""
    value = _read_constant(table, node)
    table.places.setdefault((node.label, format_constant(value)), node.place)
    return value


def _read_constant(table: KernelTable, node: Node, depth: int = 0) -> Constant:
    """A value of an axis or constexpr. Of a constexpr, an array is a tuple, and a text is read as in a unit's name.

    So `None` is None, `tl.fp16` a data type, `modes:Mode.FAST` what a module holds, and `"None"`, with quotes of its
    own, a text. One that is to be filled in (`{axis}`) is left as it is.
    """
    value = node.value
    if node.label not in table.constexprs:
        return _read_type(node)
    if isinstance(value, list):
        if depth == MAXIMUM_NESTING:
            raise node.error(f"`{node.label}` is nested too deeply", f"at most {MAXIMUM_NESTING} arrays deep")
        return spell(tuple(_read_constant(table, item, depth + 1) for item in node.items()))
    if type(value) is int or not isinstance(node.scalar(), str):
        return spell(value)
    return node.text() if AXIS_PLACE.search(node.text()) else _read_word(table, node)


def _read_type(node: Node) -> Constant:
    """A scalar; the text of a Triton data type in Triton's own spelling."""
    value = node.scalar()
    try:
        return normalise_constant(value) if isinstance(value, str) and not AXIS_PLACE.search(value) else value
    except SpecError as error:
        raise node.error(error.message, error.hint) from None


def _read_word(table: KernelTable, node: Node) -> Constant:
    text = node.text()
    if text == "None":
        return None
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _read_quoted(node)
    try:
        return (table.references and table.references.find(node, text)) or normalise_constant(text)
    except SpecError as error:
        raise error if error.where else node.error(error.message, error.hint) from None


def _read_quoted(node: Node) -> str:
    """A text exactly as it stands between quotes of its own."""
    try:
        text = str(json.loads(node.text()))
    except ValueError:
        raise node.error("the quotes within this text do not close", "a text within a text is a JSON string") from None
    if text.startswith("tl."):
        raise node.error(f"`{text}` is how a data type is written: no constexpr can be that text")
    return text


def read_exclude(table: KernelTable) -> tuple[Values, ...]:
    """Combinations that are no variants: `exclude = [{ dtype = "fp32", BLOCK = 4096 }]`."""
    node = table.sub_table("matrix").get("exclude")
    if node is None:
        return ()
    with table.problems.collect():
        return tuple(
            tuple((name, _read_constant(table, value)) for name, value in item.table().items()) for item in node.items()
        )
    return ()


def read_constants(table: KernelTable, constexprs: Sequence[str]) -> Values:
    """Constexprs with one value in every variant; a text may hold `{axis}` places."""
    found: list[tuple[str, Constant]] = []
    if table.sub_table("constants"):
        table.problems.add(table.fields["constants"].unknown_keys(constexprs, "constexpr"))
    for name, node in table.sub_table("constants").items():
        with table.problems.collect():
            if name in table.sub_table("matrix"):
                raise node.key_error(f"`{name}` is in `constants` and in `matrix`", "leave it in one of them")
            found.append((name, read_constant(table, node)))
    return tuple(found)


def read_configs(table: KernelTable, signature: Signature) -> tuple[Values, ...]:
    """Joint sets of constexprs and options: written out, or `"source"` for the literal ones of @triton.autotune."""
    node = table.fields.get("configs")
    if node is None:
        return ()
    constexprs = [each.name for each in signature.parameters if each.constexpr]
    with table.problems.collect():
        if node.value == "source" and signature.configs is None:
            return ()  # computed: an import tells them
        configs = (
            _source_configs(node, signature) if node.value == "source" else _written_configs(table, node, constexprs)
        )
        if not configs:
            raise node.error("`configs` is empty")
        check_configs(table, configs)
        return configs
    return ()


def find_places(table: KernelTable) -> dict[str, None]:
    """The names in braces, in the order written: axes that types and constants are filled in from."""
    entries = [*table.sub_table("args").values(), *table.sub_table("constants").values()]
    values = [node.table().get("type", node).value if isinstance(node.value, dict) else node.value for node in entries]
    return dict.fromkeys(name for value in values for name in AXIS_PLACE.findall(str(value)))


def config_names(table: KernelTable) -> set[str]:
    """What the written configs give values, whether these can be read or not."""
    node = table.fields.get("configs")
    configs = node.value if node and isinstance(node.value, list) else []
    return {name for config in configs if isinstance(config, dict) for name in config}


def check_configs(table: KernelTable, configs: Sequence[Values]) -> None:
    """`SpecError` when configs name an axis of the matrix, or what `constants` gives a value."""
    for key in ("matrix", "constants"):
        taken = sorted({name for config in configs for name, _ in config} & set(table.sub_table(key)))
        if taken:
            message = f"`{taken[0]}` is in `configs` and in `{key}`"
            raise table.fields["configs"].key_error(message, "leave it in one of them")


def _written_configs(table: KernelTable, node: Node, constexprs: Sequence[str]) -> tuple[Values, ...]:
    for item in node.tables():
        known = (*constexprs, *(rule.name for rules in OPTIONS.values() for rule in rules), *find_places(table))
        table.problems.add(item.unknown_keys(known, "constexpr or option"))
    found: dict[Values, None] = {}
    for item in node.items():
        config = tuple((name, read_constant(table, value)) for name, value in item.table().items())
        if _words(config) in map(_words, found):
            raise item.error("this config is there twice")
        found[config] = None
    return tuple(found)


def _words(config: Values) -> frozenset[tuple[str, str]]:
    """What tells a config from another: `1` is not `true`, and the order of names says nothing."""
    return frozenset((name, format_constant(value)) for name, value in config)


def _source_configs(node: Node, signature: Signature) -> tuple[Values, ...]:
    if not signature.configs:
        raise node.error("the source has no @triton.autotune")
    return tuple(each.values for each in signature.configs)


def imported_configs(node: Node, kernel: ImportedKernel) -> tuple[Values, ...]:
    """The configs that a source computes. Options that all of them leave as Triton has them are not said."""
    if kernel.configs_fault:
        hint = "write them out: `configs = [{ BLOCK = 128, num_warps = 4 }]`"
        raise node.error(f"the source's autotune configs cannot be stated: it has {kernel.configs_fault}", hint)
    if not kernel.configs:
        raise node.error("the source has no @triton.autotune")
    values = [dict(config) for config in kernel.configs]
    silent = {name for name, value in CONFIG_DEFAULTS.items() if all(each.get(name) == value for each in values)}
    said = [tuple((name, value) for name, value in config.items() if name not in silent) for config in values]
    return tuple(dict.fromkeys(said))
