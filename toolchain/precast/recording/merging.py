"""What a program launched, merged into a spec file: a kernel for each function, a variant for each way it was launched.

In: notes of all processes, the file's text. Out: the text with what was missing, and what no spec can say. A second
run of the same program finds nothing missing, so the text stays as it is, byte for byte.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from precast.errors import SpecError
from precast.launch.package.fragment import kernel_name
from precast.launch.package.specs import Table, Variant, format_toml, make_table, render_kernel
from precast.recording.grids import fits, infer_grid
from precast.recording.grouping import Group, find_launcher_fault, group_variants
from precast.recording.kernels import mark_assumed, put_table, read_variants
from precast.recording.notes import Function, Launch, Note, Problem, Sample, Unsaid
from precast.recording.problems import (
    MOST_PROBLEMS,
    Given,
    add_up,
    can_be_stated,
    drop_unknown,
    find_fault,
    make_rows,
    put_names,
    put_rows,
)
from precast.spec.decorators import CONFIG_DEFAULTS
from precast.spec.options import ALL_OPTIONS
from precast.spec.references import REFERENCE
from precast.spec.toml import parse_document
from precast.spec.types import parse_type

HEADER = "# What a program launched, as `precast record` found it. Another run adds what is missing.\n"
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class Merged:
    """A file's new text, and what to say of it."""

    text: str
    kernels: int  # that were launched
    variants: int
    added: tuple[str, ...]  # kernels of the file that have more variants than before
    unsaid: tuple[Unsaid, ...]


@dataclass
class _Recorded:
    """One function's notes."""

    function: Function
    launches: list[Launch] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, note: Launch | Sample | Problem) -> None:
        if isinstance(note, Problem):
            self.problems.append(note)
        elif isinstance(note, Sample):
            self.samples.append(note)
        else:
            self.launches.append(note)


def merge_notes(text: str, path: Path, notes: Iterable[Note]) -> Merged:
    """The text of the spec file `path` with what the notes say; `SpecError` where the text is no spec file."""
    unsaid: dict[tuple[str, str], Unsaid] = {}
    recorded: dict[Function, _Recorded] = {}
    for note in notes:
        if isinstance(note, Unsaid):
            unsaid.setdefault((note.what, note.reason), note)
            continue
        function = note.launch.function if isinstance(note, Problem) else note.function
        if fault := _function_fault(function):
            unsaid.setdefault((function.shown, fault), Unsaid(function.shown, fault))
        else:
            recorded.setdefault(function, _Recorded(function)).add(note)
    file = _SpecFile(text, path)
    for each in recorded.values():
        for problem in file.add(each):
            unsaid.setdefault((problem.what, problem.reason), problem)
    return Merged(file.text, len(recorded), file.variants, tuple(file.added), tuple(unsaid.values()))


def _function_fault(function: Function) -> str:
    if not function.name:
        return "it is made while the program runs, and no name of its module leads to it"
    return "" if Path(function.file).is_file() else f"its source is no file: {function.file}"


def _launch_fault(launch: Launch) -> str:
    unknown = [name for name in launch.options if name not in ALL_OPTIONS]
    if unknown:
        return f"a spec has no option `{unknown[0]}`"
    for name, text in launch.types.items():
        try:
            parse_type(text)
        except SpecError as error:
            return f"argument `{name}`: {error.message}"
    for name, value in launch.constants.items():
        if unnamed := next(filter(_is_unnamed, _texts_in(value)), ""):
            return f"constexpr `{name}` has `{unnamed}`, which no module has under a name of its own"
    return find_launcher_fault(launch.function.name.rpartition(".")[2], [_variant_of(launch, launch.options)])


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from itertools.chain(*map(_texts_in, value))
    elif isinstance(value, str):
        yield value


def _is_unnamed(text: str) -> bool:
    """Whether a text is that of what a module holds, as `state_value` writes it, and no spec finds it by that."""
    return text[:1] != '"' and ":" in text and not REFERENCE.fullmatch(text)


def source_text(function: Function, folder: Path) -> str:
    """How a spec in `folder` names a function: an installed one by its module, any other by its file."""
    file = Path(function.file)
    if _INSTALLED.intersection(file.parts) and function.module != "__main__":
        return f"{function.module}:{function.name}"
    return f"{Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()}:{function.name}"


class _SpecFile:
    """A spec file while functions are added to it."""

    def __init__(self, text: str, path: Path) -> None:
        self._text = text or HEADER
        self._folder = path.parent
        self._document = _parse(text, path)
        self._new: list[str] = []
        self._names = set(self._tables())
        self._changed = False
        self.variants = 0
        self.added: list[str] = []

    @property
    def text(self) -> str:
        """As it was where nothing was added."""
        before = tomlkit.dumps(self._document) if self._changed else self._text
        if not self._new:
            return before if self._changed or self._text != HEADER else ""
        return "\n".join([before if before.endswith("\n") else f"{before}\n", "\n\n".join(self._new), ""])

    def _tables(self) -> dict[str, Any]:
        tables = self._document.get("kernel", {})
        return {name: each for name, each in tables.items() if isinstance(each, Mapping)}

    def add(self, recorded: _Recorded) -> Iterator[Unsaid]:
        """Adds what is missing of a function; what no spec can say comes out."""
        launches = []
        for launch in recorded.launches:
            fault = _launch_fault(launch)
            if fault:
                yield Unsaid(launch.function.shown, fault)
            else:
                launches.append(launch)
        if launches:
            problems = [each for each in recorded.problems if not _launch_fault(each.launch)]
            yield from self._add(replace(recorded, launches=launches, problems=problems))

    def _add(self, recorded: _Recorded) -> Iterator[Unsaid]:
        launches = recorded.launches
        source = source_text(recorded.function, self._folder)
        constexprs = set(launches[0].constants)
        own = {name: each for name, each in self._tables().items() if each.get("source") == source}
        found = {name: read_variants(each.unwrap(), constexprs) for name, each in own.items()}
        before = [variant for variants in found.values() for variant in variants or ()]
        before, launched = complete_options(before, launches)
        self.variants += len({variant.key for variant, _ in launched})
        missing = find_missing(before, launched)
        completed = iter(before)
        held = {name: list(itertools.islice(completed, len(variants or ()))) for name, variants in found.items()}
        extended = {name: held[name] for name in own if found[name] is not None and "matrix" not in own[name]}
        for group in group_variants(recorded.function.name.rpartition(".")[2], extended, missing):
            part = _part_of(recorded, group, launched)
            if group.name:
                yield from self._check_grid(group.name, own[group.name], part)
                yield from self._extend(group, part)
            else:
                yield from self._add_kernel(source, group, part)

    def _extend(self, group: Group, part: _Part) -> Iterator[Unsaid]:
        """Adds variants to a kernel of the file, rows for what its tuner chose, and what it can be tuned with."""
        kernel = self._tables()[group.name]
        table = make_table(str(kernel["source"]), group.every)
        before = kernel.unwrap().get("selection", [])
        configs = table.get("configs", []) if group.added else kernel.unwrap().get("configs", [])
        rows = find_rows(group.every, configs, part.launched, before)
        if group.added:
            self.added.append(group.name)
            _mark(kernel, part.launches)
        if group.added or len(rows) > len(before):
            put_table(kernel, {**table, "selection": rows} if group.added else {**kernel.unwrap(), "selection": rows})
            self._changed = True
        changed, unsaid = put_problems(group.name, kernel, group.every, part.problems, bool(group.added))
        self._changed |= changed
        yield from unsaid

    def _add_kernel(self, source: str, group: Group, part: _Part) -> Iterator[Unsaid]:
        name = kernel_name(part.function.name.rpartition(".")[2], self._names)
        self._names.add(name)
        self.added.append(name)
        variants = group.every
        grid = infer_grid(part.samples, variants[0].constants)
        table = make_table(source, variants)
        rows = find_rows(variants, table.get("configs", []), part.launched, [])
        only = [f"{part.launches[0].backend}:*"] if part.function.gluon else []
        head = {"source": source, **({"grid": list(grid)} if grid else {}), **({"only": only} if only else {})}
        document = tomlkit.parse(render_kernel(name, {**head, **table, **({"selection": rows} if rows else {})}))
        kernel = document["kernel"][name]
        _mark(kernel, part.launches)
        yield from put_problems(name, kernel, variants, part.problems, True)[1]
        self._new.append(tomlkit.dumps(document))

    def _check_grid(self, name: str, kernel: Any, recorded: _Part) -> Iterator[Unsaid]:
        """A grid that a launch contradicts is taken out: then each call gives its own."""
        grid = kernel.get("grid")
        wrong = next((each for each in recorded.samples if grid is not None and not fits(grid, each)), None)
        if wrong is not None:
            said = ", ".join(map(str, grid))
            del kernel["grid"]
            kernel.pop("problem", None)  # which needs a grid
            self._changed = True
            yield Unsaid(f"the grid of `{name}`", f"it was [{said}], and a launch had {wrong.grid}; now calls give it")


def _mark(kernel: Any, launches: Sequence[Launch]) -> None:
    """Says behind the header of a kernel that not all of it was launched on a device."""
    assumed = next((each.assumed for each in launches if each.assumed), "")
    if assumed and hasattr(kernel, "trivia"):
        kernel.trivia.comment_ws = kernel.trivia.comment_ws or "  "
        kernel.trivia.comment = mark_assumed(kernel.trivia.comment, assumed)


def _parse(text: str, path: Path) -> tomlkit.TOMLDocument:
    data = parse_document(text, str(path)).data  # whose errors have a place
    if not isinstance(data.get("kernel", {}), dict):
        raise SpecError(f"`{path}` is no spec file: `kernel` is no table")
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SpecError(f"`{path}` cannot be edited: {error}") from None


Launched = tuple[Variant, Launch]


@dataclass
class _Part(_Recorded):
    """What a function's notes say of one of its kernels."""

    launched: Sequence[Launched] = ()


def _part_of(recorded: _Recorded, group: Group, launched: Sequence[Launched]) -> _Part:
    own = [(variant, launch) for variant, launch in launched if _is_of(variant, launch, group.rows)]
    types = [launch.types for _, launch in own]
    _, problems = complete_options(group.every, [each.launch for each in recorded.problems])
    return _Part(
        recorded.function,
        [launch for _, launch in own],
        [each for each in recorded.samples if not each.types or each.types in types],
        [
            problem
            for problem, (variant, launch) in zip(recorded.problems, problems, strict=True)
            if _is_of(variant, launch, group.rows)
        ],
        own,
    )


def _is_of(variant: Variant, launch: Launch, rows: Collection[str]) -> bool:
    """Whether a kernel of these rows has what was launched, or what its tuner measured beside it."""
    return any(each.row in rows for each in (variant, *_measured(variant, launch)))


def complete_options(before: Sequence[Variant], launches: Sequence[Launch]) -> tuple[list[Variant], list[Launched]]:
    """Both with every option that any of them names: where it is not named, as the JIT resolved it."""
    named = [each.options for each in before] + [each.options for each in launches]
    names = dict.fromkeys(name for options in named for name in options)
    defaults = {**CONFIG_DEFAULTS, **{name: value for each in launches for name, value in each.resolved.items()}}

    def complete(options: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
        every = {**resolved, **options}
        return {name: every[name] for name in names if name in every}

    return (
        [replace(each, options=complete(each.options, defaults)) for each in before],
        [(_variant_of(each, complete(each.options, each.resolved)), each) for each in launches],
    )


def _variant_of(launch: Launch, options: Mapping[str, Any]) -> Variant:
    types = {name: str(parse_type(text)) for name, text in launch.types.items()}
    return Variant(types, launch.constants, options, frozenset(launch.hints), frozenset(launch.range32))


def find_missing(before: Sequence[Variant], launched: Sequence[Launched]) -> list[Variant]:
    """The variants that are not among those before.

    What a tuner chose is not missing where the file has one of the choices that it measured, nor where another process
    of this run chose for the same key: measured again, another may win.
    """
    held = {each.key for each in before}
    chosen: set[tuple[str, str]] = set()
    missing: dict[str, Variant] = {}
    for variant, launch in launched:
        choices = [variant.key, *_others(variant, launch)]
        key = launch.tuned.key if launch.tuned else ""
        again = any(choice in held or (launch.tuned and (key, choice) in chosen) for choice in choices)
        if not again:
            missing.setdefault(variant.key, variant)
        if launch.tuned and not again:
            chosen.add((key, variant.key))
    return list(missing.values())


def _others(variant: Variant, launch: Launch) -> Iterator[str]:
    return (each.key for each in _measured(variant, launch))


def _measured(variant: Variant, launch: Launch) -> Iterator[Variant]:
    for constants, options in launch.tuned.others if launch.tuned else ():
        named = {name: value for name, value in {**launch.resolved, **options}.items() if name in variant.options}
        yield replace(variant, constants=constants, options=named)


def find_choices(
    variants: Sequence[Variant], configs: Sequence[Table], launched: Iterable[Launched]
) -> Iterator[tuple[Launch, Table, set[str]]]:
    """Each launch with the config of the kernel that it had, or that its tuner measured as well; and what was another
    for each config that the tuner measured. `configs` are one for each distinct row of the variants."""
    stated = dict(zip({each.row: None for each in variants}, configs, strict=False))
    for variant, launch in launched:
        measured = [variant, *_measured(variant, launch)]
        chosen = next((stated[each.row] for each in measured if each.row in stated), {})
        names = {name for each in measured for name in (*each.constants, *each.options)}
        changing = {name for name in names if len({format_toml(_value_of(each, name)) for each in measured}) > 1}
        yield launch, chosen, changing


def find_rows(
    variants: Sequence[Variant], configs: Sequence[Table], launched: Sequence[Launched], before: Sequence[Table]
) -> list[Table]:
    """The rows of the selection table with those before them: for the sizes that a tuner chose for, what it chose of
    what the kernel has, which `configs` state, one for each distinct row of the variants."""
    settable = {name for each in variants for name in (*each.constants, *each.options)}

    def key(row: Table) -> str:
        """What a row is for: its conditions, and types."""
        return format_toml([row.get("when", []), {name: row[name] for name in row if name not in {*settable, "when"}}])

    rows = {key(each): each for each in before}
    for launch, chosen, changing in find_choices(variants, configs, launched):
        if launch.tuned is None or not launch.tuned.sizes:
            continue
        tuned = changing.intersection(chosen)
        when = [f"{name} == {value}" for name, value in launch.tuned.sizes.items()]
        row = {"when": when, **{name: chosen[name] for name in chosen if name in tuned or name not in settable}}
        if tuned and min(launch.tuned.sizes.values()) >= 0:
            rows.setdefault(key(row), row)
    return list(rows.values())


def put_problems(
    name: str, kernel: Any, variants: Sequence[Variant], problems: Sequence[Problem], has_grown: bool
) -> tuple[bool, list[Unsaid]]:
    """Adds to a kernel of a parsed file what it can be tuned with; whether it did, and why it did not.

    Axes that no launch of a tuner tells to be its own are none that tuning could choose.
    """
    said = kernel.unwrap()
    configs, args = said.get("configs", []), said.get("args", {})
    types = {each: str(kind["type"] if isinstance(kind, dict) else kind) for each, kind in args.items()}
    columns = dict.fromkeys(each for config in configs for each in config)
    if has_grown:
        drop_unknown(kernel, {*types, *columns})
    problems = list(filter(can_be_stated, problems))
    _, launched = complete_options(variants, [each.launch for each in problems])
    choices = list(find_choices(variants, configs, launched))
    axes = {each for launch, _, _ in choices if launch.tuned for each in launch.tuned.axes}
    changing = {each for _, _, names in choices for each in names}
    found = add_up(
        Given({each: config[each] for each in config if each not in axes}, problem)
        for problem, (_, config, _) in zip(problems, choices, strict=True)
    )
    fault = "its grid is no expression of its arguments" if "grid" not in said else find_fault(found, axes, changing)
    if fault or not found:
        return False, [Unsaid(f"what to tune `{name}` with", fault)] if fault and axes else []
    rows = make_rows(found, said.get("problem", []), types)
    kept = rows[: max(MOST_PROBLEMS - len(said.get("problem", [])), 0)]
    if (kept or has_grown) and not said.get("tune"):
        put_names(kernel, [each for each in columns if each in axes])
    put_rows(kernel, kept)
    rest = rows[len(kept) :]
    more = f"{len(rest)} more sizes, of {sum(count for _, count in rest)} launches, than {MOST_PROBLEMS} problems"
    return bool(kept) or has_grown, [Unsaid(f"what to tune `{name}` with", more)] if rest else []


def _value_of(variant: Variant, name: str) -> Any:
    return {**variant.constants, **variant.options}.get(name, "")
