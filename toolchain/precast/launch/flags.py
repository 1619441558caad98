"""How C sources become libraries: flags of the compiler and of the linker. In: nothing. Out: words of command lines.

Nothing of the machine, the time or the path may get into a library.
"""

# What a user's newer compiler may warn of stops no release; what can only be a broken one does. In our own tests every
# warning is an error.
COMPILE_FLAGS = (
    "-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", "-Wall", "-Wextra",
    "-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration", "-Werror=int-conversion",
)  # fmt: skip
LINK_FLAGS = ("-shared", "-Wl,--no-undefined", "-Wl,--as-needed", "-Wl,--build-id=none", "-Wl,-s")
LINK_LIBRARIES = ("pthread", "dl")


def soname_flag(file: str) -> str:
    """Gives a library its file's name: programs find it by that, wherever it lay when they were linked."""
    return f"-Wl,-soname,{file}"
