"""Passes from outside: what a plugin author imports, and pipelines as data. No engine is imported here.

In: a plugin author's classes; the project's selections. Out: the passes of each unit, placed in its pipelines.
"""

from precast.passes.anchors import after, before, end, start
from precast.passes.context import PassContext
from precast.passes.definitions import (
    BuiltinPass,
    Drop,
    HookFile,
    NativePass,
    Override,
    Pass,
    Replace,
)
from precast.passes.elementwise import ElementwiseOp

__all__ = [
    "BuiltinPass",
    "Drop",
    "ElementwiseOp",
    "HookFile",
    "NativePass",
    "Override",
    "Pass",
    "PassContext",
    "Replace",
    "after",
    "before",
    "end",
    "start",
]
