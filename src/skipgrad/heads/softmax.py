"""The exact softmax over all words, and negative sampling without noise: heads that score the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.proposal import log_share


@dataclass(frozen=True)
class Softmax:
    """Predicts the context word as one of all words: a probability, with nothing sampled.

    loss(c, o) = -log softmax(U v_c + b)_o = log sum_w exp(u_w . v_c + b_w) - (u_o . v_c + b_o)

    With y_hat = softmax(U v_c + b) and y the one at o, dJ/dv_c = U^T (y_hat - y) and dJ/dU = (y_hat - y) v_c^T. The
    bias b starts at the logarithm of the share of each word. The text matters only through the counts N(c, o).
    Bengio et al. 2003; Mikolov et al. 2013, arXiv:1301.3781, whose heads stand in for this one.

    >>> Softmax().way
    'counts'
    """

    name: ClassVar[str] = "softmax"

    way: Literal["counts", "stream"] = "counts"
    """Whether pairs are counted once and learned from their counts, or learned from as they come in the text."""
    warmup: int = 3
    """Epochs of negative sampling that the tables start from, where pairs are counted; 0 starts from small numbers."""

    def draws(self, contexts: float) -> int:
        """Nothing is drawn."""
        return 0

    def block(self, contexts: float) -> int:
        """Tokens a block (T), where the text is streamed: all of them score the table, whose rows are read once."""
        return 48

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        return Definition(counts)

    def __post_init__(self) -> None:
        if self.way not in ("counts", "stream"):
            raise ValueError(f"way is {self.way!r}, but must be 'counts' or 'stream'.")
        if not 0 <= self.warmup <= 100:
            raise ValueError(f"warmup is {self.warmup}, but must be from 0 to 100; 3 suits most texts.")


class Definition:
    """loss = P log sum_w exp(s_w) - sum_c a_c s_c over all words w, P = sum_c a_c; d loss / d s = P softmax(s) - a."""

    q = None

    def __init__(self, counts: Counts) -> None:
        self.rows, self.bias, self.own_rows = len(counts), log_share(counts), float(len(counts))

    def own(self, outputs: Ids) -> Ids:
        """All words."""
        return np.arange(self.rows)

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        log_z = np.logaddexp.reduce(own)
        residual = weights.sum() * np.exp(own - log_z)
        np.subtract.at(residual, outputs, weights)
        return Answer(float(weights.sum() * log_z - weights @ own[outputs]), residual, np.zeros(0))

    def native(self, draws: int) -> dict[str, Any]:
        """One level, of all words."""
        return {"ends": np.array([self.rows], np.int64)}

    def log_probabilities(self, scores: Doubles) -> Doubles:
        """Log P of every word (V), from their scores."""
        result: Doubles = scores - np.logaddexp.reduce(scores)
        return result


class Gradients(NamedTuple):
    """A loss, in nats, and its gradients."""

    loss: float
    hidden: Doubles
    rows: Doubles
    bias: Doubles


def softmax(hidden: Doubles, rows: Doubles, bias: Doubles, pairs: Doubles) -> Gradients:
    """The loss of hidden vectors (n, D) that saw words with the weights pairs (n, V), in float64: it judges the kernel.

    J = sum_i [n_i log sum_o exp(s_io) - sum_o N_io s_io],  s = h U^T + b, n_i = sum_o N_io; r = n_i softmax(s_i) - N_i.
    """
    scores = hidden @ rows.T + bias
    lse = np.logaddexp.reduce(scores, axis=1, keepdims=True)
    total = pairs.sum(axis=1, keepdims=True)
    residual = total * np.exp(scores - lse) - pairs
    return _gradients(float((total * lse).sum() - (pairs * scores).sum()), residual, hidden, rows)


def logistic(hidden: Doubles, rows: Doubles, bias: Doubles, pairs: Doubles, noise: Doubles) -> Gradients:
    """The same for negative sampling in expectation, with noise (V) = K q instead of K draws from q.

    J = -sum_io [N_io log sigmoid(s_io) + n_i K q_o log sigmoid(-s_io)];  r = (N + n K q) sigmoid(s) - N.
    """
    scores = hidden @ rows.T + bias
    weights = pairs + pairs.sum(axis=1, keepdims=True) * noise
    loss = float((weights * np.logaddexp(0, scores)).sum() - (pairs * scores).sum())
    return _gradients(loss, weights * np.exp(-np.logaddexp(0, -scores)) - pairs, hidden, rows)


def _gradients(loss: float, residual: Doubles, hidden: Doubles, rows: Doubles) -> Gradients:
    return Gradients(loss, residual @ rows, residual.T @ hidden, residual.sum(axis=0))
