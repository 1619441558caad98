"""Unit keys: what may change a unit's image, by name and digest, kept so that `why` can tell what changed.

In: a unit with its sources, passes, settings and tools. Out: `Ingredients`, their key, and `key.json` beside a built
image. A key holds no absolute path, no time and no Python version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from precast.codec import CodecError, from_json, to_json
from precast.digest import digest_text
from precast.passes.selection import PassUse
from precast.spec.closure import SourceFile
from precast.spec.model import Argument, CompileSettings, Unit, format_constant
from precast.store import write_file

KEY_FORMAT = "1"
KEY_FILE = "key.json"
Entries = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Ingredients:
    """All that a unit's key is made of, in groups of (name, text or digest)."""

    unit: str
    spec: Entries  # source and arguments
    options: Entries
    sources: Entries  # file → digest
    passes: Entries  # in order
    settings: Entries
    tools: Entries

    @property
    def key(self) -> str:
        """sha256 hex over all of it."""
        groups = [getattr(self, each.name) for each in fields(self) if each.name != "unit"]
        lines = [f"{name}\0{text}" for group in groups for name, text in (("", ""), *group)]
        return digest_text("\n".join([KEY_FORMAT, self.unit, *lines]))


def make_ingredients(
    unit: Unit, sources: Iterable[SourceFile], passes: Iterable[PassUse], settings: Entries, tools: Entries
) -> Ingredients:
    """The ingredients of one unit."""
    return Ingredients(
        unit=str(unit),
        spec=(
            ("source", unit.source.text),
            *((f"argument {each.name}", describe(each)) for each in unit.arguments),
            ("reading", digest_text(to_json(unit.reading))),
        ),
        options=tuple((name, format_constant(value)) for name, value in unit.options),
        sources=tuple((file.name, file.digest) for file in sources),
        passes=tuple((each.name, describe_pass(each)) for each in passes),
        settings=settings,
        tools=tools,
    )


def describe(argument: Argument) -> str:
    """An argument as a key and `why` say it."""
    words = [argument.type]
    words += [f"= {format_constant(argument.value)}"] if argument.constant else []
    words += [f"align {argument.divisibility}"] if argument.divisibility else []
    words += ["range32"] if argument.range32 else []
    return " ".join(words)


def describe_pass(use: PassUse) -> str:
    """A selected pass: where it stands, its options, and the digest of all that it is."""
    options = ", ".join(f"{name}={format_constant(value)}" for name, value in use.options)
    return f"{use.stage} {use.anchor} {{{options}}} {digest_text(to_json(use))[:12]}"


def describe_settings(settings: CompileSettings) -> Entries:
    """The project's settings; a tool's path is left out, its digest stands among the tools."""
    environment = tuple((f"triton.{name}", value) for name, value in settings.environment)
    environment += tuple((f"environment.{name}", value) for name, value in settings.module_environment)
    return (("line_info", format_constant(settings.line_info)), *environment)


def write_key(folder: Path, ingredients: Ingredients) -> None:
    """Writes `key.json` into a built unit's folder."""
    write_file(folder / KEY_FILE, to_json(ingredients, indent=1).encode())


def read_key(folder: Path) -> Ingredients | None:
    """The ingredients that the unit in `folder` was built from; None when there is no such record."""
    try:
        return from_json((folder / KEY_FILE).read_bytes(), Ingredients)
    except (OSError, CodecError):
        return None
