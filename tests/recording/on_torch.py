"""A program of PyTorch and Triton, as people write them: a module that trains, kernels that are tuned, sizes that are
read from tensors. It knows nothing of how it is recorded."""

import sys
import threading

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = torch.device("cuda")
CONFIGS = [triton.Config({"BLOCK": each}, num_warps=warps) for each, warps in ((128, 4), (256, 8), (2048, 8))]


def keep_small(configs, given, **named):
    return [each for each in configs if each.kwargs["BLOCK"] < 2048]


@triton.jit
def scale_rows(x, weight, out, stride, n, scale, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + i, i < n, 0.0) * scale
    if weight is not None:
        value *= tl.load(weight + i, i < n, 0.0)
    tl.store(out + row * stride + i, value, i < n)


@triton.autotune(CONFIGS, ["n"], prune_configs_by={"early_config_prune": keep_small}, restore_value=["out"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < (2147483647 if EVEN else n)
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


@triton.jit
def gather(x, places, out, count, LIMIT: tl.constexpr):
    i = tl.arange(0, LIMIT)
    place = tl.load(places + i, i < count, 0)
    tl.store(out + i, tl.load(x + place, i < count), i < count)


@triton.jit
def halve(x):
    tl.store(x, tl.load(x) / 2)


@torch.library.custom_op("on_torch::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    halve[(1,)](out)
    return out


@halved.register_fake
def _(x):
    return torch.empty_like(x)


@triton.jit
def tile(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    found = source.load([0, 0])
    tl.store(out + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :], found)


class ScaleRows(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(weight)
        return run_rows(x, weight)

    @staticmethod
    def backward(context, gradient):
        return run_rows(gradient.contiguous(), context.saved_tensors[0]), None


def run_rows(x, weight):
    out, n = torch.empty_like(x), x.shape[-1]
    scale_rows[(x.numel() // n,)](x, weight, out, x.stride(-2), n, 0.5, BLOCK=triton.next_power_of_2(n))
    return out


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(48, 100), torch.nn.Linear(100, 16)
        self.register_buffer("weight", torch.ones(100))

    def forward(self, x):
        return self.last(ScaleRows.apply(self.first(x), self.weight.to(x.dtype)))


def train(dtype):
    model = Model().to(DEVICE, dtype)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        loss = model(torch.randn(8, 48, device=DEVICE, dtype=dtype)).float().square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def rest():
    for n in (4096, 1000):
        x = torch.zeros(n + 1, device="cuda")
        grid = lambda given, n=n: (triton.cdiv(n, given["BLOCK"]),)  # noqa: E731
        add[grid](x[1:], x, torch.empty_like(x), n)
        scale_rows[(1,)](x, None, x, n, n, 1.0, BLOCK=triton.next_power_of_2(n))
    lengths = torch.tensor([3, 16, 5], dtype=torch.int32).cuda()
    ends = lengths.cumsum(0)
    limit = int(ends[-1])  # 24, on whatever device
    gather[(1,)](x, ends, x, len(ends), LIMIT=triton.next_power_of_2(limit))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        product = torch.nn.functional.linear(torch.ones(16, 32, device="cuda"), torch.ones(32, 32, device="cuda"))
    tile[(1,)](TensorDescriptor.from_tensor(product, [16, 32]), x, 16, 32)


def read():
    """What depends on values that only the device computes."""
    x = torch.rand(64, device="cuda")
    out = torch.zeros_like(x)
    scale_rows[(1,)](x, None, out, 64, 64, 2.0, BLOCK=64)
    count = (out > 0.5).sum().item()
    places = (out > 0.5).nonzero().flatten()
    gather[(1,)](x, places, out, count, LIMIT=64)
    gather[(1,)](x, places, out, 1, LIMIT=triton.next_power_of_2((out > 0.5).sum().item()))
    if torch.isnan(out).any():
        raise SystemExit("no number")


def elsewhere():
    """In a thread, through an operator of the library that has a shape function too."""
    thread = threading.Thread(target=lambda: halved(torch.ones(4, dtype=torch.float64, device="cuda")))
    thread.start()
    thread.join()


def scale_loss():
    """The optimizer steps only where no gradient is infinite."""
    weight = torch.ones(16, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight])
    optimizer.register_step_post_hook(lambda *_: halve[(1,)](weight.detach()))
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale((weight * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


if __name__ == "__main__":
    train(torch.float32)
    train(torch.bfloat16)
    rest()
    elsewhere()
    scale_loss()
    if sys.argv[1:] == ["read"]:
        read()
