"""Negative sampling, with noise words that a block of tokens shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Negative:
    """Tells each true context of a word from K words drawn from q ~ count^exponent.

    loss(c, o) = -log sigmoid(u_o . v_c) - sum_k log sigmoid(-u_k . v_c), with k ~ q.

    The optimum is a shifted pointwise mutual information, u_o . v_c = log P(o | c) / q(o) - log K: scores are good for
    comparing, and are no probabilities. Mikolov et al. 2013, arXiv:1310.4546; Levy and Goldberg 2014.

    >>> Negative(negatives=5).draws(window=5)
    24
    """

    name: ClassVar[str] = "negative"

    negatives: int = 5
    """Noise words for each true context (K), 1 to 64."""
    exponent: float = 0.75
    """Noise words are drawn in proportion to count^exponent."""
    shared: int = 0
    """Noise words that a block of tokens shares, a multiple of 8; 0 chooses three quarters of K times the contexts."""

    def __post_init__(self) -> None:
        if not 1 <= self.negatives <= 64:
            raise ValueError(f"negatives is {self.negatives}, but must be from 1 to 64; 5 suits most texts.")
        if not (math.isfinite(self.exponent) and -2 <= self.exponent <= 2):
            raise ValueError(f"exponent is {self.exponent}, but must be from -2 to 2; 0.75 suits most texts.")
        if self.shared % 8 or not 0 <= self.shared <= 1024:
            raise ValueError(f"shared is {self.shared}, but must be a multiple of 8 up to 1024, or 0 to choose.")

    def draws(self, window: int) -> int:
        """Noise words a block (N): three quarters of what a token would draw for itself, K (window + 1), in eights."""
        return self.shared or min(1024, -(-3 * self.negatives * (window + 1) // 32) * 8)

    def block(self, window: int) -> int:
        """Tokens a block (T), so that a noise row moves by at most about 40 gradients at once: T P K / N <= 40."""
        most = 40 * self.draws(window) // (self.negatives * (window + 1))
        return max(8, min(32, most // 8 * 8))

    def noise(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The cumulative distribution of the noise words, in units of 2^-64."""
        weights = np.where(counts > 0, np.maximum(counts, 1).astype(np.float64) ** self.exponent, 0.0)
        cumulative = np.cumsum(weights)
        scaled = np.minimum(cumulative * (2.0**64 / cumulative[-1]), np.nextafter(2.0**64, 0))
        units: npt.NDArray[np.uint64] = scaled.astype(np.uint64)
        units[cumulative >= cumulative[-1]] = np.iinfo(np.uint64).max
        return units


def sigmoid(x: Doubles) -> Doubles:
    """1 / (1 + exp(-x))."""
    return np.exp(-np.logaddexp(0.0, -x))


def step(
    input: Doubles,
    output: Doubles,
    tokens: Sequence[int],
    contexts: Sequence[Sequence[int]],
    noise: Sequence[int],
    negatives: int,
    lr: float,
) -> float:
    """One step of shared negative sampling in float64, in place: the slow twin that judges the kernel.

    loss_i = sum_c -log sigmoid(v_i . u_c) + K/N sum_n (P_i - m_in) -log sigmoid(-v_i . u_n)

    with P_i contexts c of token i, N noise words n, and m_in the number of times that n is a context of i. The residual
    r = d loss / d score is sigmoid(s) - 1 for a context and K/N (P_i - m_in) sigmoid(s) for a noise word; then
    dL/dv_i = sum r u, dL/du = sum r v_i. Scores and rows are those at the start of the step.
    """
    v, u = input[list(tokens)], output.copy()
    loss = 0.0
    for i, (token, words) in enumerate(zip(tokens, contexts, strict=True)):
        places, noises = np.array(words, dtype=np.int64), np.array(noise)
        hits = (noises[:, None] == places[None, :]).sum(axis=1)
        weights = negatives / len(noise) * (len(words) - hits)
        true, false = u[places] @ v[i], u[noises] @ v[i]
        loss += float(np.logaddexp(0, -true).sum() + (weights * np.logaddexp(0, false)).sum())
        rows = np.concatenate([places, noises])
        residual = np.concatenate([sigmoid(true) - 1, weights * sigmoid(false)])
        input[token] -= lr * residual @ u[rows]
        np.subtract.at(output, rows, lr * np.outer(residual, v[i]))
    return loss


def exact_gradient(
    v: Doubles, output: Doubles, contexts: Sequence[int], q: Doubles, negatives: int
) -> tuple[float, Doubles, Doubles]:
    """The expected loss of one token and its gradients, summed over all words instead of drawn.

    L = sum_c [-log sigmoid(v . u_c) + K sum_{w != c} q_w -log sigmoid(-v . u_w)]: draws that hit the context count 0.
    """
    scores = output @ v
    weights = negatives * (len(contexts) * q)
    residual = np.zeros_like(scores)
    loss = 0.0
    for c in contexts:
        weights[c] -= negatives * q[c]
        residual[c] += sigmoid(scores[c : c + 1])[0] - 1
        loss += float(np.logaddexp(0, -scores[c]))
    residual += weights * sigmoid(scores)
    loss += float((weights * np.logaddexp(0, scores)).sum())
    return loss, residual @ output, np.outer(residual, v)
