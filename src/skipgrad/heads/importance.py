"""The softmax with its negative phase estimated by biased importance sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.negative import block_of
from skipgrad.heads.proposal import Name, Proposal, check_proposal, cumulative, log_share

BLOCK = 16  # tokens that share near words: a likely word is drawn at most twice so many times as rarely as it should be


@dataclass(frozen=True)
class Importance:
    """The exact softmax's positive phase, and its negative phase as a weighted mean over N draws from q.

    d log P(o | c) = d s_o - sum_i w_i d s_i, w_i = (p_i/q_i) / sum_j (p_j/q_j), p = exp(s), i ~ q

    The mean over p needs a sum over the vocabulary; the weighted mean over draws needs none, and its bias falls as 1/N.
    Bengio and Senecal 2003 and 2008, "Adaptive importance sampling to accelerate training of a neural probabilistic
    language model".

    A word that the model makes much more likely than N q is hardly ever drawn, and its score grows without bound: with
    draws from the unigram distribution this head diverges on real text, with the bigram proposal it does not.

    >>> Importance(samples=64).draws(contexts=6)
    64
    """

    name: ClassVar[str] = "importance"

    samples: int = 64
    """Words that are drawn for a block of tokens (N), a multiple of 8 up to 8192."""
    proposal: Name = "bigram"
    """The distribution that they are drawn from."""
    exponent: float = 1.0
    """The unigram proposal is q ~ count^exponent."""
    exact: int = 0
    """So many of the most frequent words are summed exactly, and only the others are drawn; a multiple of 8."""
    effective: float = 0.0
    """Keep the effective sample size above this by drawing more, up to 8192 words; 0 keeps N as it is."""

    @property
    def cure(self) -> str:
        """What helps where training diverges, beside a smaller learning rate."""
        missed = f", or draws of {self.proposal} miss words that the model makes likely"
        return "" if self.proposal == "bigram" else f"{missed}: take --proposal bigram, or the head sampled"

    def __post_init__(self) -> None:
        check_samples(self.samples)
        check_proposal(self.proposal, self.exponent)
        if self.exact % 8 or not 0 <= self.exact <= 8192:
            raise ValueError(f"exact is {self.exact}, but must be a multiple of 8 up to 8192, or 0 to draw all words.")
        if not 0 <= self.effective <= 8192:
            raise ValueError(f"effective is {self.effective}, but must be from 1 to 8192, or 0 for a fixed N.")

    def draws(self, contexts: float) -> int:
        """Rows a block that are not its own: those that are summed exactly, and the draws."""
        return self.exact + self.samples

    def block(self, contexts: float) -> int:
        """Tokens a block (T)."""
        return BLOCK if self.proposal == "bigram" else block_of(contexts, self.samples)

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        if self.exact >= len(counts):
            raise ValueError(
                f"exact is {self.exact}, but there are only {len(counts):,} words: give less, or take the softmax head."
            )
        q = Proposal(self.proposal, self.exponent).q(counts)
        q[: self.exact] = 0
        return Definition(q / q.sum(), self.exact, log_share(counts))


class Definition:
    """loss = sum_c -a_c s_c + P log Z^, Z^ = sum_{w < H} exp(s_w) + 1/N sum_n exp(s_n) / q_n, P = sum_c a_c.

    The draws are the H words that are summed exactly, and then the N that were drawn from the others.
    d loss / d s_c = -a_c, and d loss / d s_n = P w_n, w_n = exp(t_n) / Z^, t_n = s_n - log(N q_n).
    """

    own_rows = 1.0

    def __init__(self, q: Doubles, exact: int, bias: Doubles) -> None:
        self.q, self.exact, self.rows, self.bias = q, exact, len(q), bias
        self.unigram = self.model = q

    def follow(self, mass: Doubles) -> None:
        """Moves the proposal towards what the model gave to each word; a tenth stays with the unigram distribution."""
        self.model = 0.9 * self.model + 0.1 * mass / mass.sum()
        q = 0.9 * self.model + 0.1 * self.unigram
        q[: self.exact] = 0
        self.q = q / q.sum()

    def own(self, outputs: Ids) -> Ids:
        """The contexts themselves."""
        return outputs

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        t = drawn + offsets(self.q, draws, self.exact)
        log_z = np.logaddexp.reduce(t)
        pairs = weights.sum()
        return Answer(float(pairs * log_z - weights @ own), -weights, pairs * np.exp(t - log_z))

    def native(self, draws: int) -> dict[str, Any]:
        """The distribution, how many words are summed exactly, and what is added to the scores of draws."""
        offset = -np.log((draws - self.exact) * np.maximum(self.q, 1e-30)).astype(np.float32)
        return {
            "cumulative": cumulative(self.q),
            "draws": draws,
            "exact": self.exact,
            "offset": offset,
            "included": True,
        }


def offsets(q: Doubles, draws: Ids, exact: int) -> Doubles:
    """-log(N q) of the draws; 0 of the words before them that are summed exactly."""
    number = len(draws) - exact
    result: Doubles = np.where(np.arange(len(draws)) < exact, 0.0, -np.log(number * np.maximum(q[draws], 1e-300)))
    return result


def check_samples(samples: int) -> None:
    """Refuse numbers of draws that no kernel has room for."""
    if samples % 8 or not 8 <= samples <= 8192:
        raise ValueError(f"samples is {samples}, but must be a multiple of 8 from 8 to 8192; 64 suits most texts.")
