"""Binary trees over a vocabulary: a word is a leaf, and its path from the root a sequence of decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skipgrad.heads.head import Counts, Ids

Links = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tree:
    """A tree with the words as leaves and V - 1 inner nodes; node 0 is the root.

    links (V, 2): 2 parent + side of word w, and of node w; side 1 is left. The root, and node V - 1, have -1.
    """

    links: Links

    @classmethod
    def huffman(cls, counts: Counts) -> Tree:
        """The tree whose mean path is shortest: the two rarest are joined until one is left (Huffman 1952).

        Nodes are numbered from the root down in the order of their counts, so that what is used most lies together.

        >>> Tree.huffman(np.array([8, 4, 2, 1])).path(3)
        [(0, 1), (1, 1), (2, 1)]
        """
        words = len(counts)
        weight = np.concatenate([np.maximum(counts, 1), np.zeros(max(0, words - 1), np.int64)]).tolist()
        leaves = iter([*np.argsort(-np.asarray(counts), kind="stable")[::-1].tolist(), -1])
        links = np.full((words, 2), -1, np.int32)
        leaf, oldest = next(leaves), words
        for node in range(words, 2 * words - 1):
            number = 2 * words - 2 - node
            for side in (1, 0):
                if oldest == node or (leaf >= 0 and weight[leaf] <= weight[oldest]):
                    child, leaf = leaf, next(leaves)
                    links[child, 0] = 2 * number + side
                else:
                    child, oldest = oldest, oldest + 1
                    links[2 * words - 2 - child, 1] = 2 * number + side
                weight[node] += weight[child]
        return cls(links)

    def __len__(self) -> int:
        return len(self.links)

    def path(self, word: int) -> list[tuple[int, int]]:
        """The nodes from the root to a word, and for each whether the path goes left (1) or right (0)."""
        steps, link = [], int(self.links[word, 0])
        while link >= 0:
            steps.append((link >> 1, link & 1))
            link = int(self.links[link >> 1, 1])
        return steps[::-1]

    def paths(self) -> tuple[Ids, Links]:
        """All paths, one behind the other: begins (V + 1), and 2 node + side of each step from the root down."""
        link = self.links[:, 0]
        columns = []
        while (link >= 0).any():
            columns.append(link)
            link = np.where(link >= 0, self.links[np.maximum(link, 0) >> 1, 1], -1)
        if not columns:
            return np.zeros(len(self) + 1, np.int64), np.zeros(0, np.int32)
        upward = np.stack(columns[::-1], axis=1)  # (V, longest), -1 before the root
        kept = upward >= 0
        begins = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
        return begins, upward[kept].astype(np.int32)
