"""Hierarchical softmax: a word is reached by yes-or-no questions on its path through a binary tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.negative import sigmoid
from skipgrad.heads.tree import Tree


@dataclass(frozen=True)
class Hierarchical:
    """The probability of a word is that of the decisions on its path: exact, normalised, and of cost log V.

    P(o | c) = prod_j sigmoid(d_j u_{n(o,j)} . v_c), d_j = 1 where the path of o goes left at its j-th node, else -1

    sigmoid(s) + sigmoid(-s) = 1 at every node, so the probabilities of the leaves sum to one, whatever the tree. It is
    Huffman's: frequent words have short paths. Morin and Bengio 2005; Mikolov et al. 2013, arXiv:1310.4546.
    """

    name: ClassVar[str] = "hierarchical"

    def draws(self, contexts: float) -> int:
        """Nothing is drawn."""
        return 0

    def block(self, contexts: float) -> int:
        """Tokens a block (T): any number, since they share no rows."""
        return 32

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        return Definition(Tree.huffman(counts))


class Definition:
    """loss = sum_c a_c sum_j -log sigmoid(d_j s_j), and d loss / d s_j = a_c (sigmoid(s_j) - [left at j])."""

    bias = None
    q = None

    def __init__(self, tree: Tree) -> None:
        self.tree, self.rows = tree, len(tree)
        self.begins, self.steps = tree.paths()
        self.own_rows = len(self.steps) / max(1, len(tree))  # of words that are equally likely: an upper bound

    def _steps(self, outputs: Ids) -> list[Ids]:
        return [self.steps[self.begins[o] : self.begins[o + 1]].astype(np.int64) for o in outputs]

    def own(self, outputs: Ids) -> Ids:
        """The nodes on the paths, one path after the other."""
        return np.concatenate(self._steps(outputs)) >> 1

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        steps = self._steps(outputs)
        a = np.repeat(weights, [len(path) for path in steps])
        left = np.concatenate(steps) & 1
        loss = a @ np.logaddexp(0, np.where(left, -own, own))
        return Answer(float(loss), a * (sigmoid(own) - left), np.zeros(0))

    def native(self, draws: int) -> dict[str, Any]:
        """The paths."""
        return {"begins": self.begins, "steps": self.steps}

    def log_probabilities(self, scores: Doubles) -> Doubles:
        """Log P of every word (V), from the scores of all nodes."""
        gains = -np.logaddexp(0, np.where(self.steps & 1, -scores[self.steps >> 1], scores[self.steps >> 1]))
        result: Doubles = np.add.reduceat(np.append(gains, 0.0), self.begins[:-1])
        return result
