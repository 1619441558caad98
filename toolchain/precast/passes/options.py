"""A pass's options, as a selection or a command line gives them, against what the plugin's probe says of them.

In: values by name, with their places. Out: all options with defaults filled in, or an error at each wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from precast.errors import PassError, nearest_hint
from precast.passes.probes import OptionSchema, PluginRecord, defaults_of
from precast.spec.model import Options, format_constant
from precast.spec.problems import Problems
from precast.spec.selection import PassPlaces

Value = str | int | float | bool
KINDS = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a string"}
NOWHERE = PassPlaces()


def check_options(plugin: PluginRecord, given: Mapping[str, Value], places: PassPlaces = NOWHERE) -> Options:
    """Defaults and given options of a plugin, sorted; `PassError` for an unknown, missing or wrongly typed one."""
    problems = Problems()
    problems.add(_wrong_options(plugin, given, places))
    problems.raise_any()
    merged = {**dict(defaults_of(plugin)), **given}
    for each in plugin.options:
        if each.type == "float":
            merged[each.name] = float(merged[each.name])
    return tuple(sorted(merged.items()))


def _wrong_options(plugin: PluginRecord, given: Mapping[str, Value], places: PassPlaces) -> Iterator[PassError]:
    schema = {each.name: each for each in plugin.options}
    for name, value in given.items():
        key, place = places.options.get(name, (None, None))
        if name not in schema:
            hint = nearest_hint(name, schema, "options")
            yield PassError(f"pass `{plugin.name}` has no option `{name}`", key, hint)
        elif not fits(value, schema[name]):
            kind, shown = KINDS[schema[name].type], format_constant(value)
            yield PassError(f"option `{name}` of pass `{plugin.name}` must be {kind}, not `{shown}`", place)
    for each in plugin.options:
        if each.required and each.name not in given:
            yield PassError(f"pass `{plugin.name}` needs the option `{each.name}` ({each.type})", places.use)


def fits(value: Value, option: OptionSchema) -> bool:
    """Whether a value from TOML or a command line is of the option's type; whole numbers are floats too."""
    if isinstance(value, bool):
        return option.type == "bool"
    if isinstance(value, int):
        return option.type in ("int", "float")
    return option.type == ("float" if isinstance(value, float) else "str")
