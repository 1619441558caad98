"""Names that projects cannot have, and names as C has them: what C, C++, Python and the linker have taken.

In: a name. Out: why a project cannot be called so; a parameter's or field's name in C.
"""

from __future__ import annotations

import keyword
import re
import sys

from precast.spec.c_names import KEYWORDS, MACROS, NAMES

# Our own prefix, in C and among Python's packages.
OWN = "precast"
# Packages that a release's tensors and calls come from; one beside them would hide them.
FRAMEWORKS = frozenset({"cupy", "jax", "numpy", "torch", "triton"})
# `lib<name>.so` of a driver, which a release opens by that name.
LIBRARIES = frozenset({"amdhip64", "cuda"})
# Parameters of every launcher beside the kernel's own.
_PARAMETERS = frozenset({"release", "stream", "axes", "grid", "slots", "values"})


def project_fault(name: str) -> str:
    """Why no project can be called `name`, which becomes a C prefix and type, a library and a Python package."""
    if keyword.iskeyword(name):
        return f"Python has a word `{name}`"
    if name in KEYWORDS or name in MACROS or name in NAMES:
        return f"C has a name `{name}`"
    if name == OWN or name.startswith(f"{OWN}_"):
        return f"what begins with `{OWN}` is the runtime's"
    if name in sys.stdlib_module_names:
        return f"Python has a module `{name}`"
    if name in FRAMEWORKS:
        return f"there is a package `{name}` that releases are used with"
    return f"a driver has a library `lib{name}.so`" if name in LIBRARIES else ""


def is_symbol_taken(name: str) -> bool:
    """Whether a function, type or macro of a header cannot be called `name`."""
    return name in KEYWORDS or name in MACROS or name in NAMES or _is_the_compilers(name)


def c_name(name: str) -> str:
    """A parameter's or field's name in C: `_` after it where C, C++ or the launchers have taken it."""
    word = re.sub(r"\W", "_", name)
    is_type = word.endswith("_t") and word in NAMES
    taken = word in KEYWORDS or word in MACROS or word in _PARAMETERS or is_type or _is_the_compilers(word)
    return f"{word}_" if taken or word.lower().startswith(f"{OWN}_") else word


def _is_the_compilers(name: str) -> bool:
    return re.match(r"__|_[A-Z]", name) is not None
