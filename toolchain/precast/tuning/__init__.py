"""Tuning: what is measured on a device, the evidence that it leaves, and which configs of a kernel ship for what.

Modules that say so go into the package of a candidates release, where they import one another, NumPy and the standard
library alone.
"""
