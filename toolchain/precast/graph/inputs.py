"""What each kind of step is given: frozen values, all that its maker sees beside the files that the step names.

In: a plan, through `steps`. Out: values whose digests are in the keys of steps, so that nothing can decide what is made
without deciding whether it is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from precast.identity import Tools
from precast.keyed import Keyed
from precast.launch.formats.values import ReleaseInterface
from precast.layout import CANDIDATES, GENERATED
from precast.passes.registry import Origin
from precast.spec.model import Unit
from precast.target import Target
from precast.tuning.rules import SelectionRule


@dataclass(frozen=True)
class ProbeInputs(Keyed):
    """A plugin module to describe."""

    own: str  # identity of the code that makes this
    origin: Origin


@dataclass(frozen=True)
class ImagesInputs(Keyed):
    """Images of several units to put into one file: a pack, or with flags of the linker a CPU shared object."""

    own: str
    target: Target
    place: str  # the file's path in the release
    units: tuple[Unit, ...]
    link: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptImages(Keyed):
    """A file of images that is as it was, and what a release says of it, too."""

    place: str  # the file's path in the release
    file: str  # where it lies
    given: str  # the key of what it was made from, which stands for all of that
    part: str  # the key of what a release says of it

    @cached_property
    def key(self) -> str:
        return self.given


@dataclass(frozen=True)
class LaunchersInputs(Keyed):
    """Launcher sources to write."""

    own: str
    interface: ReleaseInterface
    version: str  # of the project
    problems: str = ""  # of candidates: what there is to measure


@dataclass(frozen=True)
class SelectionInputs(Keyed):
    """The rows of the selection table that are a kernel's."""

    own: str
    rules: tuple[SelectionRule, ...]


@dataclass(frozen=True)
class LibraryInputs(Keyed):
    """The launchers' library to compile and link, with flags of the compiler and of the linker."""

    place: str  # the file's path in the release
    compile: tuple[str, ...]
    link: tuple[str, ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True)
class ReleaseInputs(Keyed):
    """A release to assemble. `part` says what of the project it holds; "" when that is all."""

    own: str
    name: str
    launchers: LaunchersInputs
    images: tuple[ImagesInputs | KeptImages, ...]
    library: str  # its place in the release
    tools: Tools
    part: str = ""
    most_bytes: int = 0  # that it may have; 0: any number
    selection: tuple[str, ...] = ()  # files with rows of the selection table

    @property
    def is_candidates(self) -> bool:
        """Whether it is there to be measured, and never the current release."""
        return bool(self.launchers.problems)

    @property
    def home(self) -> str:
        """The folder of the release and of others of its kind."""
        return f"{GENERATED}/{self.name}/{CANDIDATES}" if self.is_candidates else f"{GENERATED}/{self.name}"


@dataclass(frozen=True)
class NothingMade(Keyed):
    """What could not be planned."""
