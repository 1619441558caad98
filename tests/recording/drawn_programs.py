"""Programs drawn at random, recorded without a device: what is written plans, and each launch has its own unit.

`drawn_programs.py FOLDER SEED ROUNDS`: prints what does not hold, with the seed of its round, and ends with 1.
"""

from __future__ import annotations

import importlib.util
import random
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tomlkit
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import precast
from precast.artifact import Facts, Parameter
from precast.artifact import TensorDescriptor as TensorDescriptorFacts
from precast.diagnostic import format_error
from precast.errors import PrecastError
from precast.graph.steps import check_launchers
from precast.launch.formats import ImagePlace, IndexedUnit, ReleaseFile, ReleaseIndex, describe_interface, write_index
from precast.launch.package.calls import DTYPES
from precast.plan import plan_project
from precast.project import read_project
from precast.recording.coverage import compare_release
from precast.recording.no_device.driver import start
from precast.spec.model import Argument, Unit
from precast.spec.types import parse_type
from precast.target import Target

SETTINGS = '[tool.precast]\nname = "drawn"\nversion = "1.0"\ntargets = ["cuda:90"]\npythonpath = ["program"]\n'
PREFIX = "import enum\nimport triton\nimport triton.language as tl\n\n\n"
MODES = """\
class Mode(enum.Enum):
    PLAIN = "plain"
    FAST = 2


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Word(str, enum.Enum):
    LEFT = "left"
    RIGHT = "None"


@triton.jit
def square(value):
    return value * value


"""


class Tensor:
    """What Triton asks of a tensor."""

    def __init__(self, dtype: str = "float32", address: int = 4096, shape: tuple[int, ...] = (64, 64)) -> None:
        self.dtype = np.dtype(dtype) if hasattr(np, dtype) else dtype
        self.address, self.shape = address, shape

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return (self.shape[-1], 1)[-len(self.shape) :]


ELEMENTS = ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "float64", "float8_e4m3fn")
NAMES = ("x", "n", "dtype", "n_type", "bias", "out", "BLOCK", "MODE", "num", "ü", "x_dtype", "min", "int", "grid",
         "num_stages_", "configs")  # fmt: skip
DEFAULTS = (4, 3, False)  # of the options that are compared
INTEGERS = (0, 1, 5, 16, -1, -16, 48, 2**31 - 1, 2**31, 2**31 + 3, -(2**31), 2**62, 2**63 + 1, 2**63)
TEXTS = (
    "relu",
    "ReLU",
    "re lu",
    "None",
    "a:b",
    '"q"',
    "tl.float16",
    "{x}",
    "",
    "ünï",
    "x%16",
    "true",
    "1",
    "a\nb",
    "x==1",
    "ops:x",
    "\\",
)
VALUES = (0, 1, 2, 64, -1, 2**31, 2**63, 2**70, -(2**70), True, False, None, 0.0, -0.0, 1.0, 0.1, 1e300, float("inf"),
          float("-inf"), tl.float16, tl.int8, np.float32(0.5), np.int64(3), np.bool_(True), *TEXTS)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A parameter: its declaration, and what its launches give."""

    name: str
    declaration: str
    values: tuple[Any, ...]


class Drawing:
    """One program: a module of kernels, or two, and launches of them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.seed, self.folder = seed, folder
        self.modules: list[ModuleType] = []
        self._count = 0

    def launches(self) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
        """Kernels with arguments and keywords, some of them several times."""
        found = []
        for number in range(self.random.choice((1, 1, 2))):
            self._make_module(number)
        for kernel, parameters in self._kernels():
            found += [(kernel, *self._draw_call(parameters)) for _ in range(self.random.choice((1, 2, 3, 6, 9)))]
        self.random.shuffle(found)
        return found

    def _make_module(self, number: int) -> None:
        name = f"ops_{self.seed}_{number}"
        path = self.folder / "program" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._drawn = getattr(self, "_drawn", [])
        text, place = [PREFIX, MODES], len(self._drawn)
        path.write_text("".join(text))
        self._write(path, text, name)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        self.modules.append(module)
        for each in self._drawn[place:]:
            each[0] = module

    def _write(self, path: Path, text: list[str], module: str) -> None:
        """Kernels of one to six parameters, the last of them in a class."""
        self._module = module
        for each in ("kernel", "other", "method")[: self.random.choice((1, 2, 3))]:
            function = f"{each}_{self.seed}"
            parameters = self._draw_parameters()
            arguments = ", ".join(each.declaration for each in parameters)
            skipped = [each.name for each in parameters if "constexpr" not in each.declaration]
            decorator = self._draw_decorator([each for each in skipped if self.random.random() < 0.2])
            body = f"{decorator}\ndef {function}({arguments}):\n    pass\n\n\n"
            text.append(f"class Holder:\n{textwrap.indent(body, '    ')}" if each == "method" else body)
            self._drawn.append([None, function, parameters])
        path.write_text("".join(text))

    def _draw_decorator(self, names: list[str]) -> str:
        return f"@triton.jit(do_not_specialize={names!r})" if names else "@triton.jit"

    def _kernels(self) -> Iterator[tuple[Any, list[Drawn]]]:
        for module, function, parameters in self._drawn:
            owner = module.Holder if function.startswith("method") else module
            yield getattr(owner, function), parameters

    def _draw_parameters(self) -> list[Drawn]:
        names = self.random.sample(NAMES, self.random.randint(1, 6))
        drawn = [self._draw_parameter(name) for name in names]
        ready = [each for each in drawn if "=" not in each.declaration]
        return ready + [each for each in drawn if "=" in each.declaration]

    def _draw_parameter(self, name: str) -> Drawn:
        default = self.random.random() < 0.2
        if name.isupper() or self.random.random() < 0.2:
            values = tuple(self._draw_constant() for _ in range(self.random.choice((1, 2, 3))))
            return Drawn(name, f"{name}: tl.constexpr{' = 3' if default else ''}", values)
        kinds = self.random.choice(((self._draw_kind(),), (self._draw_kind(), self._draw_kind(), self._draw_kind())))
        values = tuple(kind() for kind in kinds for _ in range(3))
        return Drawn(name, f"{name}{' = 7' if default else ''}", values)

    def _draw_kind(self) -> Any:
        return self.random.choice(
            (self._draw_integer, self._draw_integer, self._draw_tensor, self._draw_tensor, self._draw_tensor_of_one,
             self._draw_bool, self._draw_float, lambda: None, self._draw_tuple, self._draw_descriptor,
             lambda: tl.constexpr(self.random.choice((1, None))))
        )  # fmt: skip

    def _draw_integer(self) -> int:
        return self.random.choice(INTEGERS)

    def _draw_bool(self) -> bool:
        return self.random.random() < 0.5

    def _draw_float(self) -> float:
        return self.random.choice((0.0, 1.0, -0.0, 2.5, float("inf"), 16.0))

    def _draw_tensor(self) -> Tensor:
        return Tensor(self.random.choice(ELEMENTS), self.random.choice((4096, 4100, 4104)))

    def _draw_tensor_of_one(self) -> Tensor:
        return Tensor("float32", self.random.choice((4096, 4100)), (32,))

    def _draw_tuple(self) -> tuple[Any, ...]:
        kinds = (self._draw_integer, self._draw_tensor, self._draw_float, self._draw_bool, lambda: None,
                 lambda: (self._draw_integer(), self._draw_tensor()), lambda: (5,))  # fmt: skip
        return tuple(self.random.choice(kinds)() for _ in range(self.random.randint(1, 3)))

    def _draw_descriptor(self) -> TensorDescriptor:
        dtype = self.random.choice(("float32", "float16"))
        return TensorDescriptor.from_tensor(Tensor(dtype), [16, self.random.choice((32, 64))])

    def _draw_constant(self) -> Any:
        if self.random.random() < 0.15:
            return lambda module: self.random.choice((*module.Mode, *module.Level, *module.Word, module.square))
        if self.random.random() < 0.15:
            return tuple(self.random.choice(VALUES[:21]) for _ in range(self.random.randint(0, 3)))
        return self.random.choice(VALUES)

    def _draw_call(self, parameters: list[Drawn]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = {each.name: self._resolve(self.random.choice(each.values)) for each in parameters}
        named = self.random.randint(0, len(parameters))
        if "grid" in values:  # which Triton takes by its place alone
            named = len(parameters)
        for each in parameters[-1:] if "grid" in values else parameters:
            if "=" in each.declaration and self.random.random() < 0.4:
                del values[each.name]
        first = []
        for each in parameters[:named]:
            if each.name not in values:
                break
            first.append(values.pop(each.name))
        if self.random.random() < 0.3:
            values["num_warps"] = self.random.choice((2, 4, 8))
        if self.random.random() < 0.1:
            values["num_stages"] = self.random.choice((2, 3))
        if self.random.random() < 0.1:
            values["debug"] = True
        return tuple(first), values

    def _resolve(self, value: Any) -> Any:
        return value(self.random.choice(self.modules)) if callable(value) and type(value) is type(lambda: 0) else value


@dataclass(frozen=True)
class Specialised:
    """What the JIT says that it compiled, told without the recorder."""

    source: str
    types: tuple[tuple[str, str], ...]
    hints: frozenset[str]
    constants: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, Any], ...]


def specialised(kernel: Any, function: Any) -> Specialised:
    source, types, hints, constants = kernel.src, [], set(), []
    for place, parameter in enumerate(function.params):
        kind, value = source.signature[parameter.name], source.constants.get((place,))
        if parameter.is_constexpr:
            constants.append((parameter.name, told(value)))
            continue
        types.append((parameter.name, type_text(kind, (place,), source.constants)))
        if ["tt.divisibility", 16] in map(list, source.attrs.get((place,), ())):
            hints.add(f"{parameter.name}%16")
        if kind == "constexpr" and types[-1][1] == "i32":
            hints.add(f"{parameter.name}==1")
    options = tuple((name, getattr(kernel.metadata, name)) for name in ("num_warps", "num_stages", "debug"))
    name = f"{function.fn.__module__}:{function.fn.__qualname__}"
    return Specialised(name, tuple(types), frozenset(hints), tuple(constants), options)


def type_text(kind: Any, path: tuple[int, ...], constants: Any) -> str:
    if isinstance(kind, (tuple, list)):
        return f"({', '.join(type_text(each, (*path, place), constants) for place, each in enumerate(kind))})"
    if kind != "constexpr":
        return "i1" if kind == "u1" else str(parse_type(str(kind)))
    value = constants.get(path)
    return "none" if getattr(value, "value", value) is None else "i32"


def told(value: Any) -> str:
    """A constexpr's value, each by its own text."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tl.dtype) or (isinstance(value, str) and value.startswith("tl.")):
        word = str(value).removeprefix("tl.")
        return f"dtype {DTYPES.get(word, word)}"
    if hasattr(value, "fn"):
        return f"{value.fn.__module__}:{value.fn.__qualname__}"
    if isinstance(value, (Tensor, type(None), bool, int, float, str)) and type(value).__module__ == "builtins":
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple):
        return f"({', '.join(map(told, value))})"
    return f"{type(value).__module__}:{type(value).__qualname__}.{value.name}"


def told_unit(value: Any) -> str:
    """The same of a unit's constant."""
    text = getattr(value, "text", None)
    if text is None:
        return told(value)
    if text.startswith("("):
        from precast.spec.spelling import items_of

        return f"({', '.join(map(told_unit, items_of(value)))})"
    if ":" in text:
        return text
    number = float(text) if re.search("[.nf]", text) else int(text)
    return told(number)


class Round:
    """One program, recorded in parts, its file edited between them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.file = folder / "kernels" / f"recorded_{seed}.toml"
        self.seen: dict[Specialised, None] = {}
        self.faults: list[str] = []
        self._drawing = Drawing(seed, folder)

    def run(self) -> None:
        chance = self._drawing.random
        launches = self._drawing.launches()
        self._record(launches[: chance.randint(0, len(launches))])
        if self.file.exists():
            edit(self.file, chance)
        self._record(launches)
        before = self.file.read_bytes()
        chance.shuffle(launches)
        self._record(launches)
        if self.file.read_bytes() != before:
            self.faults.append(f"recorded again, it says\n{self.file.read_text()}\nafter\n{before.decode()}")
        for each in self._drawing.modules:
            del sys.modules[each.__name__]

    def _record(self, launches: list[Any]) -> None:
        with precast.record(self.file) as recording:
            for kernel, arguments, keywords in launches:
                compiled = kernel[(1,)](*arguments, **keywords)
                self.seen[specialised(compiled, kernel)] = None
        for each in recording.merged.unsaid:
            if "is no expression" not in each.reason and "no hints within tuples" not in each.reason:
                self.faults.append(f"not recorded: {each.what}: {each.reason}")

    def check(self, release: Path, units: list[Unit]) -> None:
        """`units` are all that the plan has, `release` says that it has them."""
        coverage = compare_release(release, [self.file])
        self.faults += [f"not covered: {each}\n{self.file.read_text()}" for each in coverage.missing]
        self.faults += [f"unread: {each}" for each in coverage.unread]
        for each in self.seen:
            self._check_unit(each, units)

    def _check_unit(self, seen: Specialised, units: list[Unit]) -> None:
        """Of the units that take the launch, the one with the most hints promises just what the JIT specialised."""
        taking = [promised(each) for each in units if takes(each, seen)]
        if not taking:
            self.faults.append(f"no unit takes {seen}\n{self.file.read_text()}")
        elif max(taking, key=len) != seen.hints:
            self.faults.append(f"{taking} are promised to {seen}\n{self.file.read_text()}")


def takes(unit: Unit, seen: Specialised) -> bool:
    types = tuple((each.name, each.type) for each in unit.arguments if each.type != "constexpr")
    constants = tuple((each.name, told_unit(each.value)) for each in unit.arguments if each.type == "constexpr")
    place = unit.source.file.rpartition("/")[2].removesuffix(".py")
    options = dict(unit.options)
    return (
        f"{place}:{unit.source.function}" == seen.source
        and types == seen.types
        and constants == seen.constants
        and all(
            options.get(name, default) == value for (name, value), default in zip(seen.options, DEFAULTS, strict=True)
        )
        and promised(unit) <= seen.hints
    )


def promised(unit: Unit) -> frozenset[str]:
    return frozenset(text for each in unit.arguments for text in held(each))


def held(argument: Argument) -> Iterator[str]:
    if argument.type in ("constexpr", "none"):
        return
    if argument.constant or argument.equal is not None:
        yield f"{argument.name}==1"
    if argument.divisibility:
        yield f"{argument.name}%{argument.divisibility}"


def index_of(units: list[Unit]) -> bytes:
    """The index of a release of these units, of no image."""
    image = ImagePlace("targets/none.pack", 0, 1, "0" * 64)
    indexed = []
    for unit in units:
        left = [each for each in unit.arguments if each.type != "constexpr" and not each.constant]
        parameters = tuple(Parameter("argument", each.name, each.type) for each in left)
        descriptors = tuple(
            TensorDescriptorFacts(each.name, False, parse_type(each.type).shape, 0, 2, 3)
            for each in left
            if each.type.startswith("tensordesc")
        )
        facts = Facts("symbol", parameters, source_digest=unit.source.text, tensor_descriptors=descriptors)
        indexed.append(IndexedUnit(unit, facts, image))
    interface = describe_interface("drawn", units)
    return write_index(ReleaseIndex(interface, tuple(indexed), (ReleaseFile("targets/none.pack", 1, "0" * 64),), ()))


def edit(file: Path, chance: random.Random) -> None:
    """What a user may do to the file: another order, other names, comments. Promises that are gone come back."""
    text = file.read_text()
    if chance.random() < 0.5:
        text = text.replace("\n[kernel.", "\n# mine\n[kernel.")
    if chance.random() < 0.3:
        text = text.replace("dtype_type", "kind").replace("{x_type}", "{X}").replace(" x_type =", " X =")
    if chance.random() < 0.2:
        text = text.replace(", align = 16", "")
    document = tomlkit.parse(text)
    for name, kernel in list(document["kernel"].items()):
        for key in ("configs", "hints"):
            if chance.random() < 0.3 and key in kernel:
                items = kernel[key].unwrap()
                chance.shuffle(items)
                kernel[key] = items[: len(items) if key == "configs" else chance.randint(1, len(items))]
        if chance.random() < 0.2 and "constants" in kernel and "configs" not in kernel:
            kernel["matrix"] = {each: [value] for each, value in kernel.pop("constants").unwrap().items()}
        if chance.random() < 0.2 and len(kernel.get("args", ())) > 1:
            args = kernel["args"].unwrap()
            kernel["args"] = dict(reversed(args.items()))
        for key in ("grid", "problem"):
            if chance.random() < 0.1:
                kernel.pop("problem", None)
                kernel.pop(key, None)
        if chance.random() < 0.1 and len(document["kernel"]) > 1:
            del document["kernel"][name]
    file.write_text(tomlkit.dumps(document))


def plan_units(folder: Path) -> list[Unit]:
    """The units of the project in `folder`, which says in `index.bin` that it has them."""
    (folder / "pyproject.toml").write_text(SETTINGS)
    plan = plan_project(read_project(folder))
    check_launchers(plan)
    units = [planned.unit for planned in plan.units]
    (folder / "index.bin").write_bytes(index_of(units))
    return units


def main(folder: Path, seed: int, rounds: int) -> int:
    start(Target.parse("cuda:90"), lambda values: None)
    drawn = [Round(folder, number) for number in range(seed, seed + rounds)]
    for each in drawn:
        each.run()
    try:
        units = plan_units(folder)
    except PrecastError as error:
        print(format_error(error))
        return 1
    for each in drawn:
        each.check(folder, units)
        for fault in each.faults[:1]:
            print(f"seed {each.seed}: {fault}")
    return int(any(each.faults for each in drawn))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
