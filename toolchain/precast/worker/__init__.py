"""Workers: processes that each run one unit at a time through its stages.

In: jobs. Out: unit results, and files that appear whole. `pool` and `executor` are the parent's side and import no
engine; `child`, `walk` and `fixed` run inside the worker's process.
"""
