"""The SConstruct of a merged release's library, run in the folder that `graph.merging` made for it."""

from pathlib import Path

from SCons.Script import Environment

from precast.graph.compiler import choose_compiler
from precast.graph.merging import read_request
from precast.graph.tool import declare_objects

request = read_request(Path.cwd())
env = Environment(tools=["default"])
choose_compiler(env, request.machine, "", Path.cwd())
env["ENV"]["TMPDIR"] = str(Path.cwd())  # which goes, whatever becomes of the compiler
_, library = declare_objects(env, request.given, request.sources)
env.Default(library)
