"""What `torch.autocast` does to tensors of a device that is not there.

In: an operator that the program calls, its arguments. Out: the arguments in the types that PyTorch's own autocasting
gives them on the device. That asks in C++ whether a tensor is on the device, and these are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# "CUDA Ops that can autocast" of PyTorch's documentation; methods and functions have the same names.
_TO_LOWER = frozenset({
    "__matmul__", "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "multi_dot",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "einsum", "linear",
    "matmul", "mm", "mv", "prelu", "scaled_dot_product_attention", "multi_head_attention_forward",
})  # fmt: skip
_TO_FLOAT32 = frozenset({
    "__pow__", "__rpow__", "acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosh", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1", "group_norm",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2",
    "log_softmax", "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "nll_loss", "norm", "normalize",
    "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal", "renorm", "rsqrt", "sinh", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan", "triplet_margin_loss",
})  # fmt: skip


def cast(torch: Any, kind: Any, func: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The arguments of an operator; as they are where autocasting is off. `kind`: the class of the device's tensors."""
    if not torch.is_autocast_enabled("cuda"):
        return arguments, keywords
    name = getattr(func, "__name__", "")
    lower = torch.get_autocast_dtype("cuda")
    wanted = lower if name in _TO_LOWER else torch.float32 if name in _TO_FLOAT32 else None
    if wanted is None or keywords.get("dtype") is not None:
        return arguments, keywords

    def convert(tensor: Any) -> Any:
        is_real = tensor.is_floating_point() and tensor.dtype != torch.float64
        return tensor.to(wanted) if is_real and tensor.device.type == "cuda" else tensor

    return torch.utils._pytree.tree_map_only(kind, convert, (arguments, dict(keywords)))
