"""The folder that SCons searches for `precast_tool`."""
