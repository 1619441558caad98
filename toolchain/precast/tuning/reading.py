"""Evidence files, whoever wrote them, read and checked.

In: `tuning/*.json`. Out: `Evidence`; `SpecError` at the place of what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.bounded import read_bounded
from precast.errors import Place, SpecError, nearest_hint
from precast.store import reason_of
from precast.tuning.buckets import Measured
from precast.tuning.evidence import SCHEMA

KEYS = ("axes", "configs", "device", "driver", "kernel", "method", "problems", "schema", "ships", "source", "target",
        "versions")  # fmt: skip
NEEDED = ("axes", "configs", "device", "kernel", "problems", "schema", "target")
HINT = "`precast tune` writes such files; evidence.schema.json in the package describes them"
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Evidence:
    """One file. Configs give tuned axes values; `times` of the problems are in their order."""

    file: str
    kernel: str
    target: str
    device: str
    axes: tuple[str, ...]
    configs: tuple[Mapping[str, Any], ...]
    problems: tuple[Measured, ...]
    ships: tuple[int, ...] = ()  # configs that shipped when it was measured
    source: str = ""  # digest of the kernel's source; "" where it is not known


def read_evidence(path: Path, name: str) -> Evidence:
    """The evidence in a file that errors call `name`."""
    try:
        text = read_bounded(path).decode()
        data = json.loads(text)
    except OSError as error:
        raise SpecError(f"cannot read `{name}`: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise SpecError("not UTF-8 text", Place(name, 1), HINT) from None
    except json.JSONDecodeError as error:
        raise SpecError(f"not JSON: {error.msg.lower()}", Place(name, error.lineno, error.colno), HINT) from None
    except (ValueError, RecursionError):
        raise SpecError("not JSON", Place(name, 1), HINT) from None
    return _Reader(text, name).read(data)


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def _error(self, path: Path_, message: str, hint: str = HINT) -> SpecError:
        return SpecError(message, find_place(self._text, self._name, path), hint)

    def read(self, data: Any) -> Evidence:
        self._check_head(data)
        axes = tuple(self._texts(data, "axes"))
        configs = tuple(self._config(number, each, axes) for number, each in enumerate(self._list(data, "configs")))
        problems = enumerate(self._list(data, "problems"))
        ships = data.get("ships", [])
        if not isinstance(ships, list) or not all(type(each) is int and 0 <= each < len(configs) for each in ships):
            raise self._error(("ships",), "`ships` lists configs by number, from 0")
        return Evidence(
            self._name, data["kernel"], data["target"], data["device"], axes, configs,
            tuple(self._problem(number, each, len(configs)) for number, each in problems), tuple(ships),
            str(data.get("source", "")),
        )  # fmt: skip

    def _check_head(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise self._error((), "evidence is an object")
        for key in data:
            if key not in KEYS:
                raise self._error((key,), f"unknown key `{key}`", nearest_hint(key, KEYS, "keys"))
        for key in NEEDED:
            if key not in data:
                raise self._error((), f"there is no `{key}`")
        if data["schema"] != SCHEMA:
            raise self._error(("schema",), f"evidence of schema {data['schema']}; this Precast reads {SCHEMA}")
        for key in ("device", "kernel", "target"):
            if not isinstance(data[key], str) or not data[key]:
                raise self._error((key,), f"`{key}` must be a text")

    def _list(self, data: Mapping[str, Any], key: str) -> list[Any]:
        if not isinstance(data[key], list) or not data[key]:
            raise self._error((key,), f"`{key}` must be an array that is not empty")
        found: list[Any] = data[key]
        return found

    def _texts(self, data: Mapping[str, Any], key: str) -> Iterator[str]:
        for number, each in enumerate(self._list(data, key)):
            if not isinstance(each, str):
                raise self._error((key, number), f"`{key}` has names")
            yield each

    def _config(self, number: int, config: Any, axes: Sequence[str]) -> Mapping[str, Any]:
        if not isinstance(config, dict) or not config or not config.keys() <= set(axes):
            raise self._error(("configs", number), f"each config gives values to {', '.join(axes)} and to nothing else")
        return config

    def _problem(self, number: int, problem: Any, configs: int) -> Measured:
        place: Path_ = ("problems", number)
        if not isinstance(problem, dict) or not {"axes", "sizes", "times"} <= problem.keys():
            raise self._error(place, "each problem has `axes`, `sizes` and `times`")
        axes, sizes, times = problem["axes"], problem["sizes"], problem["times"]
        if not isinstance(axes, dict):
            raise self._error((*place, "axes"), "`axes` must be an object")
        if not isinstance(sizes, dict) or not all(type(each) is int for each in sizes.values()):
            raise self._error((*place, "sizes"), "`sizes` must give arguments integers")
        if not isinstance(times, list) or len(times) != configs:
            raise self._error(
                (*place, "times"), f"`times` must have a time, or null, for each of the {configs} configs"
            )
        for at, each in enumerate(times):
            if each is not None and (isinstance(each, bool) or not isinstance(each, (int, float)) or not each > 0):
                raise self._error((*place, "times", at), f"{json.dumps(each)} is no time")
        return Measured(axes, sizes, tuple(times))


_SPACE = re.compile(r"[\s,:]*")


def find_place(text: str, name: str, path: Path_) -> Place:
    """Where the value lies that a path of keys and numbers leads to, in a text that is JSON."""
    position = _skip(text, 0)
    for part in path:
        position = _find_entry(text, position, part)
    line_start = text.rfind("\n", 0, position) + 1
    return Place(name, text.count("\n", 0, position) + 1, position - line_start + 1)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _find_entry(text: str, position: int, part: str | int) -> int:
    """The position of an entry's value in the object or array that begins at `position`; of that where it has none."""
    decoder, start, number = json.JSONDecoder(), position, 0
    position = _skip(text, position + 1)
    while text[position] not in "]}":
        key: str | int = number
        if isinstance(part, str):
            key, position = decoder.raw_decode(text, position)
            position = _skip(text, position)
        if key == part:
            return position
        position = _skip(text, decoder.raw_decode(text, position)[1])
        number += 1
    return start
