"""What SCons loads for `tools=["default", "precast_tool"]` with `toolpath=[precast.scons_toolpath]`."""

from precast.graph.tool import exists, generate

__all__ = ["exists", "generate"]
