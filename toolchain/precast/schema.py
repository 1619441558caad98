"""What a table of settings may hold, as frozen values: the names that a checker knows, with shape, meaning and default.

In: nothing. Out: the names for the reader of such a table, a JSON Schema for editors, and words for the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

JsonSchema = dict[str, object]


class Shape(Protocol):
    """The form of a value: for people in words, for programs as a JSON Schema."""

    @property
    def words(self) -> str: ...

    @property
    def schema(self) -> JsonSchema: ...


@dataclass(frozen=True)
class Text:
    choices: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return " or ".join(f'`"{each}"`' for each in self.choices) if self.choices else "text"

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}


@dataclass(frozen=True)
class Integer:
    """An integer of 64 bits, within bounds where there are any."""

    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[int, ...] = ()
    power_of_two: bool = False

    @property
    def words(self) -> str:
        if self.choices:
            return " or ".join(map(str, self.choices))
        noun = "power of two" if self.power_of_two else "integer"
        if self.minimum is None:
            return noun
        return f"{noun} ≥ {self.minimum}" if self.maximum is None else f"{noun}, {self.minimum} to {self.maximum}"

    @property
    def schema(self) -> JsonSchema:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        found: JsonSchema = {"type": "integer", **{name: each for name, each in bounds.items() if each is not None}}
        allowed = self.choices or self._powers
        return {**found, "enum": list(allowed)} if allowed else found

    @property
    def _powers(self) -> tuple[int, ...]:
        powers = (1 << exponent for exponent in range(63))
        return tuple(each for each in powers if each <= (self.maximum or each)) if self.power_of_two else ()


@dataclass(frozen=True)
class Boolean:
    words = "`true` or `false`"

    @property
    def schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Real:
    words = "real number"

    @property
    def schema(self) -> JsonSchema:
        return {"type": "number"}


@dataclass(frozen=True)
class Either:
    """One of several shapes; `name` says all of them in short."""

    shapes: tuple[Shape, ...]
    name: str = ""

    @property
    def words(self) -> str:
        return self.name or ", or ".join(each.words for each in self.shapes)

    @property
    def schema(self) -> JsonSchema:
        return {"anyOf": [each.schema for each in self.shapes]}


@dataclass(frozen=True)
class Array:
    of: Shape
    minimum: int = 0
    maximum: int | None = None

    @property
    def words(self) -> str:
        return f"array of: {self.of.words}"

    @property
    def schema(self) -> JsonSchema:
        bounds = {"minItems": self.minimum or None, "maxItems": self.maximum}
        return {"type": "array", "items": self.of.schema, **{name: each for name, each in bounds.items() if each}}


@dataclass(frozen=True)
class Nested:
    """Arrays of arrays of values, as deep as one likes: a tuple."""

    of: Shape

    @property
    def words(self) -> str:
        return f"{self.of.words}, or an array of such"

    @property
    def schema(self) -> JsonSchema:
        return {"anyOf": [self.of.schema, {"type": "array"}]}


@dataclass(frozen=True)
class Key:
    """One entry of a table; `default` is what holds where it is left out, in TOML's spelling or in words."""

    name: str
    shape: Shape
    meaning: str
    default: str = ""
    required: bool = False


@dataclass(frozen=True)
class Table:
    """Keys of known names and, where `others` is their shape, entries that the user names; `header` is how it is
    written."""

    header: str
    keys: tuple[Key, ...] = ()
    others: Shape | None = None
    others_meaning: str = ""
    noun: str = "a table"

    @property
    def names(self) -> tuple[str, ...]:
        """What a checker knows."""
        return tuple(each.name for each in self.keys)

    @property
    def words(self) -> str:
        return self.noun

    @property
    def schema(self) -> JsonSchema:
        found: JsonSchema = {
            "type": "object",
            "properties": {each.name: _describe(each) for each in self.keys},
            "additionalProperties": self.others.schema if self.others else False,
        }
        required = [each.name for each in self.keys if each.required]
        return {**found, "required": required} if required else found


def _describe(key: Key) -> JsonSchema:
    default = f" Default: {key.default}." if key.default else ""
    return {**key.shape.schema, "description": f"{key.meaning}.{default}"}
