"""Negative sampling, with noise words that a block of tokens shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
        """Tokens a block (T), so that a noise row moves by about 20 gradients at once: T P K / N <= 22."""
        most = 22 * self.draws(window) // (self.negatives * (window + 1))
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


class Token(NamedTuple):
    """A word of a block, the words around it, and the weights of these."""

    word: int
    contexts: Sequence[int]
    weights: Sequence[float]


def step(
    input: Doubles, output: Doubles, groups: Sequence[Sequence[Token]], noise: Sequence[int], negatives: int, lr: float
) -> float:
    """One step of shared negative sampling in float64, in place: the slow twin that judges the kernel.

    loss_i = sum_c -a_ic log sigmoid(v_i . u_c) + K/N sum_n (P_i - m_in) -log sigmoid(-v_i . u_n)

    with the contexts c of token i, their weights a_ic and the sum P_i of these, N noise words n, and m_in the weights
    of the contexts that are n. The residual r = d loss / d score is a (sigmoid(s) - 1) for a context and
    K/N (P_i - m_in) sigmoid(s) for a noise word; then dL/dv_i = sum r u, dL/du = sum r v_i. Input rows, and the scores
    of noise words, are those at the start of the step; a group sees what the contexts before it changed.
    """
    noises, v = np.array(noise), input.copy()
    loss, noise_moves = 0.0, np.zeros((len(noise), input.shape[1]))
    at_start = output[noises]
    for group in groups:
        u = output.copy()
        for word, contexts, weights in group:
            places, a = np.array(contexts, dtype=np.int64), np.array(weights)
            hits = ((noises[:, None] == places[None, :]) * a).sum(axis=1)
            b = negatives / len(noise) * (a.sum() - hits)
            true, false = u[places] @ v[word], at_start @ v[word]
            loss += float((a * np.logaddexp(0, -true)).sum() + (b * np.logaddexp(0, false)).sum())
            pull, push = a * (sigmoid(true) - 1), b * sigmoid(false)
            input[word] -= lr * (pull @ u[places] + push @ u[noises])
            np.subtract.at(output, places, lr * np.outer(pull, v[word]))
            noise_moves += lr * np.outer(push, v[word])
    np.subtract.at(output, noises, noise_moves)
    return loss


def exact_gradient(
    v: Doubles, output: Doubles, contexts: Sequence[int], weights: Sequence[float], q: Doubles, negatives: int
) -> tuple[float, Doubles, Doubles]:
    """The expected loss of one token and its gradients, summed over all words instead of drawn.

    L = sum_c a_c [-log sigmoid(v . u_c) + K sum_{w != c} q_w -log sigmoid(-v . u_w)]; draws of c count 0.
    """
    scores = output @ v
    noise = negatives * sum(weights) * q
    residual = np.zeros_like(scores)
    loss = 0.0
    for c, a in zip(contexts, weights, strict=True):
        noise[c] -= negatives * a * q[c]
        residual[c] += a * (sigmoid(scores[c : c + 1])[0] - 1)
        loss += a * float(np.logaddexp(0, -scores[c]))
    residual += noise * sigmoid(scores)
    loss += float((noise * np.logaddexp(0, scores)).sum())
    return loss, residual @ output, np.outer(residual, v)
