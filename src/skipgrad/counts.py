"""How often words are seen together: the expected counts of pairs, with subsampling and windows taken exactly."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from skipgrad import _native
from skipgrad.corpus import Corpus, cores
from skipgrad.parameters import keep_thresholds
from skipgrad.training import mix

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Part = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Floats]

_PLACE = 8  # bytes of a place of a word while its row is made
_PENDING = 16  # jobs at most whose rows wait to be taken
_ENTRY = 3 * 8  # bytes of an entry of the triangle: itself, and twice in the whole matrix


@dataclass(frozen=True)
class Matrix:
    """A symmetric sparse matrix: row c has values[k] in columns[k], k = offsets[c] .. offsets[c + 1] - 1, ascending."""

    offsets: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sums(self) -> Doubles:
        """The sum of each row (V)."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.values, dtype=np.float64)])
        return np.diff(cumulative[self.offsets])

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(self.values.sum(dtype=np.float64))

    def rows(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """The row of each entry of rows begin .. end - 1."""
        return np.repeat(np.arange(begin, end), np.diff(self.offsets[begin : end + 1]))


class Counts:
    """N(c, o): how often word o is expected in the window of word c.

    N(c, o) = sum over places i of c and j of o in a sentence: k_c k_o E[a_{1 + m}],  a_d = max(0, 1 - (d - 1) / window)

    A token of word w is kept with the probability k_w that subsampling gives it, and m is how many tokens between i and
    j are kept: those that are not make no distance, as in word2vec. So the matrix holds the mean over all draws of
    subsampled texts and of windows, to which an epoch of training is one draw.

    >>> corpus = Corpus.build([["a", "rose", "is", "a", "rose"]], min_count=1)
    >>> counts = Counts.build(corpus, window=2, sample=0)
    >>> list(corpus.vocab), counts["a", "rose"], counts["a", "is"], counts["rose", "rose"]
    (['a', 'rose', 'is'], 2.5, 1.5, 0.0)
    """

    def __init__(
        self, corpus: Corpus, trained: Matrix, heldout: Matrix | None, dropped: float = 0.0, least: float = 0.0
    ) -> None:
        self.vocab = corpus.vocab
        self.trained = trained
        self.heldout = heldout
        self.dropped = dropped
        """The share of all pairs that was left out because their counts were below `least`, to stay within memory."""
        self.least = least

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        window: int = 5,
        sample: float = 1e-3,
        heldout: float = 0.0,
        seed: int = 1,
        threads: int = 0,
        memory: int = 4000,
        callback: Callable[[float], None] | None = None,
    ) -> Counts:
        """Counts the pairs of a corpus.

        `window`, `sample`, `heldout` and `seed` are those of the model and its training, and hold out the same
        sentences. `threads`: 0 takes one for each core; the counts are the same on any number. `memory`: megabytes
        that counting takes at most, the mapped text aside; where there are too many counts, the smallest are left out.
        `callback` is told the share done.
        """
        if memory < 1:
            raise ValueError(f"memory is {memory}, but must be a positive number of megabytes; 4000 suits most texts.")
        keep = (keep_thresholds(corpus.vocab.counts, sample) / (2**32 - 1)).astype(np.float32)
        counter = _native.CooccurrenceCounter(corpus.ids, keep, window, mix(seed, -2, 0), heldout)
        gathered = [_Triangle() for _ in range(2 if heldout else 1)]
        budget = memory * 1_000_000
        with ThreadPoolExecutor(threads or cores()) as pool:
            try:
                for begin, end in _slabs(corpus.vocab.counts, budget // 4 // _PLACE):
                    counter.find(begin, end)
                    for held, triangle in enumerate(gathered):
                        most = (budget - budget // 4) // _ENTRY // len(gathered)
                        triangle.add_all(pool, counter, _cuts(corpus.vocab.counts, begin, end), bool(held), most)
                    if callback:
                        callback(end / len(corpus.vocab))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        del counter
        corpus.forget(0, len(corpus.ids))
        matrices = [triangle.matrix() for triangle in gathered]
        dropped = gathered[0].dropped / max(gathered[0].dropped + matrices[0].total, 1e-30)
        return cls(corpus, matrices[0], matrices[1] if heldout else None, dropped, gathered[0].least)

    @property
    def total(self) -> float:
        """The pairs that are trained on: the weights of all, summed."""
        return self.trained.total

    @cached_property
    def nats(self) -> float:
        """The loss of a pair, in nats, for who knows every count: no model has a lower one on what it is trained on.

        sum_co N(c, o) log(n_c / N(c, o)) / sum_co N(c, o)
        """
        values = self.trained.values.astype(np.float64)
        sums = self.trained.sums
        log_sums = float((sums * np.log(np.maximum(sums, 1e-300))).sum())
        return (log_sums - float((values * np.log(values)).sum())) / max(self.total, 1e-300)

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """The count of a center and a context."""
        row, column = (self.vocab.index(word) for word in pair)
        begin, end = self.trained.offsets[row : row + 2]
        at = begin + np.searchsorted(self.trained.columns[begin:end], column)
        return float(self.trained.values[at]) if at < end and self.trained.columns[at] == column else 0.0

    def __repr__(self) -> str:
        return f"Counts({len(self.vocab):,} words, {len(self.trained.values):,} counts, {self.total:,.0f} pairs)"


class _Triangle:
    """The rows that are done, up to the diagonal; the smallest entries go when there is no room for more."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.dropped = 0.0  # both halves of the matrix
        self.least = 0.0

    def add_all(self, pool: ThreadPoolExecutor, counter: Any, cuts: list[int], heldout: bool, most: int) -> None:
        """Appends the rows between the cuts, made on threads."""
        pending: deque[Future[Any]] = deque()
        for begin, end in itertools.pairwise(cuts):
            pending.append(pool.submit(counter.rows, begin, end, heldout, self.least))
            if len(pending) > _PENDING:
                self.add(pending.popleft().result(), most)
        for job in pending:
            self.add(job.result(), most)

    def add(self, rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Floats, float], most: int) -> None:
        """Appends rows; keeps at most so many entries."""
        self.dropped += 2 * rows[3]
        self.parts.append(self._without_small(rows[:3]))
        while sum(len(values) for _, _, values in self.parts) > most:
            middle = float(np.median(np.concatenate([values[::16] for _, _, values in self.parts])))
            self.least = float(np.nextafter(np.float32(max(middle, self.least)), np.float32(np.inf)))
            self.parts = [self._without_small(other) for other in self.parts]

    def _without_small(self, part: Part) -> Part:
        """A part without the entries below `least`."""
        sizes, columns, values = part
        if not self.least:
            return part
        kept = values >= self.least
        self.dropped += 2 * float(values[~kept].sum(dtype=np.float64))
        places = np.concatenate([[0], np.cumsum(kept)])
        return np.diff(places[np.concatenate([[0], np.cumsum(sizes)])]), columns[kept], values[kept]

    def matrix(self) -> Matrix:
        """The whole matrix; the parts are given up on the way."""
        sizes = np.concatenate([part[0] for part in self.parts])
        columns = np.concatenate([part[1] for part in self.parts])
        values = np.concatenate([part[2] for part in self.parts])
        self.parts = []
        return Matrix(*_native.mirror(np.concatenate([[0], np.cumsum(sizes)]), columns, values))


def _slabs(counts: npt.NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of words with at most so many places, or of one word."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield begin, end
        begin = end


def _cuts(counts: npt.NDArray[np.int64], begin: int, end: int) -> list[int]:
    """Where a slab is cut into parts of about equal work, for threads; the longest, of frequent words, come first."""
    work = np.cumsum(counts[begin:end] + 10)  # 10: a row has its price, even if it is of a rare word
    inner = begin + np.searchsorted(work, np.linspace(0, work[-1], 257)[1:-1])
    return sorted({begin, *inner.tolist(), end})
