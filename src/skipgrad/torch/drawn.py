"""Heads that score the true word and N draws, which a batch shares."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skipgrad import heads
from skipgrad.heads.proposal import cumulative
from skipgrad.torch.head import Head
from skipgrad.torch.tables import take, wide

SHARED = 256  # noise words a batch, where the options leave it open: many predictions share them
UNITS = (1 << 62) - 1  # probabilities are whole numbers of 1/UNITS, so that no shorter type changes the distribution


class DrawnHead(Head):
    """A head that draws from q, by exact inversion of its cumulative distribution, one draw from each N-th of it."""

    cumulative: Tensor
    samples: int

    def build(self, definition: Any) -> None:
        """The distribution, and how often it is drawn from."""
        if getattr(self.head, "proposal", "") in ("bigram", "adaptive"):
            raise ValueError(
                f"proposal is {self.head.proposal}, which is made while skipgrad trains on a corpus: a PyTorch module "
                "has 'unigram', 'uniform' and 'log-uniform'."
            )
        if getattr(self.head, "effective", 0) or getattr(self.head, "way", "draws") != "draws":
            raise ValueError("effective and way='counts' work where skipgrad trains on a corpus: leave them out here.")
        units = torch.from_numpy((cumulative(definition.q) >> 2).astype("int64"))
        # No part of the state_dict: it comes from the counts, which the module is made with.
        self.register_buffer("cumulative", units.to(self.weight.device), persistent=False)
        self.samples = getattr(self.head, "samples", 0) or self.head.shared or SHARED

    def draw(self, generator: torch.Generator | None = None) -> Tensor:
        """The draws (N) that a batch shares; of torch's global generator if none is given."""
        device, part = self.cumulative.device, UNITS // self.samples
        within = torch.randint(part, (self.samples,), generator=generator, device=device)
        begins = torch.arange(self.samples, device=device) * part
        return torch.searchsorted(self.cumulative, begins + within, right=True)

    def log_q(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """Log q of words; of one that is never drawn it is that of a unit, -43."""
        below = torch.where(ids > 0, self.cumulative[(ids - 1).clamp(min=0)], 0)
        return (self.cumulative[ids] - below).clamp(min=1).to(dtype).log() - math.log(UNITS)

    def scores_of(self, hidden: Tensor, target: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the targets (n) and of the draws (n, N)."""
        ids = torch.cat([draws, target])
        drawn_rows, own_rows = take(self.weight, ids, self.sparse).split([len(draws), len(target)])
        own, drawn = (wide(hidden) * wide(own_rows)).sum(1), wide(F.linear(hidden, drawn_rows))
        if self.bias is None:
            return own, drawn
        drawn_bias, own_bias = wide(take(self.bias, ids, self.sparse)).split([len(draws), len(target)])
        return own + own_bias, drawn + drawn_bias

    def scores(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V)."""
        return wide(F.linear(hidden, self.weight, self.bias))


class NegativeSampling(DrawnHead):
    """Tells the target from N noise words that the batch shares, each with the weight K/N.

    loss = -log sigmoid(s_o) - K/N sum_n [n is not o] log sigmoid(-s_n), n ~ q ~ count^0.75

    Its scores are no probabilities but s = log P/q - log K, so that exact_loss, topk and sample take P in proportion to
    q exp(s). Mikolov et al. 2013, arXiv:1310.4546.

    >>> NegativeSampling(8, [9, 4, 1], negatives=5, shared=64)
    NegativeSampling(8, 3, Negative(negatives=5, exponent=0.75, shared=64, way='draws'))
    """

    kind = heads.Negative
    refusal = (
        "Negative sampling learns no probabilities: its scores are log P/q - log K. Take exact_loss to compare it, or "
        "NoiseContrastive or SampledSoftmax to learn probabilities."
    )

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        own, drawn = self.scores_of(hidden, target, draws)
        noise = torch.where(draws == target[:, None], 0, -F.logsigmoid(-drawn))
        return -F.logsigmoid(own) + self.head.negatives / len(draws) * noise.sum(1)

    def scores(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V), with log q: their softmax is P where negative sampling has its optimum."""
        scores = super().scores(hidden)
        return scores + self.log_q(torch.arange(self.words, device=scores.device), scores.dtype)


class NoiseContrastive(DrawnHead):
    """Tells the target from noise by the odds of P = exp(s - log Z) against K q, with a log Z that is fixed or learned.

    loss = -log sigmoid(t_o) - K/N sum_n log sigmoid(-t_n), t_w = s_w - log Z - log(K q_w), n ~ q

    learn_log_z: log Z is one more parameter, for all contexts. Gutmann and Hyvarinen 2012; Mnih and Teh 2012,
    arXiv:1206.6426.

    >>> NoiseContrastive(8, [9, 4, 1], negatives=5, learn_log_z=True).log_z.item()
    0.0
    """

    kind = heads.Nce

    def __init__(self, dim: int, words: Any, head: Any = None, *, learn_log_z: bool = False, **rest: Any) -> None:
        super().__init__(dim, words, head, **rest)
        start = self.weight.new_tensor(self.head.log_z)
        self.log_z: Tensor | float = nn.Parameter(start.detach()) if learn_log_z else self.head.log_z

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        own, drawn = self.scores_of(hidden, target, draws)
        less = self.log_z + math.log(self.head.negatives)
        true, false = own - less - self.log_q(target, own.dtype), drawn - less - self.log_q(draws, own.dtype)
        return -F.logsigmoid(true) - self.head.negatives / len(draws) * F.logsigmoid(-false).sum(1)


class ImportanceSoftmax(DrawnHead):
    """The softmax with log Z estimated from N draws: the target is scored exactly, and is in the sum only if drawn.

    loss = log Z^ - s_o, Z^ = sum_{w < H} exp(s_w) + 1/N sum_n exp(s_n) / q_n, n ~ q

    A word that the model makes much likelier than N q is hardly ever drawn, and its score can grow without bound: where
    training diverges, take more samples, or SampledSoftmax. Bengio and Senecal 2003 and 2008.

    >>> ImportanceSoftmax(8, 3, proposal=[9, 4, 1], samples=64).head.proposal
    'unigram'
    """

    kind = heads.Importance
    preset: ClassVar[dict[str, Any]] = {"proposal": "unigram"}

    def draw(self, generator: torch.Generator | None = None) -> Tensor:
        """The words that are summed exactly, and then the draws."""
        drawn = super().draw(generator)
        return torch.cat([torch.arange(self.head.exact, device=drawn.device), drawn])

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        own, drawn = self.scores_of(hidden, target, draws)
        number = len(draws) - self.head.exact
        log_nq = self.log_q(draws[self.head.exact :], own.dtype) + math.log(number)
        return (drawn - F.pad(log_nq, (self.head.exact, 0))).logsumexp(1) - own


class SampledSoftmax(DrawnHead):
    """The softmax over the target and N draws, whose scores are corrected by how often they are expected.

    loss = -t_o + log(exp(t_o) + sum_n exp(t_n)), t_n = s_n - log(N q_n), n ~ q

    With target="included" t_o = s_o, and draws that are o are left out; with target="drawn" t_o = s_o - log(N q_o), and
    none is. Jean et al. 2015, arXiv:1412.2007; Ma and Collins 2018, arXiv:1809.01812.

    >>> SampledSoftmax(8, [9, 4, 1], samples=64).samples
    64
    """

    kind = heads.Sampled

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n)."""
        own, drawn = self.scores_of(hidden, target, draws)
        t = drawn - self.log_q(draws, own.dtype) - math.log(len(draws))
        if self.head.target == "included":
            t = t.masked_fill(draws == target[:, None], -torch.inf)
        else:
            own = own - self.log_q(target, own.dtype) - math.log(len(draws))
        return torch.cat([own[:, None], t], dim=1).logsumexp(1) - own
