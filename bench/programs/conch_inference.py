"""A forward pass of decoder layers with Conch's functions (PyPI: conch-triton-kernels)."""

import torch
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.int8 import scaled_int8_quant
from measured import Step, run_program

LAYERS, WIDTH, HEAD, TOKENS = 12, 1024, 128, 64


def make_step(device: torch.device) -> Step:
    def weight(*shape: int) -> torch.Tensor:
        return (torch.randn(shape) / shape[0] ** 0.5).half().to(device)

    x, scale = weight(TOKENS, WIDTH), weight(WIDTH)
    up, down, mixed = weight(WIDTH, 4 * WIDTH), weight(2 * WIDTH, WIDTH), weight(WIDTH, 2 * WIDTH)
    positions, factor = torch.arange(TOKENS, device=device), torch.full((1,), 0.05, device=device)
    angles = positions[:, None] / 10000 ** (torch.arange(HEAD // 2, device=device) / (HEAD // 2))
    turns = torch.cat([angles.cos(), angles.sin()], -1).half()

    def step() -> torch.Tensor:
        y, rest = rms_norm(x, scale, 1e-6), x.clone()
        for _ in range(LAYERS):
            q, k = (each.contiguous() for each in (y @ mixed).chunk(2, -1))
            q, k = rotary_embedding(positions, q, k, HEAD, turns)
            y = q.view(TOKENS, WIDTH) * torch.sigmoid(k.view(TOKENS, WIDTH))
            y, rest = fused_add_rms_norm(y, rest, scale, 1e-6)
            y = silu_and_mul(y @ up) @ down
            y = gemma_rms_norm(y, scale, 1e-6)
        quantized, factors = scaled_int8_quant(y, factor)
        return torch.stack([quantized.double().sum(), factors.double().sum(), y.double().sum()])

    return step


if __name__ == "__main__":
    run_program(make_step)
