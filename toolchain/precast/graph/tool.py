"""The SCons tool: `env.Precast()` declares the graph of the project in the folder of the SConstruct.

In: a session (the driver's, or one opened here for plain `scons`). Out: nodes: units → packs and CPU libraries,
launcher sources → library, all of them → release. Options of plain scons: `kernel=GLOB,…`, `target=GLOB,…`,
`progress=bar|plain|json`.
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import SCons.Errors
import SCons.Script
import SCons.Util

from precast.bounded import MOST_TEXT_BYTES
from precast.diagnostic import format_error
from precast.errors import PrecastError, ToolError
from precast.graph.collect import remove_unfinished
from precast.graph.compiler import choose_compiler
from precast.graph.direct import compile_candidates
from precast.graph.images import make_images
from precast.graph.inputs import LibraryInputs
from precast.graph.keeping import keep_snapshot
from precast.graph.linked import Linked, LinkedSharing
from precast.graph.lock import locked
from precast.graph.making import write_listing
from precast.graph.places import refuse_misplaced
from precast.graph.request import Request
from precast.graph.running import note_made, run_step, take_shared
from precast.graph.scons_surface import (
    StepAction,
    always_build,
    build_now,
    command_text,
    install_session,
    installed_session,
    leaves_of,
    made_for,
    make_decider,
    open_signatures,
)
from precast.graph.session import Session, start_executor
from precast.graph.steps import ImagesStep, Step, UnitStep
from precast.graph.unfinished import end_writing
from precast.launch.sources import library_sources
from precast.layout import BUILD, LAUNCHERS, LIBRARIES, OBJECTS, SCONSTRUCT, SIGNATURES, facts_path, image_path
from precast.progress.choosing import choose_reporter
from precast.progress.events import COMPLETE
from precast.project import SETTINGS_FILE, read_project
from precast.scratch import remove_abandoned
from precast.store import drop_irregular
from precast.target import find_machine
from precast.worker.memory import default_worker_count

ALIAS = "precast"
IMAGES = "images"


def exists(env: Any) -> bool:
    return True


def generate(env: Any) -> None:
    env.AddMethod(_declare_project, "Precast")


def _declare_project(env: Any, plugins: Any = (), glibc: str = "") -> Any:
    """Declares the graph and makes the release what `scons` builds; returns the release's node.

    `plugins` are nodes of native plugin libraries that this SConstruct builds. What passes a unit gets is known only
    when they are there, so they are built at once. `glibc`, such as "2.17", is the lowest that the release's libraries
    must run with.
    """
    session = None
    try:
        session = installed_session() or _open_session(env)
        env = env.Clone()
        env["ENV"] = {**env["ENV"], "TMPDIR": session.scratch.name}
        env.CacheDir(None)  # what SCons keeps there it hands out unchecked; our store keeps what is worth it
        env.SetOption("max_drift", -1)  # SCons never trusts whole-second times
        open_signatures(env, session.folder / SIGNATURES)
        _build_plugins(env, session, SCons.Util.flatten(plugins))
        choose_compiler(env, find_machine(session.project.targets), glibc, session.folder)
        session.begin()
        sharing = _open_linked(env, session)
        if not session.aloud:  # plain `scons` may be asked for less
            if sharing is not None and session.is_declared(session.steps.library):
                sharing.prepare()
            take_shared(session)
            session.prepare()
        if session.request.candidates:
            compile_candidates(session)
        return declare_graph(env, session, sharing)
    except Exception as error:
        if session is not None and not session.aloud:  # the driver tells it
            session.fault = error
            raise SystemExit(1) from error
        if isinstance(error, PrecastError):
            raise SCons.Errors.UserError(format_error(error)) from error
        raise


def _build_plugins(env: Any, session: Session, plugins: list[Any]) -> None:
    for path in session.damaged_plugins:
        always_build(env, path)
    if plugins and not build_now(env, plugins, session.is_built_for_plugins):
        raise ToolError("a plugin library was not built", hint="what the compiler said stands above")
    session.record_build_script(leaves_of(plugins), made_for(plugins))


def _open_session(env: Any) -> Session:
    """A session for plain `scons`: options from its command line, summary and end when the process ends."""
    env.SetOption("num_jobs", default_worker_count())
    stack = ExitStack()
    stack.enter_context(locked(Path(BUILD)))
    remove_unfinished(Path())
    remove_abandoned()
    options = SCons.Script.ARGUMENTS
    request = Request(
        kernels=tuple(options.get("kernel", "*").split(",")),
        targets=tuple(options.get("target", "*").split(",")),
        jobs=env.GetOption("num_jobs"),
        keep_going=bool(env.GetOption("keep_going")),
    )
    reporter = choose_reporter(sys.stdout, options.get("progress", ""))
    session = Session(read_project(Path()), request, reporter, start_executor, aloud=True)
    stack.callback(session.close)
    stack.callback(_finish, session)
    stack.callback(session.share)
    atexit.register(stack.close)
    install_session(session)
    return session


def _finish(session: Session) -> None:
    """Tells the summary of plain `scons`; what it left need not be looked at again, where that is all of the plan."""
    if session.begun:
        summary = session.finish()
        if summary.reason == COMPLETE and session.fault is None:
            keep_snapshot(session, summary)
            end_writing(session.folder)


def declare_graph(env: Any, session: Session, sharing: LinkedSharing | None = None) -> Any:
    """The nodes of the session's steps. A step that need not be asked about has none: what it makes is a plain file,
    and no source of anything, for SCons would ask about each of thousands."""
    env.Decider(make_decider(session))
    steps = session.steps
    if sharing is not None and not session.aloud:
        _take_libraries(env, session, sharing)
    for probe in filter(session.is_declared, steps.probes):
        _declare(env, session, probe, probe.inputs)
    images = _declare_images(env, session)
    if steps.failed:
        return _declare_failed(env, session, images)
    for library in filter(session.is_declared, steps.cpu_libraries):
        linked = _declare_cpu_library(env, session, library, images or session.made_anew(library), sharing)
        _make_after(env, images, linked)
    if session.is_declared(steps.launchers) or session.is_declared(steps.library):
        _declare_library(env, session, sharing)
    # SCons goes by the order of what the last step depends on.
    first = images or [facts_path(unit.planned.unit) for unit in session.declared_units]
    made = _made_by_nodes(session) if images else session.made_anew(steps.release)
    release = _declare(env, session, steps.release, dict.fromkeys([*first, *made]))
    _make_after(env, images, release)
    env.Alias(ALIAS, release)
    env.Default(ALIAS)
    return release


def _declare_images(env: Any, session: Session) -> list[Any]:
    """Units and what is put together of them: one node for all, which is returned, where no script and no command line
    can name any of them."""
    steps = session.steps
    if not session.aloud and not (session.folder / SCONSTRUCT).exists():
        images = env.Alias(IMAGES, [], StepAction(IMAGES, partial(make_images, session)))
        env.AlwaysBuild(images)
        env.Depends(images, [f"#{probe.outputs[0]}" for probe in filter(session.is_declared, steps.probes)])
        return list(images)
    for unit in session.declared_units:
        _declare_unit(env, session, unit)
    for pack in filter(session.is_declared, steps.packs):
        _declare(env, session, pack, session.made_anew(pack))
    for selection in filter(session.is_declared, steps.selections):
        _declare(env, session, selection, selection.inputs)
    return []


def _make_after(env: Any, images: list[Any], nodes: Any) -> None:
    """What is declared after the one node of all images is stale: SCons would find that node as it was last time."""
    if images:
        env.AlwaysBuild(nodes)


def _made_by_nodes(session: Session) -> list[str]:
    """What a release waits for beside the images that have one node."""
    steps = session.steps
    others = filter(session.is_declared, (*steps.cpu_libraries, steps.launchers, steps.library))
    return [path for step in others for path in step.outputs]


def _declare_failed(env: Any, session: Session, images: list[Any]) -> Any:
    """What could not be planned fails as a unit does; the others are built, and no release."""
    failed = [_declare(env, session, step) for step in session.steps.failed]
    units = images or [f"#{step.outputs[0]}" for step in session.declared_units]
    env.Default(env.Alias(ALIAS, [*units, *failed]))
    return failed


def _name(path: Any) -> Any:
    """A file as SCons names it: what an installed package or a library brings lies outside of the project. A node is
    one already."""
    return path if not isinstance(path, str) or os.path.isabs(path) else f"#{path}"


def _declare(
    env: Any, session: Session, step: Step, sources: Iterable[Any] = (), outputs: Sequence[str] | None = None
) -> Any:
    nodes = env.Command(
        [f"#{path}" for path in outputs or step.outputs],
        list(map(_name, sources)) or [_name(SETTINGS_FILE)],  # SCons asks about a node only through what it depends on
        StepAction(step.name, partial(run_step, session, step)),
    )
    env.Precious(nodes)  # replaced by rename, never removed first
    return nodes


def _declare_unit(env: Any, session: Session, step: UnitStep) -> None:
    sources = [path for path in step.planned.inputs if (session.folder / path).is_file()]
    # What other steps take; of the texts only plain `scons` may be asked, and each node costs half a millisecond.
    outputs = step.outputs if session.aloud else [image_path(step.planned.unit), facts_path(step.planned.unit)]
    nodes = _declare(env, session, step, sources, outputs)
    probes = {probe.given.origin.name: probe.outputs[0] for probe in session.steps.probes}
    used = {probes[each.origin] for each in step.planned.passes if each.origin in probes}
    env.Depends(nodes, [f"#{path}" for path in sorted(used)])


def _open_linked(env: Any, session: Session) -> LinkedSharing | None:
    """What shares libraries; None without a cache, and where commands are no text that tells what they do."""
    compile, link = _library_commands(env, session.steps.library.given)
    if session.sharing is None or compile is None or link is None:
        return None
    return LinkedSharing(session, session.sharing, compile, link, env["ENV"])


def _take_libraries(env: Any, session: Session, sharing: LinkedSharing) -> None:
    """Takes the libraries that the cache has and nothing that the graph knows would change."""
    steps = session.steps
    if steps.failed:
        return
    anew = {path for unit in session.declared_units for path in unit.outputs}
    for step in filter(session.is_declared, steps.cpu_libraries):
        if anew.isdisjoint(step.inputs) and sharing.take(_describe_cpu_library(env, step)):
            session.taken.add(step.name)
    if session.is_declared(steps.library) and sharing.may_take:
        if not session.is_fresh(steps.launchers):
            with session.running(steps.launchers):
                run_step(session, steps.launchers)
        if sharing.take(_describe_library(env, session)):
            session.taken.update((steps.launchers.name, steps.library.name))


def _describe_cpu_library(env: Any, step: ImagesStep) -> Linked:
    return _describe_linked(env, step, (command_text(env, _cpu_link(step, "")) or "",), ())


def _cpu_link(step: ImagesStep, files: str) -> str:
    return f"$SHLINK {files} {' '.join(step.given.link)} -lm"


def _declare_cpu_library(
    env: Any, session: Session, step: ImagesStep, sources: list[Any], sharing: LinkedSharing | None
) -> Any:
    """Links the objects of one CPU level, in the order of the plan, after `sources`; their names go through a file, for
    they may be more than a command line holds."""
    listing = f"{OBJECTS}/{step.given.target.folder}.txt"
    begin, end = _recording(session, _describe_cpu_library(env, step), sharing)
    write = StepAction("list", partial(write_listing, step.given, session.folder, listing))
    link = _cpu_link(step, f"-o $TARGET @{listing}")
    return env.Command(
        f"#{step.outputs[0]}", [_name(each) for each in sources or [SETTINGS_FILE]], [begin, write, link, end]
    )


def _describe_library(env: Any, session: Session) -> Linked:
    step = session.steps.library
    commands = tuple(text or "" for text in _library_commands(env, step.given))
    objects = [f"{_object(each)}.o" for each in library_sources(session.steps.launchers.given.interface)]
    return _describe_linked(env, step, commands, objects)


def _library_commands(env: Any, given: LibraryInputs) -> tuple[str | None, str | None]:
    """What compiles and what links the launchers' library, without files."""
    return (
        command_text(env.Override(_compile_flags(given.compile)), "SHCCCOM"),
        command_text(env.Override(_link_flags(given.link, given.libraries)), "SHLINKCOM"),
    )


def _declare_library(env: Any, session: Session, sharing: LinkedSharing | None) -> None:
    """Launcher sources, and the library that C compiler and linker make of them."""
    steps = session.steps
    sources = library_sources(steps.launchers.given.interface)
    made = [*steps.launchers.outputs, *(f"{LAUNCHERS}/{path}" for path in sources)]
    refuse_misplaced(session.folder, [*made, *(f"{_object(path)}.o" for path in sources)])
    # SCons takes a link that leads nowhere for what nobody can make, and reads a header whatever its size.
    for path in (session.folder / LAUNCHERS).rglob("*"):
        drop_irregular(path, MOST_TEXT_BYTES)
    make = partial(run_step, session, steps.launchers)
    launchers = env.Command([f"#{path}" for path in made], [f"#{SETTINGS_FILE}"], StepAction("launchers", make))
    env.Precious(launchers)
    _, library = declare_objects(env, steps.library.given, sources)
    begin, end = _recording(session, _describe_library(env, session), sharing)
    env.AddPreAction(library, begin)
    env.AddPostAction(library, end)


def declare_objects(env: Any, given: LibraryInputs, sources: Iterable[str]) -> tuple[list[Any], Any]:
    """The launchers' library as the C builders make it, from sources below the launchers' folder; with its objects."""
    flags = _compile_flags(given.compile)
    objects = [env.SharedObject(f"#{_object(path)}", f"#{LAUNCHERS}/{path}", **flags) for path in sources]
    flags = _link_flags(given.link, given.libraries)
    library = env.SharedLibrary(f"#{LIBRARIES}/{Path(given.place).name}", objects, **flags)
    return objects, library


def _object(path: str) -> str:
    """A source's object, without its ending. A project may well be called as one of the runtime's files."""
    return f"{OBJECTS}/{Path(path).relative_to('src').with_suffix('')}"


def _compile_flags(flags: Iterable[str]) -> dict[str, Any]:
    """What the C builder is told."""
    return {
        "CCFLAGS": list(flags),
        "CFLAGS": [],
        "CPPDEFINES": [],
        "CPPPATH": [f"#{LAUNCHERS}/include", f"#{LAUNCHERS}/src"],
        "SHOBJSUFFIX": ".o",
    }


def _link_flags(flags: Iterable[str], libraries: Iterable[str]) -> dict[str, Any]:
    """What the builder of libraries is told."""
    return {"SHLINKFLAGS": list(flags), "LIBS": list(libraries), "LIBPATH": [], "SHLIBPREFIX": ""}


def _describe_linked(env: Any, step: Step, commands: tuple[str, ...], objects: Iterable[str]) -> Linked:
    programs = [shlex.split(env.subst(each))[0] for each in ("$SHCC", "$SHLINK")]
    tools = {os.path.realpath(path) for path in map(env.WhereIs, programs) if path}
    return Linked(step, commands, (*step.outputs, *objects), tuple(sorted(tools)))


def _recording(session: Session, linked: Linked, sharing: LinkedSharing | None) -> tuple[StepAction, StepAction]:
    """The first and the last action of a linked file: its key as it begins, and its record, which also holds the
    tools that made it."""
    keys: list[str] = []
    shared: list[str] = []

    def begin() -> None:
        keys.append(session.key_of(linked.step))
        shared.append(sharing.key(linked) if sharing else "")

    def end() -> None:
        note_made(session, linked.step, keys[-1], linked.outputs, linked.tools)
        if sharing:
            sharing.give(linked, shared[-1])

    return StepAction("begin", begin), StepAction("note", end)
