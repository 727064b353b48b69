"""Negative sampling, with noise words that a block of tokens shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.proposal import Proposal, check_exponent, cumulative


@dataclass(frozen=True)
class Negative:
    """Tells each true context of a word from K words drawn from q ~ count^exponent.

    loss(c, o) = -log sigmoid(u_o . v_c) - sum_k log sigmoid(-u_k . v_c), with k ~ q.

    The optimum is a shifted pointwise mutual information, u_o . v_c = log P(o | c) / q(o) - log K: scores are good for
    comparing, and are no probabilities. Mikolov et al. 2013, arXiv:1310.4546; Levy and Goldberg 2014.

    >>> Negative(negatives=5).draws(contexts=6)
    24
    """

    name: ClassVar[str] = "negative"

    negatives: int = 5
    """Noise words for each true context (K), 1 to 64."""
    exponent: float = 0.75
    """Noise words are drawn in proportion to count^exponent."""
    shared: int = 0
    """Noise words that a block of tokens shares, a multiple of 8; 0 chooses three quarters of K times the contexts."""
    way: Literal["draws", "counts"] = "draws"
    """Whether noise words are drawn for the pairs of the text; or pairs are counted, and all words are their noise."""

    def __post_init__(self) -> None:
        check_negatives(self.negatives, self.shared)
        check_exponent(self.exponent)
        if self.way not in ("draws", "counts"):
            raise ValueError(f"way is {self.way!r}, but must be 'draws' or 'counts' for negative sampling.")

    def draws(self, contexts: float) -> int:
        """Noise words a block (N): three quarters of what a token with so many contexts would draw, in eights."""
        return self.shared or shared_draws(self.negatives, contexts)

    def block(self, contexts: float) -> int:
        """Tokens a block (T)."""
        return block_of(self.negatives * contexts, self.draws(contexts))

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        return Definition(self.negatives, Proposal("unigram", self.exponent).q(counts))


class Definition:
    """loss = sum_c -a_c log sigmoid(s_c) + K/N sum_n (P - m_n) -log sigmoid(-s_n), P = sum_c a_c.

    N draws stand for K of every pair. m_n sums the weights of the contexts that are n: no word is noise for itself.
    Then d loss / d s_c = a_c (sigmoid(s_c) - 1) and d loss / d s_n = K/N (P - m_n) sigmoid(s_n).
    """

    bias = None
    own_rows = 1.0

    def __init__(self, negatives: int, q: Doubles) -> None:
        self.negatives, self.q, self.rows = negatives, q, len(q)

    def own(self, outputs: Ids) -> Ids:
        """The contexts themselves."""
        return outputs

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        share = self.negatives / max(1, len(draws))
        noise = share * (weights.sum() - ((draws[:, None] == outputs) * weights).sum(axis=1))
        loss = weights @ np.logaddexp(0, -own) + noise @ np.logaddexp(0, drawn)
        return Answer(float(loss), weights * (sigmoid(own) - 1), noise * sigmoid(drawn))

    def native(self, draws: int) -> dict[str, Any]:
        """The distribution, and the share of a draw in each pair."""
        return {"cumulative": cumulative(self.q), "draws": draws, "share": self.negatives / draws}

    def expected(self, outputs: Ids, weights: Doubles, scores: Doubles) -> tuple[float, Doubles]:
        """The mean over draws, of the loss and of the residuals, from the scores of all words.

        L = sum_c a_c [-log sigmoid(s_c) + K sum_{w != c} q_w -log sigmoid(-s_w)]
        """
        noise = self.negatives * weights.sum() * self.q
        residual = np.zeros_like(scores)
        for c, a in zip(outputs, weights, strict=True):
            noise[c] -= self.negatives * a * self.q[c]
            residual[c] += a * (sigmoid(scores[c]) - 1)
        loss = weights @ np.logaddexp(0, -scores[outputs]) + noise @ np.logaddexp(0, scores)
        return float(loss), residual + noise * sigmoid(scores)


def check_negatives(negatives: int, shared: int) -> None:
    """Refuse numbers of noise words that no kernel has room for."""
    if not 1 <= negatives <= 64:
        raise ValueError(f"negatives is {negatives}, but must be from 1 to 64; 5 suits most texts.")
    if shared % 8 or not 0 <= shared <= 1024:
        raise ValueError(f"shared is {shared}, but must be a multiple of 8 up to 1024, or 0 to choose.")


def shared_draws(negatives: int, contexts: float) -> int:
    """Noise words a block (N): three quarters of what a token with so many contexts would draw, in eights."""
    return min(1024, max(8, round(-(-3 * negatives * contexts // 32) * 8)))


def block_of(pulls: float, draws: int) -> int:
    """Tokens a block (T), 8 to 32, so that a drawn row moves by about 20 gradients at once: T P K / N <= 22."""
    return max(8, min(32, int(22 * draws / pulls) // 8 * 8))


def sigmoid(x: Doubles) -> Doubles:
    """1 / (1 + exp(-x))."""
    result: Doubles = np.exp(-np.logaddexp(0.0, -x))
    return result
