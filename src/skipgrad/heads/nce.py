"""Noise-contrastive estimation: scores that become log probabilities without a sum over the vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.negative import block_of, check_negatives, shared_draws, sigmoid
from skipgrad.heads.proposal import Proposal, check_exponent, cumulative, log_share


@dataclass(frozen=True)
class Nce:
    """Tells a true context from K noise words by the odds log P(w | c) - log(K q_w), P = exp(s_w) taken as normalised.

    loss(c, o) = -log sigmoid(t_o) - sum_k log sigmoid(-t_k), t_w = s_w - log Z - log(K q_w), k ~ q

    As K grows the gradient becomes that of the softmax, and at the optimum exp(s_w - log Z) sums to one. A noise word
    that is the context counts: to mask it, as other libraries do, moves the optimum.
    Gutmann and Hyvarinen 2012; Mnih and Teh 2012, arXiv:1206.6426.

    >>> Nce(negatives=5).draws(contexts=6)
    24
    """

    name: ClassVar[str] = "nce"

    negatives: int = 5
    """Noise words for each true context (K), 1 to 64."""
    exponent: float = 1.0
    """Noise words are drawn in proportion to count^exponent."""
    log_z: float = 0.0
    """The logarithm of the normaliser, the same for every context; the biases of the words can learn what it lacks."""
    learn_z: bool = False
    """Learn log Z too, as one number by which all biases move at once; log_z is then where it starts."""
    shared: int = 0
    """Noise words that a block of tokens shares, a multiple of 8; 0 chooses three quarters of K times the contexts."""

    def __post_init__(self) -> None:
        check_negatives(self.negatives, self.shared)
        check_exponent(self.exponent)
        if not (math.isfinite(self.log_z) and abs(self.log_z) <= 50):
            raise ValueError(f"log_z is {self.log_z}, but must be from -50 to 50; 0 suits most texts.")

    def draws(self, contexts: float) -> int:
        """Noise words a block (N)."""
        return self.shared or shared_draws(self.negatives, contexts)

    def block(self, contexts: float) -> int:
        """Tokens a block (T)."""
        return block_of(self.negatives * contexts, self.draws(contexts))

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        q = Proposal("unigram", self.exponent).q(counts)
        return Definition(self.negatives, q, self.log_z, log_share(counts) + self.log_z)


class Definition:
    """loss = sum_c -a_c log sigmoid(t_c) + K/N P sum_n -log sigmoid(-t_n), P = sum_c a_c; N draws stand for K a pair.

    d loss / d s_c = a_c (sigmoid(t_c) - 1) and d loss / d s_n = K/N P sigmoid(t_n).
    """

    own_rows = 1.0

    def __init__(self, negatives: int, q: Doubles, log_z: float, bias: Doubles) -> None:
        self.negatives, self.q, self.rows, self.bias = negatives, q, len(q), bias
        with np.errstate(divide="ignore"):
            self.offset = -log_z - np.log(negatives * q)

    def own(self, outputs: Ids) -> Ids:
        """The contexts themselves."""
        return outputs

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        noise = weights.sum() * self.negatives / max(1, len(draws))
        true, false = own + self.offset[outputs], drawn + self.offset[draws]
        loss = weights @ np.logaddexp(0, -true) + noise * np.logaddexp(0, false).sum()
        return Answer(float(loss), weights * (sigmoid(true) - 1), noise * sigmoid(false))

    def native(self, draws: int) -> dict[str, Any]:
        """The distribution, the share of a draw in each pair, and what is added to scores."""
        offset = np.nan_to_num(self.offset, posinf=0).astype(np.float32)
        return {"cumulative": cumulative(self.q), "draws": draws, "share": self.negatives / draws, "offset": offset}

    def expected(self, outputs: Ids, weights: Doubles, scores: Doubles) -> tuple[float, Doubles]:
        """The mean over draws, of the loss and of the residuals, from the scores of all words."""
        noise = self.negatives * weights.sum() * self.q
        t = np.where(self.q > 0, scores + np.where(self.q > 0, self.offset, 0), 0)
        residual = noise * sigmoid(t)
        np.add.at(residual, outputs, weights * (sigmoid(t[outputs]) - 1))
        return float(weights @ np.logaddexp(0, -t[outputs]) + noise @ np.logaddexp(0, t)), residual
