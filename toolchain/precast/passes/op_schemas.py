"""What each `tt`, `ttg` and `ttng` op has: names of attributes, operands and results, read from Triton's own headers.

In: `Ops.h.inc` of the dialects, in the include folder of Triton's wheel (found, not imported). Out: `OpSchema` by op.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from precast.errors import ToolError

HEADERS = tuple(f"Dialect/{name}/IR/Ops.h.inc" for name in ("Triton", "TritonGPU", "TritonNvidiaGPU", "Gluon"))
_CLASS = re.compile(r"^class (\w+) : public ::mlir::Op<", re.MULTILINE)
_NAME = re.compile(r'getOperationName\(\) \{\s*return ::llvm::StringLiteral\("([^"]+)"\)')
_ATTRIBUTES = re.compile(r"attrNames\[\] = \{(.*?)\};")
_STRING = re.compile(r'StringRef\("(\w+)"\)')
_INDEX = re.compile(r"odsIndex_(\w+) = (\d+);")
SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


@dataclass(frozen=True)
class OpSchema:
    """One op. Operands and results are in their order; `segmented` ones may each be absent or many."""

    name: str
    attributes: tuple[str, ...]
    operands: tuple[str, ...]
    results: tuple[str, ...]
    segmented: bool


@functools.cache
def read_op_schemas() -> Mapping[str, OpSchema]:
    """Every op of Triton's dialects, by name. `ToolError` when Triton is not installed or has no headers."""
    spec = importlib.util.find_spec("triton")
    folder = Path(spec.origin).parent / "include" / "triton" if spec and spec.origin else None
    if folder is None or not (folder / HEADERS[0]).is_file():
        raise ToolError("Triton's headers are not installed", hint="`pip install precast[gpu]`")
    found = [schema for header in HEADERS for schema in parse_header((folder / header).read_text(encoding="utf-8"))]
    return {schema.name: schema for schema in found}


def parse_header(text: str) -> Iterator[OpSchema]:
    """The ops that a generated header declares."""
    for match in _CLASS.finditer(text):
        body = text[match.start() : text.index("\n};", match.start())]
        name = _NAME.search(body)
        if name:
            yield _parse_class(name[1], body)


def _parse_class(name: str, body: str) -> OpSchema:
    listed = _ATTRIBUTES.search(body)
    attributes = tuple(_STRING.findall(listed[1])) if listed else ()
    operands: list[str] = []
    results: list[str] = []
    # Operands come first; the numbers start again at 0 with the results. An op without operands never asks for any.
    current = operands if "getODSOperands(0)" in body else results
    for value, index in _INDEX.findall(body):
        if index == "0" and operands:
            current = results
        current.append(value)
    plain = tuple(each for each in attributes if each not in SEGMENTS)
    return OpSchema(name, plain, tuple(operands), tuple(results), SEGMENTS[0] in attributes)
