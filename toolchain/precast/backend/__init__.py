"""`kernel[grid]` on a CPU: the back end that Triton finds under the entry point `cpu` of its group `triton.backends`.

Triton imports `compiler` and `driver` whenever a program imports Triton, on every machine: nothing here imports a
compiler, or asks for a device, before a kernel is launched.
"""
