"""Models that learn vectors from a corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from skipgrad.counts_training import train_counts
from skipgrad.heads import Head, Negative
from skipgrad.training import Progress, Training, train

if TYPE_CHECKING:
    from skipgrad.corpus import Corpus
    from skipgrad.vectors import Vectors


@dataclass(frozen=True)
class Model:
    """What all models share."""

    lr: ClassVar[float]
    """The learning rate that suits most texts."""

    dim: int = 100
    """Numbers in a vector, 2 to 1024."""
    window: int = 5
    """Words to each side, 1 to 50; the weight of a word falls linearly with its distance."""
    sample: float = 1e-3
    """Frequent words are thinned out: threshold on their share of all words, 0 keeps every word."""
    head: Head = field(default_factory=Negative)
    """The output head: what is asked of a hidden vector and a word."""

    def __post_init__(self) -> None:
        if not 2 <= self.dim <= 1024:
            raise ValueError(f"dim is {self.dim}, but must be from 2 to 1024; 100 to 300 suits most texts.")
        if not 1 <= self.window <= 50:
            raise ValueError(f"window is {self.window}, but must be from 1 to 50; 5 suits most texts.")
        if not 0 <= self.sample <= 1:
            raise ValueError(f"sample is {self.sample}, but must be from 0 to 1; 1e-3 to 1e-5 suits most texts.")
        if getattr(self.head, "way", "") == "counts" and self.encoder != "skipgram":
            raise ValueError(f"way is 'counts' for {self.head.name}, but only skip-gram has pairs to count: change it.")

    @property
    def encoder(self) -> str:
        """How the native kernel makes hidden vectors."""
        raise NotImplementedError

    @property
    def contexts(self) -> float:
        """The weights of the words that a hidden vector predicts, summed."""
        raise NotImplementedError

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
        if getattr(self.head, "way", "") == "counts":
            return train_counts(self, corpus, options, callback)
        return train(self, corpus, options, callback)


@dataclass(frozen=True)
class SkipGram(Model):
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

    lr = 0.025

    @property
    def encoder(self) -> str:
        """How the native kernel makes hidden vectors."""
        return "skipgram"

    @property
    def contexts(self) -> float:
        """The weights of the words that a hidden vector predicts, summed: 2 sum_j a_j."""
        return self.window + 1.0


@dataclass(frozen=True)
class CBOW(Model):
    """Learns, for every word, a vector: those of the words around a place, combined, predict the word there.

    J = sum_t log P(w_t | h_t), h_t = sum_j a_j v_{w_{t+j}} / sum_j a_j, a_j = 1 - (|j| - 1) / window, 0 < |j| <= window

    Every word of the context gets its share of the gradient, a_j / sum a: word2vec.c and gensim leave out the division.
    Mikolov et al. 2013, arXiv:1301.3781; Irsoy et al. 2021, arXiv:2012.15332.

    >>> from skipgrad.corpus import Corpus
    >>> corpus = Corpus.build([["big", "whale"], ["small", "fish"]] * 50, min_count=1)
    >>> vectors = CBOW(dim=8, sample=0).fit(corpus, epochs=1, threads=1)
    >>> len(vectors), vectors.dim
    (4, 8)
    """

    lr = 0.1

    combine: Literal["mean", "sum"] = "mean"
    """How the vectors of a context are combined."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combine not in ("mean", "sum"):
            raise ValueError(f"combine is {self.combine!r}, but must be 'mean' or 'sum'.")

    @property
    def encoder(self) -> str:
        """How the native kernel makes hidden vectors."""
        return self.combine

    @property
    def contexts(self) -> float:
        """A hidden vector predicts one word."""
        return 1.0
