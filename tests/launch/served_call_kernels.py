"""Kernels for the tests of calls that the extension knows; none is ever compiled."""

import enum

import numpy as np
import triton
import triton.language as tl


class Mode(enum.IntEnum):
    SLOW = 0
    FAST = 1


class Level(enum.IntEnum):
    LOW = 5
    HIGH = 6


class Word(str, enum.Enum):
    LEFT = "left"


class Settings:
    """An object of a kind that no digest can describe."""

    limit = 7


OFFSET = tl.constexpr(0)
LIMITS = tl.constexpr(np.finfo(np.float32))
SETTINGS = tl.constexpr(Settings())


@triton.jit
def scaled(value, alpha):
    return value * alpha


def make_kernel(shift):
    """A kernel that takes a name from around it."""

    @triton.jit
    def scale(out, x, alpha, n, BLOCK: tl.constexpr, MODE: tl.constexpr = 1, num_stages: tl.constexpr = 2):
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + OFFSET + shift
        tl.store(out + places, scaled(tl.load(x + places, mask=places < n), alpha), mask=places < n)

    def change(value):
        nonlocal shift
        shift = value

    scale.change = change
    return scale


scale = make_kernel(tl.constexpr(0))


@triton.jit
def limited(out, n):
    tl.store(out, LIMITS.min)


@triton.jit
def set_up(out, n):
    tl.store(out, SETTINGS.limit)
