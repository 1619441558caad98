"""What a C compiler and its linker are: every file that may decide what they make, and how the compiler would run.

In: the words that compile and link, headers, an environment. Out: `CompilerFiles`; None for a compiler that cannot be
known so: behind a script may stand anything. Found by having it compile and link a file that includes those headers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROGRAMS = ("cc1", "collect2", "as", "ld")  # what a compiler runs, where that is no part of itself
_ELF = b"\x7fELF"
_HEADER = re.compile(r"(?<!\S)/(?:\\ |\S)+")  # as `-MD` lists what is included
# As `-t` of a linker lists what it reads, members of archives too.
_LINKED = re.compile(r"^\(?(/[^()\n]+)", re.MULTILINE)
_LOADED = re.compile(r"^\s(?:.* => )?(/\S+) \(0x", re.MULTILINE)  # as the dynamic loader lists libraries
_TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class CompilerFiles:
    """`said`: what the compiler says of itself and how it would compile; `paths`: absolute, sorted."""

    said: str
    paths: tuple[str, ...]


class _Unknown(Exception):
    """Some part of the compiler cannot be told."""


def find_compiler_files(
    compile: Sequence[str], link: Sequence[str], headers: Iterable[str], environment: Mapping[str, str], folder: Path
) -> CompilerFiles | None:
    """`compile` and `link` are command lines without files; `folder` is for what is made on the way."""
    text = "".join(f"#include <{name}>\n" for name in sorted(headers))
    source, made, linked, included = (str(folder / f"asked.{suffix}") for suffix in ("c", "o", "so", "d"))
    Path(source).write_text(text, encoding="utf-8")
    run = _Runner(environment, folder)
    try:
        said = run([*compile, "-###", "-S", source, "-o", made])
        run([*compile, "-MD", "-MF", included, "-c", source, "-o", made])
        read = run([*link, made, "-Wl,-t", "-o", linked])
        programs = set(run.find_programs(compile, link))
        paths = {*_read_headers(Path(included)), *_LINKED.findall(read), *programs}
        paths.update(path for program in programs for path in run.find_loaded(program))
    except (_Unknown, OSError, subprocess.SubprocessError):
        return None
    paths = {path for path in map(os.path.realpath, paths) if not path.startswith(f"{os.path.realpath(folder)}/")}
    return CompilerFiles(said.replace(str(folder), ""), tuple(sorted(paths)))


@dataclass(frozen=True)
class _Runner:
    """Runs programs in an environment."""

    environment: Mapping[str, str]
    folder: Path

    def __call__(self, words: Sequence[str], **more: str) -> str:
        """What a program prints; `_Unknown` where it fails."""
        done = subprocess.run(
            words, cwd=self.folder, env={**self.environment, **more, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TIME_LIMIT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise _Unknown
        return done.stdout.decode(errors="replace")

    def find_programs(self, compile: Sequence[str], link: Sequence[str]) -> Iterator[str]:
        """The compilers themselves, and the programs that these run."""
        linkers = [f"ld.{word.removeprefix('-fuse-ld=')}" for word in link if word.startswith("-fuse-ld=")]
        for words, names in ((compile, _PROGRAMS), (link, (*_PROGRAMS, *linkers))):
            compiler = self._find(words[0])
            if compiler is None:
                raise _Unknown
            yield compiler
            parts = (self._find(self([*words, f"-print-prog-name={name}"]).strip()) for name in names)
            yield from filter(None, parts)

    def _find(self, program: str) -> str | None:
        """Where a program lies, if it does; `_Unknown` for one that is a script."""
        place = shutil.which(program, path=self.environment.get("PATH", os.defpath))
        if place is not None:
            with open(place, "rb") as stream:
                if stream.read(len(_ELF)) != _ELF:
                    raise _Unknown
        return place

    def find_loaded(self, program: str) -> list[str]:
        """The libraries that a program is loaded with; none for one that needs none."""
        return _LOADED.findall(self([program, "--version"], LD_TRACE_LOADED_OBJECTS="1"))


def _read_headers(path: Path) -> Iterator[str]:
    for name in _HEADER.findall(path.read_text(encoding="utf-8", errors="surrogateescape")):
        yield name.replace("\\ ", " ").replace("$$", "$")
