"""The build graph: what is stale, who runs it, and the SCons tool that orders it.

In: a plan, the index of the last builds, a request. Out: units, packs, libraries and a release on disk, and events.
Only `tool` and `scons_*` import SCons, and only when something is to be built.
"""
