"""From a running program to specs: what Triton's JIT launches in a process and its children becomes kernels of a file.

In: a program that calls Triton. Out: a spec file. `begin` and what it imports run in the program's own processes, with
the standard library alone; they note what is launched. The rest merges notes into the file.
"""
