"""What is kept of a plan: which kernel rests on which files, and what of all of them a release is made of.

In: plan and steps of a finished build. Out: a file beside the snapshot, which knows its digest, so that the two are of
one build. After an edit of one kernel's source that kernel alone is planned (`narrow`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.codec import CodecError, from_json, to_json
from precast.errors import PrecastError
from precast.graph.inputs import ImagesInputs, KeptImages, LaunchersInputs
from precast.graph.making import images_path, kernels_of, part_key
from precast.graph.steps import Digest, ImagesStep
from precast.launch.formats import ReleaseInterface
from precast.plan import Plan
from precast.store import digest_bytes, write_file
from precast.target import Backend


@dataclass(frozen=True)
class KeptKernel:
    """A kernel, and all that its plan came to beside the keys of its units."""

    name: str
    spec: str  # its spec's file
    files: tuple[str, ...]  # that its plan or its units read; none that something else rests on which is no kernel
    images: tuple[tuple[str, str], ...]  # files of its images by their place, with the key of what each is made from
    warnings: tuple[str, ...]
    alone: bool  # whether it can be planned without the others


@dataclass(frozen=True)
class KeptKernels:
    """All kernels of a plan."""

    kernels: tuple[KeptKernel, ...]
    units: int

    def touched(self, moved: Iterable[str]) -> tuple[KeptKernel, ...]:
        """The kernels that must be planned anew when these files have moved, with those of the same specs. None where
        more than kernels rests on one of the files, or a kernel cannot be planned alone."""
        owners: dict[str, set[str]] = {}
        for kernel in self.kernels:
            for file in kernel.files:
                owners.setdefault(file, set()).add(kernel.spec)
        found = [owners.get(file, set()) for file in moved]
        specs = {spec for each in found for spec in each}
        touched = tuple(kernel for kernel in self.kernels if kernel.spec in specs)
        return touched if all(found) and all(kernel.alone for kernel in touched) else ()


@dataclass(frozen=True)
class KeptRelease:
    """What a release of a plan is made of."""

    launchers: LaunchersInputs
    images: tuple[KeptImages, ...]
    selection: tuple[str, ...]
    inputs: tuple[str, ...]  # of its step
    warnings: tuple[str, ...]  # of the plan, but for what the environment is to blame for


@dataclass(frozen=True)
class KeptPlan:
    """A plan as it is kept: the first part tells whether the other is needed."""

    kernels: KeptKernels
    _release: bytes = field(repr=False)

    def read_release(self) -> KeptRelease:
        return from_json(self._release, KeptRelease)


def read_kept(path: Path, digest: str) -> KeptPlan | None:
    """The plan whose bytes have that digest; None where it is lost."""
    with contextlib.suppress(OSError, CodecError):
        data = read_bounded(path, MOST_FILE_BYTES)
        if digest_bytes(data) == digest:
            first, _, rest = data.partition(b"\n")
            return KeptPlan(from_json(first, KeptKernels), rest)
    return None


def write_kept(path: Path, kernels: KeptKernels, release: KeptRelease) -> str:
    """Keeps a plan, and returns its digest; "" where it cannot be written, which is no error."""
    data = f"{to_json(kernels)}\n{to_json(release)}".encode()
    with contextlib.suppress(PrecastError):
        write_file(path, data)
        return digest_bytes(data)
    return ""


def describe_kernels(
    plan: Plan, images: Iterable[ImagesStep], files: Mapping[str, Sequence[str]], shared: AbstractSet[str]
) -> tuple[KeptKernel, ...]:
    """The kernels of a plan, of which each and its units read `files`, the spec's first; nothing that is `shared` with
    what is no kernel is theirs."""
    places: dict[str, list[tuple[str, str]]] = {name: [] for name in files}
    for step in images:
        for name in kernels_of(step.given):
            places[name].append((step.given.place, step.given.key))
    on_cpu = {each.unit.kernel for each in plan.units if each.unit.target.kind is Backend.CPU}
    warnings = {spec.name: spec.warnings for spec in plan.kernels}
    return tuple(
        KeptKernel(
            name,
            own[0],
            tuple(sorted({*own} - shared)),
            tuple(places[name]),
            warnings[name],
            name in plan.alone and name not in on_cpu,  # all CPU units of a target are in one library
        )
        for name, own in files.items()
    )


def keep_images(given: ImagesInputs, interface: ReleaseInterface, digest: Digest) -> KeptImages:
    """A file of images as what is kept of it."""
    part = part_key(given, interface, digest)
    return KeptImages(given.place, images_path(given), given.key, part)
