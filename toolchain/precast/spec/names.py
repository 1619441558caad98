"""Names that kernels cannot have, for a release's library and package have them.

In: a name. Out: why a kernel cannot be called so. One list for the plan, the generated code and the specs that a
release prints: this file goes into a release's Python package too, with the standard library alone.
"""

from __future__ import annotations

import keyword

# Functions of every library, `<project>_open`.
LIBRARY_FUNCTIONS = (
    "open", "open_signed", "open_with", "close", "error", "preload", "unload", "query", "selfcheck", "set_threads",
    "set_allocator", "set_buffer_reader", "version",
)  # fmt: skip
# What every package has besides, and what the types of its kernels are written with.
PACKAGE_NAMES = frozenset(
    {"release", "serve", "check_signature", "LaunchError", "MissingVariant", "register_torch_ops"}
)
STUB_NAMES = frozenset({
    "Any", "Callable", "Grid", "Literal", "Protocol", "Release", "RuntimeError", "Tensor", "bool", "bytes",
    "dict", "float", "int", "list", "object", "str", "tuple",
})  # fmt: skip

MOST_CHARACTERS = 128  # of a name that becomes part of files' names, which have 255


def kernel_fault(name: str) -> str:
    """Why no kernel can be called `name`; empty where one can."""
    if keyword.iskeyword(name):
        return f"Python has a word `{name}`"
    if name in LIBRARY_FUNCTIONS:
        return f"every release has a function `{name}` of its own"
    if name in PACKAGE_NAMES:
        return f"every release's package has a `{name}` of its own"
    return f"the types of a release's package are written with `{name}`" if name in STUB_NAMES else ""


def argument_fault(name: str) -> str:
    """Why an argument or axis cannot be given by this name in a call; empty where it can."""
    if keyword.iskeyword(name):
        return f"Python has a word `{name}`"
    if name == "stream":
        return "every call takes a `stream` of its own"
    return "the types of a call take `self` for the kernel" if name == "self" else ""
