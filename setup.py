"""Builds the Python extensions of launcher and recorder with the package; everything else is in pyproject.toml.

Releases carry a copy of the launcher's, so both are built as their library is: the same bytes from any clone, no path
of the machine inside, no library path, a mode that does not follow the builder's umask. What the interpreter was built
with (its debug information, its own library folder) is nothing of ours.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("toolchain/precast")
LAUNCH = [PACKAGE / "launch/extension", PACKAGE / "launch/runtime"]
RECORDING = [PACKAGE / "recording/extension"]
OF_THE_INTERPRETER = ("-g", "-L", "-Wl,-rpath", "-Wl,-R", "-flto", "-fdebug-prefix-map", "-ffile-prefix-map", "-specs")


def files(folders: list[Path], pattern: str) -> list[str]:
    """The sources that match, in one order on every file system."""
    return sorted(path.as_posix() for folder in folders for path in folder.glob(pattern))


def extension(name: str, folders: list[Path]) -> Extension:
    """An extension of Python's stable ABI from the C sources of these folders."""
    return Extension(
        name,
        sources=files(folders, "*.c"),
        depends=files(folders, "*.h"),
        include_dirs=[folders[-1].as_posix()],
        define_macros=[("_GNU_SOURCE", None), ("Py_LIMITED_API", "0x030A0000"), ("NDEBUG", None)],
        extra_compile_args=["-std=c11", "-O2", "-g0", "-fvisibility=hidden", f"-ffile-prefix-map={Path.cwd()}=."],
        extra_link_args=["-Wl,--build-id=none", "-Wl,-s", "-Wl,--as-needed"],
        libraries=["pthread", "dl"],
        py_limited_api=True,
    )


class BuildExtension(build_ext):
    """`build_ext` without what the interpreter's build adds to each command."""

    def build_extensions(self) -> None:
        for name in ("compiler_so", "linker_so"):
            words = getattr(self.compiler, name)
            setattr(self.compiler, name, [word for word in words if not word.startswith(OF_THE_INTERPRETER)])
        self.compiler.library_dirs, self.compiler.runtime_library_dirs = [], []
        os.environ["LC_ALL"] = "C"
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        os.chmod(self.get_ext_fullpath(ext.name), 0o755)


setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=[
        extension("precast.launch._launch", LAUNCH),
        extension("precast.recording._watch", RECORDING),
    ],
)
