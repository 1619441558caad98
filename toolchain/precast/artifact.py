"""What one compiled unit is: facts about its image that launchers and readers need.

Written by the engines, stored beside the image, listed in the manifest. All sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from precast.reads import Read


@dataclass(frozen=True)
class TensorDescriptor:
    """How one host tensor descriptor argument reaches the kernel, as Triton 3.9 expands it.

    With `tma` (sm_90 and later): a 128-byte CUtensorMap, 64-byte aligned, then the shape (i32 each) and the strides
    (i64 each, in elements). The map is tiled, of `len(block_shape)` dimensions with the last dimension first:
    data type `element_type` and `swizzle` are the driver's enumerators, the box is `block_shape` (it can be smaller
    than the type's block), element strides 1, no interleave, L2 promotion 128 bytes, strides in bytes are
    `element_bytes` times the element strides; the fill is NaN-request-zero-FMA where the caller asks for NaN padding,
    else none. `fp4_padded`: the map's last dimension is twice the shape's. A caller's wish to round f32 to tf32
    replaces the data type by 11. Without `tma`: the base pointer, shape (i64 each), strides (i64 each), NaN padding
    (i1), round-to-tf32 (i1), and again shape (i32 each) and strides (i64 each).
    """

    argument: str
    tma: bool
    block_shape: tuple[int, ...]
    element_type: int = 0
    element_bytes: int = 0
    swizzle: int = 0
    fp4_padded: bool = False


@dataclass(frozen=True)
class Parameter:
    """One hidden-or-visible kernel parameter in launch order.

    `kind`: `argument` (a runtime argument by `name`), `descriptor` (expands as `TensorDescriptor` says),
    `buffer` (a pass's device buffer), `global_scratch` or `profile_scratch`. `type` is Triton's text, as in
    `*fp16`, `i32`, `fp32`. Arguments specialised to a constant are absent. `written`: the kernel surely stores
    through this pointer, as far as a CPU's engine can tell; never said on a GPU.
    """

    kind: str
    name: str
    type: str
    written: bool = False


@dataclass(frozen=True)
class DeviceBuffer:
    """A buffer that a pass asked for: `bytes_per_program` for each program of the grid, zeroed before launch."""

    pass_name: str
    bytes_per_program: int


@dataclass(frozen=True)
class Facts:
    """Everything that a launch, a report or a comparison needs to know about an image."""

    symbol: str
    parameters: tuple[Parameter, ...]
    num_warps: int = 1
    num_ctas: int = 1
    warp_size: int = 32
    shared_bytes: int = 0
    tensor_memory_bytes: int = 0
    global_scratch_bytes: int = 0  # per program
    global_scratch_align: int = 1
    profile_scratch_bytes: int = 0  # per program
    profile_scratch_align: int = 1
    thread_scratch_bytes: int = 0  # CPU: private scratch of one worker thread
    cooperative: bool = False
    pdl: bool = False
    registers: int | None = None
    spill_bytes: int | None = None
    code_bytes: int = 0
    tensor_descriptors: tuple[TensorDescriptor, ...] = ()
    buffers: tuple[DeviceBuffer, ...] = ()
    reproducible: bool = True
    source_digest: str = ""  # of the jit function with what it reaches: `engines.source_digest`; empty: it has none
    options: tuple[tuple[str, str | bool | int | float | None], ...] = ()  # of the compiler, with what it chose itself


@dataclass(frozen=True)
class PassRun:
    """A pass from outside that ran on a unit, as the manifest lists it, in order."""

    name: str
    kind: str  # python, native, builtin, hook, replace, drop, override
    stage: str
    anchor: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    digest: str = ""
    opaque: bool = False


@dataclass(frozen=True)
class StageFile:
    """A stage's text or image in the store: `digest` addresses it, `key` is the stage key it was found by. What it
    took says nothing of one that was reused."""

    stage: str
    digest: str
    key: str
    reused: bool
    seconds: float = field(default=0.0, compare=False)
    peak_bytes: int = field(default=0, compare=False)  # of the process that ran it


@dataclass(frozen=True)
class Finding:
    """What an analysis pass returned for a unit; `data` is JSON text with sorted keys."""

    pass_name: str
    data: str


@dataclass(frozen=True)
class UnitResult:
    """A built unit: written as `facts.json` beside the image."""

    unit: str
    image_digest: str
    facts: Facts
    stages: tuple[StageFile, ...]
    passes: tuple[PassRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    files_used: tuple[str, ...] = ()  # project-relative, what the front end really read
    reads: tuple[Read, ...] = ()  # what else was read, that no key holds; not written beside the image
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def peak_bytes(self) -> int:
        """The most memory that a stage of it took."""
        return max((each.peak_bytes for each in self.stages), default=0)
