"""Facts about an image, read from the metadata that the stages carried and from the assembly text.

In: a unit and its stages' outputs. Out: `Facts`. Registers and spills come from ptxas's own log on NVIDIA and from the
code object's metadata, which stands in the assembly text, on AMD. The order of parameters is that of Triton's own
launcher: arguments that are not fixed, tuples part by part, a pass's buffers, two hidden pointers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from precast.artifact import Facts, TensorDescriptor
from precast.engines import StageOutput
from precast.engines.parameters import list_leaves, list_parameters
from precast.engines.triton import v3_9
from precast.spec.model import Unit
from precast.target import Backend

# CUtensorMapDataType by the number that Triton's metadata holds: the device's and the driver's differ in three.
_DRIVER_ELEMENT_TYPE = {8: 10, 9: 8, 10: 9}
_AMD_COUNT = re.compile(r"^\s*\.(vgpr_count|vgpr_spill_count):\s*(\d+)", re.MULTILINE)


def parse_amd_assembly(text: str) -> dict[str, int]:
    """Vector registers per lane and bytes per lane spilled from them, from a code object's metadata."""
    counts = {name: int(number) for name, number in _AMD_COUNT.findall(text)}
    found = {"registers": counts["vgpr_count"]} if "vgpr_count" in counts else {}
    return found | ({"spill_bytes": 4 * counts["vgpr_spill_count"]} if "vgpr_spill_count" in counts else {})


def read_facts(unit: Unit, options: Any, stages: Mapping[str, StageOutput]) -> Facts:
    """The facts of a GPU unit."""
    image = stages[unit.target.image_suffix]
    carry: dict[str, Any] = json.loads(image.carry)
    buffers = tuple(buffer for output in stages.values() for buffer in output.buffers)
    descriptors = list_descriptors(unit, carry.get("tensordesc_meta") or [])
    counts = parse_amd_assembly(stages["amdgcn"].text) if unit.target.kind is Backend.HIP else carry
    return Facts(
        symbol=carry["name"],
        parameters=tuple(list_parameters(unit, descriptors, buffers, v3_9.HIDDEN_PARAMETERS)),
        num_warps=carry["num_warps"],
        num_ctas=options.num_ctas,
        warp_size=options.warp_size,
        shared_bytes=carry["shared"] or 0,
        tensor_memory_bytes=carry.get("tmem_size") or 0,
        global_scratch_bytes=carry["global_scratch_size"] or 0,
        global_scratch_align=carry["global_scratch_align"] or 1,
        profile_scratch_bytes=carry["profile_scratch_size"] or 0,
        profile_scratch_align=carry["profile_scratch_align"] or 1,
        cooperative=options.launch_cooperative_grid,
        pdl=getattr(options, "launch_pdl", False),
        registers=counts.get("registers"),
        spill_bytes=counts.get("spill_bytes"),
        code_bytes=len(image.data),
        tensor_descriptors=tuple(descriptors.values()),
        buffers=buffers,
    )


def list_descriptors(unit: Unit, metadata: Sequence[dict[str, Any]]) -> dict[str, TensorDescriptor]:
    """The host tensor descriptors among a unit's arguments, by name; with metadata they are TMA maps."""
    leaves = [(name, kind) for name, kind in list_leaves(unit) if kind.startswith("tensordesc")]
    entries: Sequence[dict[str, Any] | None] = metadata if metadata else [None] * len(leaves)
    return {name: make_descriptor(name, kind, entry) for (name, kind), entry in zip(leaves, entries, strict=True)}


def make_descriptor(name: str, kind: str, metadata: dict[str, Any] | None) -> TensorDescriptor:
    """One descriptor: from its type alone where it is expanded to plain values, else with the map's properties."""
    if metadata is None:
        shape = kind[kind.index("[") + 1 : kind.index("]")].split(",")
        return TensorDescriptor(name, False, tuple(int(each) for each in shape))
    element_type = metadata["elem_type"]
    return TensorDescriptor(
        argument=name,
        tma=True,
        block_shape=tuple(metadata["block_size"]),
        element_type=_DRIVER_ELEMENT_TYPE.get(element_type, element_type),
        element_bytes=metadata["elem_size"],
        swizzle=metadata["swizzle"],
        fp4_padded=metadata["fp4_padded"],
    )
