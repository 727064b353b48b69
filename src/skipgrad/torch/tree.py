"""Hierarchical softmax: a word is reached by yes-or-no questions on its path through a Huffman tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from skipgrad import heads
from skipgrad.torch.head import Head
from skipgrad.torch.tables import take, wide


class HierarchicalSoftmax(Head):
    """The probability of a word is that of the decisions on its path: log V rows for a prediction, nothing sampled.

    P(o | h) = prod_j sigmoid(d_j s_j), d_j = 1 where the path of o goes left at its j-th node, else -1

    The rows of weight are nodes of the tree and not words: V - 1, and one that is not used; an embedding's would make
    no sense. Morin and Bengio 2005; Mikolov et al. 2013, arXiv:1310.4546.

    >>> head = HierarchicalSoftmax(8, [9, 4, 1])
    >>> round(head.log_prob(torch.ones(8)).exp().sum().item(), 5)
    1.0
    """

    kind = heads.Hierarchical
    begins: Tensor
    steps: Tensor
    parents: Tensor
    links: Tensor

    def build(self, definition: Any) -> None:
        """The paths, one behind the other, for losses; and the nodes by their depth, for all probabilities."""
        above = definition.tree.links[:, 1][: max(1, self.words - 1)]  # 2 parent + side of a node; -1: the root
        depth = np.zeros(len(above), np.int64)
        for node, link in enumerate(above[1:].tolist(), start=1):  # a node's parent has a smaller number
            depth[node] = depth[link >> 1] + 1
        order = np.argsort(depth, kind="stable")
        place = np.argsort(order)
        self.level_sizes = np.bincount(depth).tolist()
        link = above[order[1:]].astype(np.int64)
        begins = np.cumsum([0, *self.level_sizes])[depth[order[1:]] - 1]  # of the level above
        buffers = {
            "begins": definition.begins,
            "steps": definition.steps,
            "parents": np.stack([place[link >> 1] - begins, link]),  # in the level above, and of the gains
            "links": np.stack([place[definition.tree.links[:, 0] >> 1], definition.tree.links[:, 0]]),
        }
        for name, values in buffers.items():
            self.register_buffer(name, torch.as_tensor(values, device=self.weight.device), persistent=False)

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        begins, ends = self.begins[target], self.begins[target + 1]
        lengths = ends - begins
        token = torch.arange(len(target), device=target.device).repeat_interleave(lengths)
        ahead = (begins - lengths.cumsum(0) + lengths)[token]
        step = self.steps[ahead + torch.arange(len(token), device=target.device)].long()
        scores = (wide(hidden.index_select(0, token)) * wide(take(self.weight, step >> 1, self.sparse))).sum(1)
        if self.bias is not None:
            scores = scores + wide(take(self.bias, step >> 1, self.sparse))
        losses = -F.logsigmoid(torch.where(step & 1 == 1, scores, -scores))
        return losses.new_zeros(len(target)).index_add(0, token, losses)

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V): every node adds what its decision gains to its parent's, level by level."""
        if self.words == 1:
            return wide(hidden).new_zeros(len(hidden), 1)
        scores = wide(F.linear(hidden, self.weight[:-1], None if self.bias is None else self.bias[:-1]))
        gains = torch.stack([F.logsigmoid(-scores), F.logsigmoid(scores)], dim=2).flatten(1)  # by 2 node + side
        levels = [gains.new_zeros(len(hidden), 1)]
        for parent, link in zip(*(part.split(self.level_sizes[1:]) for part in self.parents), strict=True):
            levels.append(levels[-1][:, parent] + gains[:, link])
        place, link = self.links
        return torch.cat(levels, dim=1)[:, place] + gains[:, link]
