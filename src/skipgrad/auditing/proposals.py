"""Distributions that an audit draws from: those of the heads, and some that depend on the context or on the model."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from skipgrad.auditing.exact import Model
from skipgrad.auditing.probe import Text, inverted, keeps
from skipgrad.heads.head import Doubles, Ids
from skipgrad.heads.proposal import Proposal, check_exponent
from skipgrad.vectors import Vectors

NAMES = "unigram, unigram^0.75, uniform, log-uniform, thinned, bigram, adaptive, softmax"
ADAPTING, AT_ONCE, DRAWN = 300, 32, 512  # steps of the adaptive proposal before it is used, predictions, draws of each
RATE = 0.02  # of the moving average: it remembers some 50 steps


class Source(Protocol):
    """A distribution of draws for each context."""

    name: str

    def q(self, contexts: Ids, p: Doubles) -> Doubles:
        """Probabilities (C, V), for contexts whose exact softmax is p (C, V)."""


class Fixed:
    """The same distribution for every context."""

    def __init__(self, name: str, q: Doubles) -> None:
        self.name, self._q = name, q

    def q(self, contexts: Ids, p: Doubles) -> Doubles:
        """Probabilities (C, V)."""
        return np.broadcast_to(self._q, (len(contexts), len(self._q)))


class Bigram:
    """q(w | c) = m unigram(w) + (1 - m) N(c, w) / n_c, with the counts N of neighbors in a text.

    The unigram keeps every word within reach, so that no weight p/q is without bound. Bengio and Senecal 2008.
    """

    def __init__(self, text: Text, unigram: Doubles, keep: Doubles, mixture: float) -> None:
        self.name, self.text, self.unigram, self.keep, self.mixture = "bigram", text, unigram, keep, mixture

    def q(self, contexts: Ids, p: Doubles) -> Doubles:
        """Probabilities (C, V); the unigram alone for a word that the text has not."""
        counts = self.text.neighbors(contexts, self.keep)
        totals = counts.sum(axis=1, keepdims=True)
        near = np.where(totals > 0, counts / np.maximum(totals, 1e-300), self.unigram)
        result: Doubles = self.mixture * self.unigram + (1 - self.mixture) * near
        return result


class Softmax:
    """q = p: what no sampler betters, and none can afford. All weights are equal, and a weighted mean has no bias."""

    name = "softmax"

    def q(self, contexts: Ids, p: Doubles) -> Doubles:
        """The exact softmax itself."""
        return p


def source(name: str, vectors: Vectors, model: Model, text: Text | None, mixture: float, seed: int) -> Source:
    """The distribution of that name."""
    counts = vectors.vocab.counts
    unigram = Proposal("unigram").q(counts)
    if name in ("unigram", "uniform", "log-uniform"):
        return Fixed(name, Proposal(name).q(counts))  # type: ignore[arg-type]
    if name.startswith("unigram^"):
        return Fixed(name, Proposal("unigram", _exponent(name)).q(counts))
    if name == "thinned":
        kept = unigram * keeps(vectors)
        return Fixed(name, kept / kept.sum())
    if name == "bigram":
        if text is None:
            raise ValueError(
                "the proposal bigram counts neighbors in a text: give one with --text, or text= in Python."
            )
        return Bigram(text, unigram, keeps(vectors), mixture)
    if name == "adaptive":
        return Fixed(name, adapted(model, unigram, unigram * keeps(vectors), mixture, np.random.default_rng([seed, 7])))
    if name == "softmax":
        return Softmax()
    raise ValueError(f"the proposal {name!r} is not known; there are {NAMES}.")


def adapted(model: Model, unigram: Doubles, centres: Doubles, mixture: float, random: np.random.Generator) -> Doubles:
    """Mix a share m of the unigram with a moving average of the model's own weights over past draws (V).

    w_i = (p_i/q_i) / sum_j (p_j/q_j), i ~ q;  average <- (1 - r) average + r w, at each of its words

    The weights of a prediction add up to its softmax in the mean, so the average follows the softmax over all contexts.
    Bengio and Senecal 2008 keep one for each context of an n-gram; this one is for all contexts.
    """
    average, q, log_q = unigram.copy(), unigram, np.log(np.maximum(unigram, 1e-300))
    centre_sums = np.cumsum(centres)
    for _ in range(ADAPTING):
        draws = inverted(np.cumsum(q), random, (AT_ONCE, DRAWN))
        average *= 1 - RATE
        for h, drawn in zip(model.hidden(inverted(centre_sums, random, AT_ONCE)), draws, strict=True):
            t = model.rows(drawn) @ h + model.bias[drawn] - log_q[drawn]
            np.add.at(average, drawn, RATE / len(draws) * np.exp(t - np.logaddexp.reduce(t)))
        q = mixture * unigram + (1 - mixture) * average
        log_q = np.log(np.maximum(q, 1e-300))
    result: Doubles = q / q.sum()
    return result


def _exponent(name: str) -> float:
    try:
        exponent = float(name.removeprefix("unigram^"))
    except ValueError:
        raise ValueError(
            f"the proposal {name!r} has no number for an exponent; expected for example unigram^0.75."
        ) from None
    check_exponent(exponent)
    return exponent
