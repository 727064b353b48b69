"""Adaptive softmax: a short list of frequent words, and clusters of rare ones behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skipgrad.heads.head import Answer, Counts, Doubles, Ids
from skipgrad.heads.proposal import log_share


@dataclass(frozen=True)
class Adaptive:
    """An exact softmax of two levels: over the short list and the clusters, then within the cluster of the word.

    P(o | c) = P(o) of the short list, or P(cluster of o) P(o | its cluster): each a softmax, so that all sum to one.

    Most words are in the short list, and a cluster is scored only for the tokens that need it. Rows are as long in all
    clusters, since they are what is learned. Grave et al. 2017, arXiv:1609.04309.

    >>> Adaptive(cutoffs=(2000, 10000)).block(contexts=6)
    64
    """

    name: ClassVar[str] = "adaptive"

    cutoffs: tuple[int, ...] = ()
    """Where the short list and the clusters but the last end, as ranks of words; none chooses the cheapest."""

    def __post_init__(self) -> None:
        if list(self.cutoffs) != sorted(set(self.cutoffs)) or any(cut < 1 for cut in self.cutoffs):
            raise ValueError(f"cutoffs are {self.cutoffs}, but must rise from 1 on, such as 2000 10000.")
        if len(self.cutoffs) > 8:
            raise ValueError(f"{len(self.cutoffs)} cutoffs were given, but there are at most 8 clusters.")

    def draws(self, contexts: float) -> int:
        """Nothing is drawn."""
        return 0

    def block(self, contexts: float) -> int:
        """Tokens a block (T): all of them score the short list, whose rows are then read once for many."""
        return 64

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""
        given = tuple(cut for cut in self.cutoffs if cut < len(counts))
        if self.cutoffs and not given:
            raise ValueError(
                f"cutoffs are {self.cutoffs}, but there are only {len(counts):,} words: give smaller ones."
            )
        return Definition(counts, given or cheapest_cutoffs(counts))


class Definition:
    """loss = sum_c a_c [log Z_0 - s_f(c)] + sum over c in a cluster k of a_c [log Z_k - s_c].

    f(c) is c in the short list, and the row V + k of its cluster elsewhere. Z_0 sums exp(s) over the short list and the
    clusters, Z_k over the words of cluster k. d loss / d s is P softmax - a on the first level, and on the second the
    same with the weights of the cluster's words.
    """

    q = None

    def __init__(self, counts: Counts, cutoffs: tuple[int, ...]) -> None:
        self.words = len(counts)
        self.ends = np.array([*cutoffs, self.words])
        self.rows = self.words + len(cutoffs)
        self.own_rows = float(self.ends[0]) + len(cutoffs)
        clusters = [np.log(np.maximum(counts[a:b], 1).sum()) for a, b in zip(self.ends, self.ends[1:], strict=False)]
        self.bias = np.append(log_share(counts), np.array(clusters) - np.log(np.maximum(counts, 1).sum()))

    def levels(self) -> list[npt.NDArray[np.int64]]:
        """The rows of each softmax: the short list with the clusters' rows, then every cluster."""
        short = np.append(np.arange(self.ends[0]), np.arange(self.words, self.rows))
        return [short, *(np.arange(a, b) for a, b in zip(self.ends, self.ends[1:], strict=False))]

    def own(self, outputs: Ids) -> Ids:
        """The short list, the rows of clusters, and the clusters that the words are in."""
        used = {0, *np.searchsorted(self.ends, outputs, side="right").tolist()}
        return np.concatenate([self.levels()[level] for level in sorted(used)])

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals."""
        of = np.searchsorted(self.ends, outputs, side="right")
        first = np.where(of == 0, outputs, self.ends[0] + of - 1)
        loss, residuals, begin = 0.0, [], 0
        for level in sorted({0, *of.tolist()}):
            scores = own[begin : begin + len(self.levels()[level])]
            begin += len(scores)
            targets, a = (first, weights) if level == 0 else (outputs - self.ends[level - 1], weights * (of == level))
            log_z = np.logaddexp.reduce(scores)
            residual = a.sum() * np.exp(scores - log_z)
            inside = a > 0
            np.subtract.at(residual, targets[inside], a[inside])
            loss += float(a.sum() * log_z - a[inside] @ scores[targets[inside]])
            residuals.append(residual)
        return Answer(loss, np.concatenate(residuals), np.zeros(0))

    def native(self, draws: int) -> dict[str, Any]:
        """Where the levels end."""
        return {"ends": self.ends.astype(np.int64)}

    def log_probabilities(self, scores: Doubles) -> Doubles:
        """Log P of every word (V), from the scores of all rows."""
        short, *clusters = self.levels()
        first = scores[short] - np.logaddexp.reduce(scores[short])
        parts = [scores[rows] - np.logaddexp.reduce(scores[rows]) for rows in clusters]
        behind = [first[self.ends[0] + k] + part for k, part in enumerate(parts)]
        return np.concatenate([first[: self.ends[0]], *behind])


def cheapest_cutoffs(counts: Counts) -> tuple[int, ...]:
    """One to three cutoffs that make the fewest rows a prediction: H + clusters + sum_k P(cluster k) (its words)."""
    words = len(counts)
    below = np.append(0.0, np.cumsum(np.maximum(counts, 1), dtype=np.float64))
    below /= below[-1]
    grid = np.unique(np.geomspace(1, max(1, words - 1), 40).astype(int))
    best = np.inf
    chosen: tuple[int, ...] = ()
    for clusters in (1, 2, 3):
        for cuts in _rising(grid, clusters):
            ends = np.append(cuts, words)
            cost = ends[0] + clusters + ((below[ends[1:]] - below[ends[:-1]]) * np.diff(ends)).sum()
            if cost < best:
                best, chosen = cost, tuple(int(cut) for cut in cuts)
    return chosen


def _rising(grid: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """All rising choices of `size` numbers of the grid."""
    from itertools import combinations

    return np.array(list(combinations(grid.tolist(), size)), np.int64).reshape(-1, size)
