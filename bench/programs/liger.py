"""A small language model that is trained with Liger-Kernel's own functions (PyPI: liger-kernel)."""

import torch
from liger_kernel.transformers.functional import liger_cross_entropy, liger_layer_norm, liger_rms_norm, liger_rope
from liger_kernel.transformers.functional import liger_swiglu as swiglu
from measured import Step, run_program
from torch import nn

LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 8, 512, 8, 128, 2, 4096


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        mixed = self.mixed(liger_rms_norm(x, self.before, 1e-6, in_place=False)).chunk(3, -1)
        q, k, v = (each.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for each in mixed)
        q, k = liger_rope(q, k, cos, sin)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        y = liger_rms_norm(x, self.between, 1e-6, in_place=False)
        return x + self.down(swiglu(self.gate(y), self.up(y)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.weight, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, words, wanted, cos, sin):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, cos, sin)
        x = liger_layer_norm(x, self.weight, self.bias, 1e-5)
        scores = x.view(-1, WIDTH) @ self.words.weight.T
        return liger_cross_entropy(scores, wanted.view(-1))


def make_step(device: torch.device) -> Step:
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words = torch.randint(WORDS, (BATCH, LENGTH + 1), device=device)
    angles = torch.arange(LENGTH, device=device)[:, None] / 10000 ** (torch.arange(32, device=device) / 32)
    angles = torch.cat([angles, angles], -1)[None]
    cos, sin = angles.cos(), angles.sin()

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(words[:, :-1], words[:, 1:].contiguous(), cos, sin)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    run_program(make_step)
