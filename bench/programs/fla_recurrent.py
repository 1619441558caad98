"""Linear attention, forward and backward, with functions that tune themselves (PyPI: fla-core)."""

import torch
from fla.modules.norm import RMSNorm
from fla.ops.gla import fused_recurrent_gla
from fla.ops.retention import chunk_retention
from measured import Step, run_program

BATCH, LENGTH, HEADS, HEAD = 2, 128, 4, 64


def make_step(device: torch.device) -> Step:
    norm = RMSNorm(HEADS * HEAD).to(device)
    values = [torch.randn(BATCH, LENGTH, HEADS, HEAD).to(device).requires_grad_() for _ in range(3)]
    gate = torch.nn.functional.logsigmoid(torch.randn(BATCH, LENGTH, HEADS, HEAD)).to(device)

    def step() -> torch.Tensor:
        q, k, v = values
        recurrent, _ = fused_recurrent_gla(q, k, v, gate)
        kept, _ = chunk_retention(q, k, v)
        y = norm((recurrent + kept).reshape(BATCH, LENGTH, HEADS * HEAD))
        loss = y.square().mean()
        slopes = torch.autograd.grad(loss, values)
        return torch.stack([loss.detach(), *(each.abs().mean() for each in slopes)])

    return step


if __name__ == "__main__":
    run_program(make_step)
