"""What a user's shell says and a build does not hear. In: an environment and a project's settings. Out: warnings.

A build is a function of files and settings. A variable that would change code elsewhere is never heard and never
silently nothing: one warning names those that are set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from precast.spec.model import CompileSettings
from precast.variables import OTHERS, PREFIXES

# Where files go, and what is printed: these change no code.
HARMLESS = frozenset(
    {"TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_DUMP_DIR", "TRITON_PRINT_AUTOTUNING", "TRITON_CACHE_AUTOTUNING"}
)
# Make, configure and their like would hear these.
C_NAMES = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")


def find_ignored(environment: Mapping[str, str], settings: CompileSettings) -> Iterator[str]:
    """A warning for each kind of variable that is set and does nothing. One that the settings set alike is heard."""
    ours = dict(settings.environment)
    for_triton = [name for name in environment if name.startswith(PREFIXES) or name in OTHERS]
    unheard = sorted(name for name in for_triton if name not in HARMLESS and ours.get(name) != environment[name])
    if unheard:
        yield _tell(unheard, "what may change code is set in [tool.precast.triton]")
    for_c = [name for name in C_NAMES if environment.get(name)]
    if for_c:
        yield _tell(for_c, "an SConstruct chooses the C compiler, as `Environment(CC=…)`, and the flags are fixed")


def _tell(names: list[str], instead: str) -> str:
    return f"{', '.join(names)} in the environment: ignored; {instead}"
