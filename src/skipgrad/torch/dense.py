"""The exact softmax, with scores that are never in memory all at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from skipgrad import heads
from skipgrad.torch.head import BLOCK, Head
from skipgrad.torch.tables import wide


class ExactSoftmax(Head):
    """The softmax over all words: what a linear layer and cross entropy do, without their (n, V) scores.

    loss = log sum_w exp(s_w) - (1 - e) s_o - e/V sum_w s_w, e = label_smoothing

    >>> ExactSoftmax(8, [9, 4, 1], label_smoothing=0.1).weight.shape
    torch.Size([3, 8])
    """

    kind = heads.HEADS["softmax"]
    smooths = True

    def build(self, definition: Any) -> None:
        """Nothing else."""
        if self.sparse:
            raise ValueError("sparse is True, but the exact softmax moves the rows of all words: leave it out.")

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        return cross_entropy(hidden, target, self.weight, self.bias, self.label_smoothing)

    def scores(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V)."""
        return wide(F.linear(hidden, self.weight, self.bias))


def cross_entropy(
    hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float = 0.0
) -> Tensor:
    """The losses (n) of the softmax over the rows of weight: torch's where that is fused and fast, else in blocks."""
    if hidden.shape[0] * weight.shape[0] <= BLOCK:  # the scores are few: to keep them is a quarter less work
        scores = wide(F.linear(hidden, weight, bias))
        return F.cross_entropy(scores, target, reduction="none", label_smoothing=smoothing)
    if (
        hidden.is_cuda and not smoothing and hasattr(torch.nn, "LinearCrossEntropyOptions")
    ):  # on a CPU it is slower than the blocks
        return fused(hidden, target, weight, bias)
    if torch.is_autocast_enabled(hidden.device.type):  # the gradient is made where it is not: the types are chosen here
        dtype = torch.get_autocast_dtype(hidden.device.type)
        hidden, weight, bias = hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    losses: Tensor = _Blocks.apply(hidden, target, weight, bias, smoothing)
    return losses


def fused(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The same by torch's own linear_cross_entropy, from version 2.13 on, in chunks of predictions."""
    options = torch.nn.LinearCrossEntropyOptions()
    return wide(F.linear_cross_entropy(hidden, weight, target, linear_bias=bias, reduction="none", options=options))


class _Blocks(torch.autograd.Function):
    """Cross entropy by blocks of words; the scores are made again for the gradient, r = softmax(s) - y."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
    ) -> Tensor:
        first = wide(hidden).new_zeros(len(hidden))
        log_z, own, total = first - torch.inf, first, first
        for begin, end in _ranges(hidden, weight):
            s = _scores(hidden, weight, bias, begin, end)
            log_z = torch.logaddexp(log_z, s.logsumexp(1))
            place, inside = _places(target, begin, end)
            own = torch.where(inside, s.gather(1, place[:, None])[:, 0], own)
            total = total + s.sum(1) if smoothing else total
        ctx.save_for_backward(hidden, target, weight, bias, log_z)
        ctx.smoothing = smoothing
        return log_z - (1 - smoothing) * own - smoothing / len(weight) * total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, target, weight, bias, log_z = ctx.saved_tensors
        g = gradients[0][:, None]
        d_hidden, d_weight = torch.zeros_like(hidden), torch.empty_like(weight)
        d_bias = None if bias is None else torch.empty_like(bias)
        for begin, end in _ranges(hidden, weight):
            r = _scores(hidden, weight, bias, begin, end).sub_(log_z[:, None]).exp_()
            r = r.sub_(ctx.smoothing / len(weight)).mul_(g)
            place, inside = _places(target, begin, end)
            r.scatter_add_(1, place[:, None], (ctx.smoothing - 1) * g * inside[:, None])
            if d_bias is not None:
                d_bias[begin:end] = r.sum(0)
            r = r.to(weight.dtype)
            d_hidden = d_hidden.addmm(r, weight[begin:end])
            d_weight[begin:end] = r.T @ hidden
        return d_hidden, None, d_weight, d_bias, None


def _ranges(hidden: Tensor, weight: Tensor) -> list[tuple[int, int]]:
    """Blocks of words, as large as memory allows."""
    size = max(256, BLOCK // max(1, len(hidden)))
    return [(begin, min(begin + size, len(weight))) for begin in range(0, len(weight), size)]


def _scores(hidden: Tensor, weight: Tensor, bias: Tensor | None, begin: int, end: int) -> Tensor:
    return wide(F.linear(hidden, weight[begin:end], None if bias is None else bias[begin:end]))


def _places(target: Tensor, begin: int, end: int) -> tuple[Tensor, Tensor]:
    """Where in a block the targets are, and whether they are there."""
    return (target - begin).clamp(0, end - begin - 1), (target >= begin) & (target < end)
