"""Precast: an ahead-of-time build system for Triton kernels."""

__version__ = "0.1.0"
