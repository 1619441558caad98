"""Precast: an ahead-of-time build system for Triton kernels."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`scons_toolpath`: where SCons finds the tool `precast_tool`. `record(path)`: records a block's launches."""
    if name == "scons_toolpath":
        from pathlib import Path

        return str(Path(__file__).parent / "graph" / "toolpath")
    if name == "record":
        from precast.recording.process import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
