"""Draws that depend on the words of a block: half of them are words seen around its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skipgrad.heads.head import Doubles

ENTRIES = 1 << 24  # of all lists together: 128 MB


@dataclass(frozen=True)
class Near:
    """For every word c the words that are seen most often around it, and how often: the bigram part of a proposal.

    q_n = (p_n + 1/T sum_i near(n | c_i)) / 2 for a block of T tokens with the words c_i, p the unigram distribution.

    A word that is likely around c is then drawn at most 2 T times as rarely as P(o | c) says. Draws from p alone can
    miss it by any factor, and the scores of such pairs then grow without bound.
    """

    words: npt.NDArray[np.int32]
    """(V, M), ascending in each row."""
    cumulative: npt.NDArray[np.float32]
    """(V, M), sums of their probabilities; the last is 1."""
    p: Doubles
    """(V) the unigram distribution."""

    @classmethod
    def of(
        cls,
        offsets: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        p: Doubles,
        exact: int = 0,
    ) -> Near:
        """From a sparse matrix of counts by rows: the largest of each, but for the first `exact` words."""
        most = max(8, min(256, len(p), ENTRIES // len(p)))
        words = np.zeros((len(p), most), np.int32)
        cumulative = np.ones((len(p), most), np.float32)
        words[:] = np.arange(most) + exact  # a word that is seen with none: any words will do
        for c in range(len(p)):
            near, count = columns[offsets[c] : offsets[c + 1]], values[offsets[c] : offsets[c + 1]]
            first = int(np.searchsorted(near, exact))
            near, count = near[first:], count[first:]
            if len(near) > most:
                top = np.sort(np.argpartition(count, -most)[-most:])
                near, count = near[top], count[top]
            if len(near):
                words[c, : len(near)], words[c, len(near) :] = near, near[-1]
                sums = np.cumsum(count, dtype=np.float64)
                cumulative[c, : len(near)] = sums / sums[-1]
        return cls(np.minimum(words, len(p) - 1), cumulative, p)

    def q(self, given: Sequence[int]) -> Doubles:
        """The distribution of the draws of a block whose tokens have these words."""
        near = np.zeros(len(self.p))
        for c in given:
            np.add.at(near, self.words[c], np.diff(self.cumulative[c].astype(np.float64), prepend=0.0))
        result: Doubles = (self.p + near / len(given)) / 2
        return result

    def native(self) -> dict[str, Any]:
        """What the native kernel needs to know."""
        return {
            "near_words": self.words,
            "near_cumulative": self.cumulative,
            "near_probability": self.p.astype(np.float32),
        }
