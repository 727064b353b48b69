"""Sampled softmax: the softmax over the true word and a sample of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.importance import BLOCK, check_samples
from skipgrad.heads.negative import block_of
from skipgrad.heads.proposal import Name, Proposal, check_proposal, cumulative, log_share


@dataclass(frozen=True)
class Sampled:
    """The softmax over the true word and N draws, each draw's score corrected by the log of how often it is expected.

    loss(c, o) = -t_o + log(exp(t_o) + sum_n exp(t_n)), t_n = s_n - log(N q_n), n ~ q

    With target "included" t_o = s_o, and draws that are o are left out: exp(t_o) + the sum estimates Z without bias,
    since o is in the sum always, and not by chance. With target "drawn" t_o = s_o - log(N q_o) and nothing is left out:
    which of the N + 1 words is the true one; its optimum is the softmax's at any N, and its gradient is not.
    Jean et al. 2015, arXiv:1412.2007; Ma and Collins 2018, arXiv:1809.01812.

    >>> Sampled(samples=64).draws(contexts=6)
    64
    """

    name: ClassVar[str] = "sampled"

    samples: int = 64
    """Words that are drawn for a block of tokens (N), a multiple of 8 up to 8192."""
    proposal: Name = "unigram"
    """The distribution that they are drawn from."""
    exponent: float = 1.0
    """The unigram proposal is q ~ count^exponent."""
    target: Literal["included", "drawn"] = "included"
    """How the true word's score is corrected: not at all, or as if it had been drawn."""

    def __post_init__(self) -> None:
        check_samples(self.samples)
        if self.target == "drawn" and self.proposal == "bigram":
            raise ValueError("target is drawn, but with the bigram proposal no true word's own chance is known: leave one out.")
        if self.proposal == "adaptive":
            raise ValueError("proposal is adaptive, but only the head importance follows the model: choose another.")
        check_proposal(self.proposal, self.exponent)

    def draws(self, contexts: float) -> int:
        """Words that are drawn for a block (N)."""
        return self.samples

    def block(self, contexts: float) -> int:
        """Tokens a block (T)."""
        return BLOCK if self.proposal == "bigram" else block_of(contexts, self.samples)

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        return Definition(
            Proposal(self.proposal, self.exponent).q(counts), self.target == "included", log_share(counts)
        )


class Definition:
    """loss = sum_c a_c [log Z_c - t_c], Z_c = exp(t_c) + sum_n exp(t_n), without the n that are c if c is included.

    d loss / d s_c = a_c (exp(t_c) / Z_c - 1), and d loss / d s_n = sum_c a_c exp(t_n) / Z_c over the c that keep n.
    """

    own_rows = 1.0

    def __init__(self, q: Doubles, included: bool, bias: Doubles) -> None:
        self.q, self.included, self.rows, self.bias = q, included, len(q), bias

    def own(self, outputs: Ids) -> Ids:
        """The contexts themselves."""
        return outputs

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        with np.errstate(divide="ignore"):
            log_nq = np.log(len(draws) * self.q)
        t = drawn - log_nq[draws]
        target = own if self.included else own - log_nq[outputs]
        kept = np.where((outputs[:, None] == draws) & self.included, -np.inf, t)  # (contexts, draws)
        log_z = np.logaddexp(target, np.logaddexp.reduce(kept, axis=1))
        true, false = np.exp(target - log_z), np.exp(kept - log_z[:, None])
        return Answer(float(weights @ (log_z - target)), weights * (true - 1), weights @ false)

    def native(self, draws: int) -> dict[str, Any]:
        """The distribution, what is added to scores, and whether that of the true word is left as it is."""
        offset = -np.log(draws * np.maximum(self.q, 1e-30)).astype(np.float32)
        return {"cumulative": cumulative(self.q), "draws": draws, "offset": offset, "included": self.included}
