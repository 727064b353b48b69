"""Adaptive softmax: a short list of frequent words, and clusters of rare ones that are scored only where needed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skipgrad import heads
from skipgrad.torch.dense import cross_entropy
from skipgrad.torch.head import Head
from skipgrad.torch.tables import take, wide


class AdaptiveSoftmax(Head):
    """A softmax over the short list and the clusters, and one within the cluster of the word; words by falling counts.

    P(o | h) = P(o) of the short list, or P(cluster of o) P(o | its cluster)

    The rows of words are one table (V, D), which can be an embedding's; those of the clusters are beside it, and their
    gradients are never sparse. Grave et al. 2017, arXiv:1609.04309.

    >>> AdaptiveSoftmax(8, [50, 20, 9, 4, 1], cutoffs=(2, 4)).clusters.shape
    torch.Size([2, 8])
    """

    kind = heads.Adaptive

    def build(self, definition: Any) -> None:
        """The ends of the levels; rows and biases of the clusters."""
        short = definition.bias[: self.words]
        if (short[1:] > short[:-1]).any():
            raise ValueError("counts rise, but the adaptive softmax needs words in the order of falling counts.")
        self.ends = [int(end) for end in definition.ends]
        clusters = self.weight.new_empty(len(self.ends) - 1, self.dim).uniform_(-(self.dim**-0.5), self.dim**-0.5)
        self.clusters = nn.Parameter(clusters.detach())
        start = self.weight.new_tensor(definition.bias[self.words :])
        self.cluster_bias = None if self.bias is None else nn.Parameter(start)

    def levels(self) -> list[tuple[Tensor, Tensor | None]]:
        """Rows and bias of the first softmax and of each cluster."""
        sizes = [b - a for a, b in zip([0, *self.ends], self.ends, strict=False)]
        rows = self._split(self.weight, sizes)
        rows[0] = torch.cat([rows[0], self.clusters])
        if self.bias is None or self.cluster_bias is None:
            return [(part, None) for part in rows]
        biases = self._split(self.bias, sizes)
        biases[0] = torch.cat([biases[0], self.cluster_bias])
        return list(zip(rows, biases, strict=True))

    def _split(self, table: Tensor, sizes: list[int]) -> list[Tensor]:
        if not self.sparse:
            return list(table.split(sizes))
        return [take(table, ids, True) for ids in torch.arange(self.words, device=table.device).split(sizes)]

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        levels, ends = self.levels(), torch.tensor(self.ends, device=target.device)
        of = torch.searchsorted(ends, target, right=True)
        losses = cross_entropy(hidden, torch.where(of == 0, target, self.ends[0] + of - 1), *levels[0])
        for level, (rows, bias) in enumerate(levels[1:], start=1):
            inside = (of == level).nonzero()[:, 0]
            if len(inside):
                own = cross_entropy(hidden[inside], target[inside] - self.ends[level - 1], rows, bias)
                losses = losses.index_add(0, inside, own)
        return losses

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V)."""
        parts = [F.log_softmax(wide(F.linear(hidden, rows, bias)), dim=1) for rows, bias in self.levels()]
        first, clusters = parts[0].split([self.ends[0], len(self.ends) - 1], dim=1)
        return torch.cat([first, *(clusters[:, k, None] + part for k, part in enumerate(parts[1:]))], dim=1)
