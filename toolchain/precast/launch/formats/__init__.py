"""The bytes that the C runtime reads: packs of images and `index.bin`, with the values they are written from.

In: units, facts and image places from release assembly. Out: `write_pack`, `write_index`, and the interface digest
that ties library, index and packs together.
"""

from precast.launch.formats.index import write_index
from precast.launch.formats.interface import describe_interface, interface_digest
from precast.launch.formats.pack import PackEntry, read_pack, write_pack
from precast.launch.formats.values import (
    LAUNCH_ABI,
    SCHEMA,
    TYPE_CODES,
    ArgumentInterface,
    AxisInterface,
    Condition,
    ImagePlace,
    IndexedUnit,
    KernelInterface,
    ReleaseFile,
    ReleaseIndex,
    ReleaseInterface,
    SelectionRule,
    Slot,
)

__all__ = [
    "LAUNCH_ABI",
    "SCHEMA",
    "TYPE_CODES",
    "ArgumentInterface",
    "AxisInterface",
    "Condition",
    "ImagePlace",
    "IndexedUnit",
    "KernelInterface",
    "PackEntry",
    "ReleaseFile",
    "ReleaseIndex",
    "ReleaseInterface",
    "SelectionRule",
    "Slot",
    "describe_interface",
    "interface_digest",
    "read_pack",
    "write_index",
    "write_pack",
]
