"""Models that learn vectors from a corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skipgrad.heads import Head, Negative
from skipgrad.training import Progress, Training, train

if TYPE_CHECKING:
    from skipgrad.corpus import Corpus
    from skipgrad.vectors import Vectors


@dataclass(frozen=True)
class SkipGram:
    """Learns, for every word, a vector that predicts the words around it.

    J = sum_t sum_{0 < |j| <= window} a_j log P(w_{t+j} | w_t), a_j = 1 - (|j| - 1) / window; the head says what P is.

    The weight a_j is the chance that a reach drawn from 1 .. window covers j: word2vec draws it for each token, here
    every pair is trained on with its weight, which is the same objective with less noise (ADR 4).
    A token of a word with relative frequency f is kept with probability min(1, sqrt(s/f) + s/f), s = sample.
    Mikolov et al. 2013, arXiv:1301.3781 and 1310.4546.

    >>> from skipgrad.corpus import Corpus
    >>> corpus = Corpus.build([["big", "whale"], ["small", "fish"]] * 50, min_count=1)
    >>> vectors = SkipGram(dim=8, sample=0).fit(corpus, epochs=1, threads=1)
    >>> len(vectors), vectors.dim
    (4, 8)
    """

    dim: int = 100
    """Numbers in a vector, 2 to 1024."""
    window: int = 5
    """Words to each side that a word predicts, 1 to 50; the weight of a word falls linearly with its distance."""
    sample: float = 1e-3
    """Frequent words are thinned out: threshold on their share of all words, 0 keeps every word."""
    head: Head = field(default_factory=Negative)
    """The output head: what is asked of a word and a context."""

    def __post_init__(self) -> None:
        if not 2 <= self.dim <= 1024:
            raise ValueError(f"dim is {self.dim}, but must be from 2 to 1024; 100 to 300 suits most texts.")
        if not 1 <= self.window <= 50:
            raise ValueError(f"window is {self.window}, but must be from 1 to 50; 5 suits most texts.")
        if not 0 <= self.sample <= 1:
            raise ValueError(f"sample is {self.sample}, but must be from 0 to 1; 1e-3 to 1e-5 suits most texts.")

    def fit(
        self,
        corpus: Corpus,
        *,
        epochs: int = Training.epochs,
        lr: float = Training.lr,
        threads: int = Training.threads,
        seed: int = Training.seed,
        heldout: float = Training.heldout,
        patience: int = Training.patience,
        callback: Callable[[Progress], None] | None = None,
    ) -> Vectors:
        """Trains on the corpus; the options are those of Training.

        On Ctrl-C it stops within a second and returns what was learned, with metadata["finished"] = False. `callback`
        receives a Progress about ten times a second and after each epoch.
        """
        options = Training(epochs=epochs, lr=lr, threads=threads, seed=seed, heldout=heldout, patience=patience)
        return train(self, corpus, options, callback)
