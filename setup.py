"""Builds the launcher's Python extension with the package; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

LAUNCH = Path("toolchain/precast/launch")

setup(
    ext_modules=[
        Extension(
            "precast.launch._launch",
            sources=sorted(str(path) for folder in ("extension", "runtime") for path in (LAUNCH / folder).glob("*.c")),
            depends=sorted(str(path) for folder in ("extension", "runtime") for path in (LAUNCH / folder).glob("*.h")),
            include_dirs=[str(LAUNCH / "runtime")],
            define_macros=[("_GNU_SOURCE", None), ("Py_LIMITED_API", "0x030A0000")],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
            libraries=["pthread", "dl"],
            py_limited_api=True,
        )
    ]
)
