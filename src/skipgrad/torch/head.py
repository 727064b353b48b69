"""What every head as a PyTorch module has: its parameters, its losses, and the exact probabilities behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skipgrad import heads
from skipgrad.torch.tables import parameter
from skipgrad.vocab import Vocab

Counts = npt.NDArray[np.int64]
Words: TypeAlias = int | Vocab | Tensor | npt.ArrayLike
Reduction = Literal["none", "sum", "mean"]

BLOCK = 1 << 24  # scores that are in memory at a time: 64 MB in float32, a few times that with what is made of them


class Top(NamedTuple):
    """The likeliest words (..., k): the logarithms of their probabilities, and their ids."""

    log_prob: Tensor
    ids: Tensor


class Head(nn.Module):
    """A head of `skipgrad.heads` as a module: a loss from hidden vectors (..., D) and the ids of target words (...).

    The options of the head are keywords, or a dataclass of skipgrad.heads in their place; the rest is the same for all:

    - words: how many there are, or their counts by id (a Vocab, an array): draws, trees and biases are made of them
    - weight: the output table (V, D) to share, such as `embedding.weight`
    - bias: a tensor (V) to share, False for none, True for one where the head has none
    - sparse: gradients of weight and bias hold only the rows that are scored, for SparseAdam
    - ignore_index, reduction, label_smoothing: as in cross_entropy; the loss of shorter types is in float32

    >>> import skipgrad as sg
    >>> sg.torch.Head.of(16, 1000, sg.heads.Sampled(samples=8))
    SampledSoftmax(16, 1000, Sampled(samples=8, proposal='unigram', exponent=1.0, target='included'))
    """

    kind: ClassVar[Any]
    """The dataclass of options in skipgrad.heads."""
    preset: ClassVar[dict[str, Any]] = {}
    """Options that are other than usual here."""
    smooths: ClassVar[bool] = False
    """Whether label smoothing means something."""
    refusal: ClassVar[str] = ""
    """Why there are no probabilities, where there are none."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        dim: int,
        words: Words,
        head: Any = None,
        *,
        weight: Tensor | None = None,
        bias: Tensor | bool | None = None,
        sparse: bool = False,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        counts, options = _counts(words, options)
        self.head = self._chosen(head, options)
        self.dim, self.words, self.sparse = dim, len(counts), sparse
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing
        self._check()
        if weight is None:
            weight = torch.empty(self.words, dim, device=device, dtype=dtype)
            weight.uniform_(-(dim**-0.5), dim**-0.5)  # as nn.Linear
        if weight.shape != (self.words, dim):
            raise ValueError(f"weight is {_shape(weight)}, but must be ({self.words}, {dim}), a row for each word.")
        self.weight = parameter(weight)
        definition = self.head.define(counts)
        self.bias = self._start_bias(bias, definition.bias)
        self.build(definition)

    @staticmethod
    def of(dim: int, words: Words, head: heads.Head, **module: Any) -> Head:
        """The module of a head that is given by its options, as those of skipgrad.heads are."""
        from skipgrad.torch import HEADS

        return HEADS[head.name](dim, words, head, **module)

    @classmethod
    def _chosen(cls, head: Any, options: dict[str, Any]) -> Any:
        if head is None:
            return cls.kind(**(cls.preset | options))
        if options or not isinstance(head, cls.kind):
            raise TypeError(
                f"{head} and {options} were given, but {cls.__name__} takes either a skipgrad.heads."
                f"{cls.kind.__name__} or its options as keywords."
            )
        return head

    def _check(self) -> None:
        if self.reduction not in ("none", "sum", "mean"):
            raise ValueError(f"reduction is {self.reduction!r}, but must be 'none', 'sum' or 'mean'.")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}, but must be from 0 to less than 1.")
        if self.label_smoothing and not self.smooths:
            raise ValueError(
                f"label_smoothing is {self.label_smoothing}, but the head {self.kind.name} does not score all words, "
                "so that no share can go to them: leave it out, or take ExactSoftmax."
            )

    def _start_bias(self, given: Tensor | bool | None, start: npt.NDArray[np.float64] | None) -> nn.Parameter | None:
        if isinstance(given, Tensor):
            if given.shape != (self.words,):
                raise ValueError(f"bias is {_shape(given)}, but must be ({self.words},), a number for each word.")
            return parameter(given)
        if given is False or (given is None and start is None):
            return None
        values = np.zeros(self.words) if start is None else start[: self.words]
        return nn.Parameter(torch.as_tensor(values, dtype=self.weight.dtype, device=self.weight.device))

    def build(self, definition: Any) -> None:
        """What else the head needs of its definition."""

    def draw(self, generator: torch.Generator | None = None) -> Tensor:
        """The draws (N) that a batch shares; of torch's global generator if none is given. Here there are none."""
        return self.weight.new_zeros(0, dtype=torch.int64)

    def losses(self, hidden: Tensor, target: Tensor, draws: Tensor) -> Tensor:
        """The loss of every prediction (n), from hidden vectors (n, D) and targets (n)."""
        raise NotImplementedError

    def scores(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V), from hidden vectors (n, D); for exact probabilities, which are their softmax."""
        raise NotImplementedError

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Of all words (n, V), normalised by the exact sum, from hidden vectors (n, D)."""
        return F.log_softmax(self.scores(hidden), dim=1)

    def forward(
        self, hidden: Tensor, target: Tensor, draws: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """The loss to be minimised; draws that are given stand in for those of `draw(generator)`."""
        h, o, kept = self._flat(hidden, target)
        losses = self.losses(h, o, self.draw(generator) if draws is None else draws)
        return self._reduced(losses, kept, target.shape)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """The logarithm of the probability of every word (..., V)."""
        if self.refusal:
            raise ValueError(self.refusal)
        return self.log_probabilities(self._rows(hidden)).reshape(*hidden.shape[:-1], self.words)

    @torch.no_grad()
    def exact_loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """-log P(target), normalised over all words, for evaluation: no gradient, and never (n, V) scores at once."""
        h, o, kept = self._flat(hidden, target)
        parts = zip(self._blocks(h), o.split(self._rows_a_block), strict=True)
        losses = torch.cat([-p.gather(1, word[:, None])[:, 0] for p, word in parts])
        return self._reduced(losses, kept, target.shape)

    @torch.no_grad()
    def topk(self, hidden: Tensor, k: int) -> Top:
        """The k likeliest words, the likeliest first."""
        if not 1 <= k <= self.words:
            raise ValueError(f"k is {k}, but must be from 1 to {self.words}, the number of words.")
        found = [torch.topk(p, k) for p in self._blocks(self._rows(hidden))]
        shape = (*hidden.shape[:-1], k)
        values, ids = (torch.cat(parts).reshape(shape) for parts in zip(*found, strict=True))
        return Top(values, ids)

    @torch.no_grad()
    def sample(
        self,
        hidden: Tensor,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """A word (...) drawn for each hidden vector: of the top_k likeliest, or of those with top_p of the probability.

        P^(1/temperature) is drawn from: below 1 likely words are favoured, and at 0 the likeliest is taken.
        """
        if temperature < 0 or not 0 < top_p <= 1 or top_k < 0:
            raise ValueError(
                f"temperature is {temperature}, top_k {top_k} and top_p {top_p}, but must be 0 or more, 0 (all words) "
                "or more, and above 0 up to 1."
            )
        if temperature == 0:
            return self.topk(hidden, 1).ids[..., 0]
        drawn = [_draw(p / temperature, top_k, top_p, generator) for p in self._blocks(self._rows(hidden))]
        return torch.cat(drawn).reshape(hidden.shape[:-1])

    def extra_repr(self) -> str:
        """Sizes and options."""
        return f"{self.dim}, {self.words}, {self.head}"

    @property
    def _rows_a_block(self) -> int:
        return max(1, BLOCK // self.words)

    def _blocks(self, hidden: Tensor) -> Iterator[Tensor]:
        return (self.log_probabilities(part) for part in hidden.split(self._rows_a_block))

    def _rows(self, hidden: Tensor) -> Tensor:
        if hidden.shape[-1:] != (self.dim,):
            raise ValueError(f"hidden is {_shape(hidden)}, but its last dimension must be {self.dim}.")
        return hidden.reshape(-1, self.dim)

    def _flat(self, hidden: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden vectors (n, D), targets (n) with 0 where they are ignored, and whether they are kept."""
        rows = self._rows(hidden)
        if target.shape != hidden.shape[:-1] or target.is_floating_point():
            raise ValueError(
                f"target is {_shape(target)} of {target.dtype}, but must be {_shape(hidden[..., 0])} of torch.int64: "
                "the id of a word for each hidden vector."
            )
        flat = target.reshape(-1).long()
        kept = flat != self.ignore_index
        o = torch.where(kept, flat, 0)
        # Elsewhere than on the CPU the check would wait for the device, whose own check of indices finds it too.
        if not torch.compiler.is_compiling() and o.device.type == "cpu" and ((o < 0) | (o >= self.words)).any():
            worst = int(o.min()) if int(o.min()) < 0 else int(o.max())
            raise ValueError(
                f"target has the id {worst}, but ids are from 0 to {self.words - 1}, or {self.ignore_index} to ignore."
            )
        return rows, o, kept

    def _reduced(self, losses: Tensor, kept: Tensor, shape: torch.Size) -> Tensor:
        losses = torch.where(kept, losses, 0)
        if self.reduction == "none":
            return losses.reshape(shape)
        return losses.sum() if self.reduction == "sum" else losses.sum() / kept.sum()


def _draw(scores: Tensor, top_k: int, top_p: float, generator: torch.Generator | None) -> Tensor:
    """Words (n) from scores (n, V): with exponential e, argmax(p / e) is w with the probability p_w."""
    if top_k:
        least = torch.topk(scores, min(top_k, scores.shape[1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    p = F.softmax(scores, dim=1)
    if top_p < 1:
        sorted_p, order = p.sort(descending=True)
        before = sorted_p.cumsum(1) - sorted_p  # the likeliest word is always kept
        p = p.scatter(1, order, sorted_p.masked_fill(before >= top_p, 0))
    return (p / torch.empty_like(p).exponential_(generator=generator)).argmax(1)


def _counts(words: Words, options: dict[str, Any]) -> tuple[Counts, dict[str, Any]]:
    """Counts by id; a proposal that is an array of them is the unigram's."""
    proposal = options.get("proposal")
    if proposal is not None and not isinstance(proposal, str):
        if not isinstance(words, int) or len(proposal) != words:
            raise ValueError(
                "proposal has counts: give them once, in place of the number of words, or one for each word."
            )
        words, options = proposal, options | {"proposal": "unigram"}
    if isinstance(words, int):
        counts = np.ones(words, np.int64)
    elif isinstance(words, Vocab):
        counts = words.counts
    else:
        counts = np.asarray(words.cpu() if isinstance(words, Tensor) else words)
    if counts.ndim != 1 or len(counts) < 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(
            "words must be how many there are, a Vocab, or whole numbers from 0 on: the count of each word."
        )
    return counts.astype(np.int64), options


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))
