"""Kernels whose meaning lies outside their own text, each in two versions; and kernels that have no digest.

Needs no test library: the same texts are digested under every Triton that a release serves.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

HEAD = """\
import dataclasses, enum, functools, math
from collections import namedtuple
from typing import NamedTuple
import triton, triton.language as tl
from triton.language.core import _aggregate as aggregate
from triton.language.extra import libdevice

"""
KERNEL = "@triton.jit\ndef kernel(out, n, B: tl.constexpr = 4):\n    tl.store(out, {})\n"
HELPER = "@triton.jit\ndef helper(x):\n    return x + {}\n"
PYTHON = "def plain(x):\n    return x + {}\n"
CONSTEXPR = "@triton.constexpr_function\ndef folded(x):\n    return {}\n"
AGGREGATE = """\
@aggregate
class Pair:
    v: tl.tensor
    @triton.constexpr_function
    def __init__(self, v):
        self.v = v
    @triton.jit
    def sum(self):
        return self.v + {}
"""
READER = "class C:\n    X = 1\n    @classmethod\n    def read(cls):\n        return cls.X\n"
READER += CONSTEXPR.format("C.read()")


def kernel(expression: str, before: str = "") -> str:
    return f"{HEAD}{before}\n{KERNEL.format(expression)}"


# Name → the kernel's module, and the same with another meaning of `kernel`, whose own text stays.
CHANGES = {
    "helper": (kernel("helper(1)", HELPER.format(1)), kernel("helper(1)", HELPER.format(2))),
    "helper of another name": (
        kernel("h(1)", HELPER.format(1) + "h = helper"), kernel("h(1)", HELPER.format(2) + "h = helper")),
    "constexpr function": (
        kernel("folded(1)", CONSTEXPR.format("x + 1")), kernel("folded(1)", CONSTEXPR.format("x + 2"))),
    "what a constexpr function calls": (
        kernel("folded(1)", PYTHON.format(1) + CONSTEXPR.format("plain(x)")),
        kernel("folded(1)", PYTHON.format(2) + CONSTEXPR.format("plain(x)"))),
    "what it calls of a cached function": (
        kernel("folded(1)", "@functools.lru_cache\n" + PYTHON.format(1) + CONSTEXPR.format("plain(x)")),
        kernel("folded(1)", "@functools.lru_cache\n" + PYTHON.format(2) + CONSTEXPR.format("plain(x)"))),
    "default that was computed": (
        kernel("folded(1)", "A = 1\n@triton.constexpr_function\ndef folded(x, y=A):\n    return x + y\nA = 1\n"),
        kernel("folded(1)", "A = 2\n@triton.constexpr_function\ndef folded(x, y=A):\n    return x + y\nA = 1\n")),
    "jit or constexpr": (
        kernel("helper(1)", HELPER.format(1)),
        kernel("helper(1)", HELPER.format(1).replace("triton.jit", "triton.constexpr_function"))),
    "method of an aggregate": (
        kernel("Pair(n).sum()", AGGREGATE.format(1)), kernel("Pair(n).sum()", AGGREGATE.format(2))),
    "field of an aggregate": (
        kernel("Pair(n).sum()", AGGREGATE.format(1)),
        kernel("Pair(n).sum()", AGGREGATE.format(1).replace("v: tl.tensor", "v: tl.constexpr"))),
    "helper of an aggregate": (
        kernel("Pair(n).sum()", HELPER.format(1) + AGGREGATE.format("helper(1)")),
        kernel("Pair(n).sum()", HELPER.format(2) + AGGREGATE.format("helper(1)"))),
    "method put on a class later": (
        kernel("Pair(n).sum()", AGGREGATE.format(1) + HELPER.format(1) + "Pair.sum = helper"),
        kernel("Pair(n).sum()", AGGREGATE.format(1) + HELPER.format(2) + "Pair.sum = helper")),
    "attribute of a class": (
        kernel("C.X", "class C:\n    X = tl.constexpr(1)\n"), kernel("C.X", "class C:\n    X = tl.constexpr(2)\n")),
    "attribute that a method reads": (
        kernel("folded(1)", READER + "C.X = 3"), kernel("folded(1)", READER + "C.X = 4")),
    "tuple": (kernel("X[0]", "X = (tl.constexpr(1),)"), kernel("X[0]", "X = (tl.constexpr(2),)")),
    "helper in a tuple": (
        kernel("H[0](1)", HELPER.format(1) + "H = (helper,)"), kernel("H[0](1)", HELPER.format(2) + "H = (helper,)")),
    "helper in a constexpr": (
        kernel("H(1)", HELPER.format(1) + "H = tl.constexpr(helper)"),
        kernel("H(1)", HELPER.format(2) + "H = tl.constexpr(helper)")),
    "constexpr tuple": (kernel("X[0]", "X = tl.constexpr((1, 2))"), kernel("X[0]", "X = tl.constexpr((2, 2))")),
    "constexpr of another type": (kernel("X", "X = tl.constexpr(1)"), kernel("X", "X = tl.constexpr(True)")),
    "named tuple": (
        kernel("X.a", "class P(NamedTuple):\n    a: int\nX = tl.constexpr(P(1))"),
        kernel("X.a", "class P(NamedTuple):\n    a: int\nX = tl.constexpr(P(2))")),
    "names of a named tuple": (
        kernel("X.a", "P = namedtuple('P', 'a b')\nX = tl.constexpr(P(1, 2))"),
        kernel("X.a", "P = namedtuple('P', 'b a')\nX = tl.constexpr(P(1, 2))")),
    "dataclass": (
        kernel("X.a", "@dataclasses.dataclass(frozen=True)\nclass P:\n    a: int\nX = tl.constexpr(P(1))"),
        kernel("X.a", "@dataclasses.dataclass(frozen=True)\nclass P:\n    a: int\nX = tl.constexpr(P(2))")),
    "dict": (kernel("X[1]", "X = tl.constexpr({1: 1})"), kernel("X[1]", "X = tl.constexpr({1: 2})")),
    "set": (kernel("1 in X", "X = tl.constexpr({1, 2})"), kernel("1 in X", "X = tl.constexpr({3, 2})")),
    "enumeration": (
        kernel("X.value", "class E(enum.Enum):\n    A = 1\nX = tl.constexpr(E.A)"),
        kernel("X.value", "class E(enum.Enum):\n    A = 2\nX = tl.constexpr(E.A)")),
    "enumeration made of names": (
        kernel("X.value", "E = enum.Enum('E', 'A B')\nX = tl.constexpr(E.A)"),
        kernel("X.value", "E = enum.Enum('E', 'B A')\nX = tl.constexpr(E.A)")),
    "element type": (kernel("tl.zeros((1,), X)", "X = tl.float16"), kernel("tl.zeros((1,), X)", "X = tl.float32")),
    "function of Triton": (kernel("X(1.0)", "X = tl.sin"), kernel("X(1.0)", "X = tl.cos")),
    "function of another library": (kernel("X(1.0)", "X = tl.sin"), kernel("X(1.0)", "X = libdevice.sin")),
    "module": (kernel("m.exp(1.0)", "m = tl.math"), kernel("m.exp(1.0)", "m = libdevice")),
    "annotation": (
        kernel("h(1)", "T = tl.int32\n@triton.jit\ndef h(x: T):\n    return x\n"),
        kernel("h(1)", "T = tl.int64\n@triton.jit\ndef h(x: T):\n    return x\n")),
    "name that one branch assigns": (
        kernel("h(1)", "X = tl.constexpr(1)\n@triton.jit\ndef h(x):\n    if x:\n        X = 5\n    return X\n"),
        kernel("h(1)", "X = tl.constexpr(2)\n@triton.jit\ndef h(x):\n    if x:\n        X = 5\n    return X\n")),
    "partial function": (
        kernel("folded(1)", PYTHON.format(1) + "p = functools.partial(plain, 1)\n" + CONSTEXPR.format("p()")),
        kernel("folded(1)", PYTHON.format(1) + "p = functools.partial(plain, 2)\n" + CONSTEXPR.format("p()"))),
}  # fmt: skip
# Two modules whose kernels mean the same.
SAME = {
    "a global that a parameter hides": (kernel("n", "n = 1"), kernel("n", "n = object()")),
    "a global that a local name hides": (
        kernel("h(1)", "y = 1\n@triton.jit\ndef h(x):\n    y = x\n    return y\n"),
        kernel("h(1)", "y = object()\n@triton.jit\ndef h(x):\n    y = x\n    return y\n")),
    "a class for reading alone": (
        kernel("h(1)", "class T: pass\n@triton.jit\ndef h(x: T):\n    return x\n"),
        kernel("h(1)", "class T: a = object()\n@triton.jit\ndef h(x: T):\n    return x\n")),
    "docstring and comment of a class": (
        kernel("Pair(n).sum()", AGGREGATE.format(1)),
        kernel("Pair(n).sum()", "\n\n" + AGGREGATE.format("1  # one").replace("    v:", '    """Two."""\n    v:', 1))),
    "library function": (kernel("folded(2)", CONSTEXPR.format("math.log2(x)")),) * 2,
}  # fmt: skip
# Why a kernel has no digest.
UNDESCRIBED = {
    kernel("X", "X = tl.constexpr(object())"): "`kernel` uses `X`, a value of type object",
    kernel("folded(1)", "import json as conf\nconf = type(conf)('conf')\n" + CONSTEXPR.format("getattr(conf, 'X')")):
        "`folded` uses `conf`, a module as a whole",
    kernel("folded(1)", "f = lambda x: x\n" + CONSTEXPR.format("f(x)")):
        "`folded` uses `f`, a function that has no `def` of its own",
    kernel("folded(1)", CONSTEXPR.format("eval('x')")):
        "`folded` uses `eval`, which reaches what the text does not name",
    kernel("folded(1)", "@triton.constexpr_function\ndef folded(x):\n    import numpy\n    return x\n"):
        "`folded` imports `numpy` while it runs",
    kernel("C.X", "C = type('C', (), {'X': open})\n").replace("C.X", "C()"):
        "`kernel` uses `C`, a class that has no `class` of its own",
    kernel("X[0]", "X = []\nX.append(X)"): "`kernel` uses `X`, a value that holds itself",
}  # fmt: skip


def load_text(text: str, folder: Path, name: str) -> ModuleType:
    """The module of this text; it stays in `sys.modules`, as an imported one does."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest_all(folder: Path, digest_source) -> dict[str, str]:
    """Digests by name, of every kernel that has one."""
    texts = {f"{name}, {number}": pair[number] for name, pair in {**CHANGES, **SAME}.items() for number in (0, 1)}
    return {
        name: digest_source(load_text(text, folder, f"digested_{number}").kernel).text
        for number, (name, text) in enumerate(texts.items())
    }


if __name__ == "__main__":  # EMPTY_FOLDER FOLDER_OF_THE_PACKAGE PACKAGE: digests by the code in a release
    sys.path.insert(0, sys.argv[2])
    release = importlib.import_module(f"{sys.argv[3]}._source_digest")
    print(json.dumps(digest_all(Path(sys.argv[1]), release.digest_source)))
