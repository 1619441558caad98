"""Project settings: `[tool.precast]` of pyproject.toml. In: a folder. Out: a frozen `Project`.

Everything here that may change machine code is in `Project.settings` and so in every key; the environment is not:
a `TRITON_*` variable that is set and does nothing is one warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from precast.cache.settings import ADDRESS_HINT, SIZE_HINT, CacheSettings, find_address_fault, parse_size, shown
from precast.digest import digest_text
from precast.errors import Place, SpecError
from precast.reads import Read, ReadKind, digest_place, read_variable, refuse_bytes
from precast.settings import BUDGET_KEYS, CACHE_KEYS, MAX_UNITS, PASS_KEYS, PROJECT_KEYS, TOOL_KEYS
from precast.spec.model import CompileSettings, Options
from precast.spec.names import MOST_CHARACTERS
from precast.spec.options import check_defaults, pattern_errors
from precast.spec.problems import Problems
from precast.spec.reserved import project_fault
from precast.spec.selection import PassPlaces, PassSelection
from precast.spec.toml import Document, Node, read_document
from precast.target import NATIVE, Backend, Target, find_machine, read_native_level
from precast.variables import may_be_set

SETTINGS_FILE = "pyproject.toml"
MOST_VERSION_CHARACTERS = 64
# What a worker process is started with, for itself.
OWN_VARIABLES = frozenset({"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "SYSTEMROOT", "HOME", "TMPDIR", "LC_ALL", "LANG"})


Places = Mapping[tuple[str, str], Place]


@dataclass(frozen=True)
class Project:
    """One project's settings. `folder` is as the user gave it, so that places in errors read as they expect."""

    folder: Path
    name: str
    version: str
    targets: tuple[Target, ...]
    kernels: tuple[str, ...] = ("kernels/*.toml",)  # globs of spec files, relative to `folder`
    python_path: tuple[str, ...] = (".",)  # folders where kernel modules are found, relative to `folder`
    passes: tuple[PassSelection, ...] = ()
    settings: CompileSettings = field(default_factory=CompileSettings)
    time_limit_s: float = 600.0  # of one unit
    memory_limit_mb: int = 0  # of one worker; 0: none
    max_units: int = MAX_UNITS  # of one kernel; 0: any number
    release_bytes: int = 0  # that a release may have; 0: any number
    cache: CacheSettings = field(default_factory=CacheSettings)
    native: str = ""  # the level that `cpu:native` stands for, where it is among the targets
    reads: tuple[Read, ...] = field(default=(), repr=False, compare=False)  # what the settings were made from
    defaults: Mapping[str, Node] = field(default_factory=dict, repr=False, compare=False)  # options of every kernel
    places: Places = field(default_factory=dict, repr=False, compare=False)  # of what is said, by key and text

    @cached_property
    def root(self) -> str:
        """The absolute folder, without links: asked for by each of thousands of units."""
        return str(self.folder.resolve())

    @property
    def search_path(self) -> tuple[Path, ...]:
        """`python_path` as folders."""
        return tuple(Path(os.path.normpath(self.folder / each)) for each in self.python_path)

    def target_glob(self, text: str) -> str:
        """A glob of targets; `cpu:native` is the target that it stands for in this project."""
        return f"{Backend.CPU.value}:{self.native}" if text == NATIVE and self.native else text


def read_project(folder: Path, *, native: str | None = None) -> Project:
    """The project in `folder`; `SpecError`, or `PlanFailed` with several, when its settings are wrong.

    `native` is the feature level that the target `cpu:native` stands for; by default this machine's.
    """
    if not (folder / SETTINGS_FILE).is_file():
        hint = f"run this in a project's folder, or give it with --project; `precast init {folder}` makes one"
        if folder.is_file():
            raise SpecError(f"`{folder}` is a file", hint="--project takes the folder that it lies in")
        raise SpecError(f"there is no `{folder / SETTINGS_FILE}`", hint=hint)
    refuse_bytes(str(folder.resolve()))
    document = read_document(folder / SETTINGS_FILE, str(folder / SETTINGS_FILE))
    tables = document.root.table()
    own = tables["tool"].table().get("precast") if "tool" in tables else None
    if own is None:
        raise SpecError(
            f"`{document.name}` has no [tool.precast] table", hint='write `[tool.precast]` with `targets = ["cuda:90"]`'
        )
    return _Reader(folder, document, own, native).read()


class _Reader:
    """Reads the table key by key; every problem is collected and told at once."""

    def __init__(self, folder: Path, document: Document, table: Node, native: str | None) -> None:
        self._folder = folder
        self._document = document
        self._table = table
        self._fields = table.table()
        self._native = native
        self._native_level = ""
        self._problems = Problems()
        self._places: dict[tuple[str, str], Place] = {}
        self._reads = [Read(ReadKind.DATA, SETTINGS_FILE, document.digest)]

    def read(self) -> Project:
        self._problems.add(self._table.unknown_keys(PROJECT_KEYS.names))
        targets = self._targets()
        defaults = self._node_table("defaults")
        self._problems.add(check_defaults(defaults, targets))
        budget = self._budget()
        project = Project(
            folder=self._folder,
            name=self._name(),
            version=self._version(),
            targets=targets,
            kernels=self._texts("kernels", Project.kernels, self._check_glob),
            python_path=self._texts("pythonpath", Project.python_path, self._check_folder),
            passes=tuple(self._passes()),
            settings=self._settings(),
            time_limit_s=float(self._integer(self._fields, "time_limit_s", 600, least=1)),
            memory_limit_mb=self._integer(self._fields, "memory_limit_mb", 0),
            max_units=self._integer(self._fields, "max_units", MAX_UNITS),
            release_bytes=self._integer(budget, "release_bytes", 0),
            cache=self._cache(),
            native=self._native_level,
            reads=tuple(self._reads),
            defaults=defaults,
            places=self._places,
        )
        self._problems.raise_any()
        return project

    def _project_text(self, key: str) -> Node | None:
        """An entry of [project], which `name` and `version` fall back to."""
        table = self._document.root.table().get("project")
        return table.table().get(key) if table else None

    def _name(self) -> str:
        node = self._fields.get("name") or self._project_text("name")
        with self._problems.collect():
            if node is None:
                raise self._table.key_error("the project has no name", 'write `name = "kernels"` in [tool.precast]')
            name = node.text().replace("-", "_") if "name" not in self._fields else node.text()
            hint = "it becomes a C prefix and a Python package: letters, digits and underscores, no word that is taken"
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
                raise node.error(f"`{name}` cannot be a project's name", hint)
            if len(name) > MOST_CHARACTERS:
                message = f"a project's name has at most {MOST_CHARACTERS} characters, this one has {len(name)}"
                raise node.error(message, "it becomes part of files' names")
            if project_fault(name):
                raise node.error(f"`{name}` cannot be a project's name: {project_fault(name)}", hint)
            return name
        return ""

    def _version(self) -> str:
        node = self._fields.get("version") or self._project_text("version")
        with self._problems.collect():
            if node is None:
                self._note_dynamic()
                return "0"
            if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+_-]*", node.text()):
                raise node.error(f"`{node.text()}` cannot be a version", "it becomes the name of a folder")
            if len(node.text()) > MOST_VERSION_CHARACTERS:
                message = f"a version has at most {MOST_VERSION_CHARACTERS} characters, this one has {len(node.text())}"
                raise node.error(message, "it becomes part of files' names")
            return node.text()
        return ""

    def _note_dynamic(self) -> None:
        """A version that only the package's own build tells is none that a release can have."""
        dynamic = self._project_text("dynamic")
        for item in dynamic.items() if dynamic and isinstance(dynamic.value, list) else ():
            if item.value == "version":
                self._places["version", ""] = item.place

    def _targets(self) -> tuple[Target, ...]:
        node = self._fields.get("targets")
        found: list[Target] = []
        with self._problems.collect():
            if node is None or not node.items():
                place = node or self._table
                raise place.key_error("the project has no targets", 'write `targets = ["cuda:90"]` in [tool.precast]')
            for item in node.items():
                with self._problems.collect():
                    target = self._target(item)
                    if target in found:
                        raise item.error(f"target `{item.value}` is there twice")
                    on_cpu = [each for each in (*found, target) if each.kind is Backend.CPU]
                    if len({find_machine([each]) for each in on_cpu}) > 1:
                        hint = "the libraries of a release are of one kind of machine: make a project for each"
                        raise item.error(f"`{item.value}` and `{on_cpu[0]}` are of two kinds of machine", hint)
                    found.append(target)
                    self._places["targets", str(target)] = item.place
        return tuple(found)

    def _target(self, node: Node) -> Target:
        if node.text() == NATIVE:
            level = self._native or read_native_level()
            if level is None:
                raise node.error(
                    "this machine is no x86-64-v2: it has no `cpu:native`", "name a level: `cpu:x86-64-v3`"
                )
            self._native_level = level
            self._reads.append(Read(ReadKind.MACHINE, NATIVE, level))
            return Target(Backend.CPU.value, level)
        try:
            return Target.parse(node.text())
        except SpecError as error:
            raise node.error(error.message, error.hint) from None

    def _texts(self, key: str, default: tuple[str, ...], check: Callable[[Node], None]) -> tuple[str, ...]:
        """An array of texts, of which `check` refuses what is wrong."""
        with self._problems.collect():
            if key not in self._fields:
                return default
            node = self._fields[key]
            if not node.items():
                raise node.key_error(f"`{key}` is empty", f"leave it out for {format_texts(default)}")
            for item in node.items():
                with self._problems.collect():
                    check(item)
                    self._places[key, item.text()] = item.place
            return node.texts()
        return default

    def _check_glob(self, node: Node) -> None:
        try:
            next(iter(self._folder.glob(node.text())), None)
        except (ValueError, NotImplementedError):
            hint = "write one that begins in the project's folder: `kernels/*.toml`"
            raise node.error(f"`{node.text()}` is no glob", hint) from None

    def _check_folder(self, node: Node) -> None:
        self._reads.append(Read(ReadKind.PLACE, node.text(), digest_place(self._folder / node.text())))
        if not (self._folder / node.text()).is_dir():
            raise node.error(f"there is no folder `{self._folder / node.text()}`")

    def _integer(self, fields: Mapping[str, Node], key: str, default: int, least: int = 0) -> int:
        with self._problems.collect():
            if key not in fields:
                return default
            value = fields[key].integer()
            self._places[key, ""] = fields[key].place
            if value < least:
                raise fields[key].error(f"`{key}` must {f'be at least {least}' if least else 'not be negative'}")
            return value
        return default

    def _budget(self) -> Mapping[str, Node]:
        """`[tool.precast.budget]`: how much a release may have."""
        fields = self._node_table("budget")
        if fields:
            self._problems.add(self._fields["budget"].unknown_keys(BUDGET_KEYS.names))
        return fields

    def _node_table(self, key: str) -> dict[str, Node]:
        with self._problems.collect():
            return self._fields[key].table() if key in self._fields else {}
        return {}

    def _cache(self) -> CacheSettings:
        """`[tool.precast.cache]`: nothing of it may change what is built."""
        if "cache" not in self._fields:
            return CacheSettings()
        self._problems.add(self._fields["cache"].unknown_keys(CACHE_KEYS.names))
        found = CacheSettings()
        for name, node in self._node_table("cache").items():
            with self._problems.collect():
                if name == "url":
                    found = replace(found, url=_address(node))
                elif name == "read":
                    found = replace(found, read=node.boolean())
                elif name == "write":
                    found = replace(found, write=node.boolean())
                elif name == "limit":
                    found = replace(found, limit=_size(node))
        return found

    def _settings(self) -> CompileSettings:
        line_info, ptxas = False, ""
        with self._problems.collect():
            line_info = self._fields["line_info"].boolean() if "line_info" in self._fields else False
        if "tools" in self._fields:
            with self._problems.collect():
                self._problems.add(self._fields["tools"].unknown_keys(TOOL_KEYS.names, "tool"))
                tools = self._fields["tools"].table()
                ptxas = self._tool(tools["ptxas"]) if "ptxas" in tools else ""
        environment = tuple(sorted(self._environment()))
        return CompileSettings(line_info, tuple(sorted(self._variables())), ptxas, environment)

    def _tool(self, node: Node) -> str:
        """A tool's path, absolute in a job and never in a key: the file's digest is."""
        file = self._folder / Path(node.text()).expanduser()
        link = digest_text(os.path.realpath(file))
        self._places["ptxas", ""] = node.place
        self._reads += [Read(ReadKind.LINK, str(Path(node.text()).expanduser()), link), read_variable("HOME")]
        if not file.is_file():
            raise node.error(f"there is no file `{node.text()}`")
        return str(file.resolve())

    def _variables(self) -> Iterator[tuple[str, str]]:
        """`[tool.precast.triton]`: variables of the worker's environment."""
        for name, node in self._node_table("triton").items():
            with self._problems.collect():
                if not may_be_set(name):
                    raise node.key_error(
                        f"`{name}` is no variable of Triton's", "they begin with `TRITON_` or `AMDGCN_`"
                    )
                if name == "TRITON_BACKENDS_IN_TREE":
                    raise node.key_error(f"`{name}` cannot be set: workers use Triton's own back ends alone")
                value = node.value
                self._places["triton", name] = node.key
                yield name, str(int(value)) if isinstance(value, (bool, int)) else node.text()

    def _environment(self) -> Iterator[tuple[str, str]]:
        """`[tool.precast.environment]`: variables that kernels' modules hear of, beside what a worker needs itself."""
        for name, node in self._node_table("environment").items():
            with self._problems.collect():
                if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                    raise node.key_error(f"`{name}` cannot be a variable's name", "letters, digits and underscores")
                if may_be_set(name):
                    raise node.key_error(f"`{name}` is Triton's", "set it in [tool.precast.triton]")
                if name in OWN_VARIABLES or name.startswith("PYTHON"):
                    raise node.key_error(f"`{name}` cannot be set: a worker has its own")
                value = node.value
                yield name, str(int(value)) if isinstance(value, (bool, int)) else node.text()

    def _passes(self) -> Iterator[PassSelection]:
        if "pass" in self._fields:
            with self._problems.collect():
                for node in self._fields["pass"].tables():
                    with self._problems.collect():
                        yield self._selection(node)

    def _selection(self, node: Node) -> PassSelection:
        self._problems.add(node.unknown_keys(PASS_KEYS.names))
        fields = node.table()
        if "use" not in fields:
            raise node.key_error("a pass needs `use`", 'write `use = "name-of-the-pass"`')
        if "at" in fields and not fields["at"].text():
            self._problems.add([fields["at"].error("`at` is empty", "leave it out for the pass's own anchor")])
        targets = _globs(fields.get("targets"))
        for glob in targets:
            self._problems.add(pattern_errors(glob, fields["targets"].place) if "targets" in fields else ())
        return PassSelection(
            use=fields["use"].text(),
            kernels=_globs(fields.get("kernels")),
            variants=_globs(fields.get("variants")),
            targets=targets,
            options=_pass_options(fields.get("options")),
            at=fields["at"].text() if "at" in fields else "",
            enabled=fields["enabled"].boolean() if "enabled" in fields else True,
            places=_pass_places(fields),
        )


def format_texts(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _address(node: Node) -> str:
    fault = find_address_fault(node.text())
    if fault:
        raise node.error(f"`{shown(node.text(), whole=False)}` is no address of a cache: {fault}", ADDRESS_HINT)
    return node.text()


def _size(node: Node) -> int:
    try:
        size = parse_size(node.text())
    except ValueError:
        raise node.error(f"`{node.text()}` is no size", SIZE_HINT) from None
    if not size:
        raise node.error("a cache of no bytes holds nothing", "leave `limit` out, or `url` for no cache")
    return size


def _globs(node: Node | None) -> tuple[str, ...]:
    """One glob or an array of them; all when there is none."""
    return ("*",) if node is None else tuple(each.text() for each in _nodes(node))


def _nodes(node: Node) -> list[Node]:
    """The elements of an array, or what stands alone."""
    return node.items() if isinstance(node.value, list) else [node]


def _pass_options(node: Node | None) -> Options:
    return tuple(sorted((name, each.scalar()) for name, each in node.table().items())) if node else ()


def _pass_places(fields: Mapping[str, Node]) -> PassPlaces:
    options = fields["options"].table() if "options" in fields else {}
    globs = [(key, node) for key in ("kernels", "variants", "targets") if key in fields for node in _nodes(fields[key])]
    return PassPlaces(
        use=fields["use"].place,
        at=fields["at"].place if "at" in fields else None,
        globs={(key, node.text()): node.place for key, node in globs},
        options={name: (node.key, node.place) for name, node in options.items()},
    )
