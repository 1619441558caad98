"""The keys of `[tool.precast]`, as data. In: the keys of specs. Out: tables by which settings are checked and taught.

What a key may say beyond its shape (a name that is free, a folder that is there) its reader in `project` checks.
"""

from __future__ import annotations

from precast.schema import Array, Boolean, Either, Integer, Key, Table, Text
from precast.spec.keys import OPTION_KEYS, SCALAR

MAX_UNITS = 10_000
GLOB = Either((Text(), Array(Text())), "glob, or an array of globs")
VARIABLE = Either((Text(), Integer(), Boolean()), "text, integer, `true` or `false`")

PASS_KEYS = Table(
    "[[tool.precast.pass]]",
    (
        Key("use", Text(), "the pass's name", required=True),
        Key("kernels", GLOB, "kernels that get it", '"*"'),
        Key("variants", GLOB, "variants that get it", '"*"'),
        Key("targets", GLOB, "targets that get it", '"*"'),
        Key("options", Table("", others=SCALAR), "its options, as `precast passes` lists them"),
        Key("at", Text(), "the anchor where it runs", "its own"),
        Key("enabled", Boolean(), "whether it runs", "true"),
    ),
)

CACHE_KEYS = Table(
    "[tool.precast.cache]",
    (
        Key("url", Text(), "a folder, a server or a bucket", "no shared cache"),
        Key("read", Boolean(), "whether to take from it", "true"),
        Key("write", Boolean(), "whether to give to it", "true"),
        Key("limit", Text(), "how large `precast cache gc` leaves it, as `10GB`"),
    ),
)

BUDGET_KEYS = Table(
    "[tool.precast.budget]",
    (Key("release_bytes", Integer(0), "a larger release fails the build; 0: any size", "0"),),
)

TOOL_KEYS = Table("[tool.precast.tools]", (Key("ptxas", Text(), "the path of another `ptxas`", "Triton's own"),))

TRITON_KEYS = Table(
    "[tool.precast.triton]", others=VARIABLE, others_meaning="a variable of Triton's (`TRITON_…`, `AMDGCN_…`)"
)

ENVIRONMENT_KEYS = Table(
    "[tool.precast.environment]", others=VARIABLE, others_meaning="a variable that kernels' modules hear of"
)

PROJECT_KEYS = Table(
    "[tool.precast]",
    (
        Key("name", Text(), "C prefix, library and Python package of the release", "`name` of `[project]`"),
        Key("version", Text(), "the project's version", '`version` of `[project]`, else "0"'),
        Key("targets", Array(Text(), 1), "machines to build for, as `cuda:90`, `hip:gfx942`, `cpu:native`", "", True),
        Key("kernels", Array(Text(), 1), "globs of spec files", '["kernels/*.toml"]'),
        Key("pythonpath", Array(Text(), 1), "folders in which kernel modules are found", '["."]'),
        Key("defaults", OPTION_KEYS, "options of every kernel that does not say its own"),
        Key("pass", Array(PASS_KEYS), "passes, in the order in which they run"),
        Key("tools", TOOL_KEYS, "programs in place of Triton's own"),
        Key("triton", TRITON_KEYS, "Triton's variables, for workers"),
        Key("environment", ENVIRONMENT_KEYS, "what kernels' modules may ask of the environment"),
        Key("line_info", Boolean(), "line tables in images", "false"),
        Key("time_limit_s", Integer(1), "seconds that a unit may take", "600"),
        Key("memory_limit_mb", Integer(0), "MiB that a worker may take; 0: any amount", "0"),
        Key("max_units", Integer(0), "units that a kernel may have; 0: any number", str(MAX_UNITS)),
        Key("budget", BUDGET_KEYS, "how much a release may have"),
        Key("cache", CACHE_KEYS, "the cache that machines share"),
    ),
)
