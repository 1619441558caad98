"""Activation functions that several kernels share. In and out: fp32 blocks."""

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)); the exponent is never positive, so nothing overflows on the way."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, small) / (1.0 + small)


@triton.jit
def silu(x):
    """x · sigmoid(x), also called swish."""
    return x * sigmoid(x)


@triton.jit
def gelu_erf(x):
    """x · Φ(x) with the error function."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_tanh(x):
    """The tanh form of GELU; (1 + tanh(u)) / 2 is sigmoid(2u), which keeps small results exact for negative x."""
    return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """Apply the activation that ACTIVATION names: none, relu, silu, gelu_erf or gelu_tanh."""
    tl.static_assert(
        ACTIVATION == "none"
        or ACTIVATION == "relu"
        or ACTIVATION == "silu"
        or ACTIVATION == "gelu_erf"
        or ACTIVATION == "gelu_tanh",
        "unknown activation",
    )
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif ACTIVATION == "silu":
        x = silu(x)
    elif ACTIVATION == "gelu_erf":
        x = gelu_erf(x)
    elif ACTIVATION == "gelu_tanh":
        x = gelu_tanh(x)
    return x
