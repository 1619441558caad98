"""The SConstruct of a project that has none of its own."""

from SCons.Script import Environment

import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
env.Precast()
