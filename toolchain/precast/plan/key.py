"""What a unit is compiled from: one frozen value, whose key is the unit key, and its account for people.

In: a unit with its sources, passes, settings and tools. Out: `UnitInputs`; `Ingredients`, kept as `key.json` beside a
built image so that `why` can tell what changed. A key holds no absolute path, no time and no Python version.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from precast.bounded import read_bounded
from precast.codec import CodecError, from_json, to_json
from precast.digest import digest_text
from precast.identity import Tools
from precast.keyed import Keyed
from precast.passes.selection import PassUse
from precast.spec.model import Argument, CompileSettings, Unit, format_constant
from precast.store import digest_bytes, write_file

KEY_FILE = "key.json"
Entries = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UnitSurroundings(Keyed):
    """What a unit is compiled with, beside its own values: shared by the units of a kernel and target."""

    sources: Entries  # every file that the kernel can be made of, with its digest
    passes: tuple[PassUse, ...]  # in order
    settings: CompileSettings  # without the paths of tools, whose identities are in `tools`
    tools: Tools


@dataclass(frozen=True)
class UnitInputs(Keyed):
    """All that may change a unit's image. Its key is the unit key; a job is made of it and of places on the machine."""

    unit: Unit  # as it is compiled
    around: UnitSurroundings


@dataclass(frozen=True)
class Ingredients:
    """What a unit's key was made of, for people: groups of (name, text or digest)."""

    unit: str
    key: str
    spec: Entries  # source and arguments
    options: Entries
    sources: Entries  # file → digest
    passes: Entries  # in order
    settings: Entries
    tools: Entries


def describe_inputs(inputs: UnitInputs) -> Ingredients:
    """The ingredients of a unit."""
    unit, around = inputs.unit, inputs.around
    return Ingredients(
        unit=str(unit),
        key=inputs.key,
        spec=(
            ("source", unit.source.text),
            *((f"argument {each.name}", describe(each)) for each in unit.arguments),
            ("reading", digest_text(to_json(unit.reading))),
        ),
        options=tuple((name, format_constant(value)) for name, value in unit.options),
        sources=around.sources,
        passes=tuple((each.name, describe_pass(each)) for each in around.passes),
        settings=describe_settings(around.settings),
        tools=around.tools,
    )


def describe(argument: Argument) -> str:
    """An argument as a key and `why` say it."""
    words = [argument.type]
    words += [f"= {format_constant(argument.value)}"] if argument.constant else []
    words += [f"align {argument.divisibility}"] if argument.divisibility else []
    words += ["range32"] if argument.range32 else []
    words += [f"equal {argument.equal}"] if argument.equal is not None else []
    return " ".join(words)


def describe_pass(use: PassUse) -> str:
    """A selected pass: where it stands, its options, and the digest of all that it is."""
    options = ", ".join(f"{name}={format_constant(value)}" for name, value in use.options)
    return f"{use.stage} {use.anchor} {{{options}}} {digest_text(to_json(use))[:12]}"


def describe_settings(settings: CompileSettings) -> Entries:
    """The project's settings."""
    environment = tuple((f"triton.{name}", value) for name, value in settings.environment)
    environment += tuple((f"environment.{name}", value) for name, value in settings.module_environment)
    return (("line_info", format_constant(settings.line_info)), *environment)


def write_key(folder: Path, ingredients: Ingredients) -> str:
    """Writes `key.json` into a built unit's folder; its digest."""
    data = to_json(ingredients).encode()
    write_file(folder / KEY_FILE, data)
    return digest_bytes(data)


def read_key(folder: Path) -> Ingredients | None:
    """The ingredients that the unit in `folder` was built from; None when there is no such record."""
    try:
        return from_json(read_bounded(folder / KEY_FILE), Ingredients)
    except (OSError, CodecError):
        return None
