"""The predictions that an audit looks at: words, and what each of them predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skipgrad.corpus import Corpus
from skipgrad.heads.head import Doubles, Ids
from skipgrad.parameters import keep_thresholds
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab

TRIES = 200  # batches of positions before a text is given up


class Text:
    """A text as ids of a model's words, and the window in which its words are predicted."""

    def __init__(self, ids: npt.NDArray[np.int32], window: int) -> None:
        self.ids, self.window = ids, window
        self.sentence = np.cumsum(ids < 0)  # which sentence a position is in: no pair leaves it

    @classmethod
    def read(cls, source: Any, vectors: Vectors) -> Text:
        """A Corpus, or anything that one is built of."""
        corpus = source if isinstance(source, Corpus) else Corpus.build(source, vocab=vectors.vocab)
        window = vectors.metadata.get("options", {}).get("window", 5)
        return cls(_in_order_of(vectors.vocab, corpus), window)

    def weight(self, distance: int) -> float:
        """Of a pair at that distance: 1 next to it, and falling linearly, as in training."""
        return 1 - (distance - 1) / self.window

    def pairs(self, number: int, keep: Doubles, random: np.random.Generator) -> tuple[Ids, Ids]:
        """Words (C) and one neighbor of each (C), as often as training meets them."""
        offsets = np.array([d for d in range(-self.window, self.window + 1) if d])
        weights = np.array([self.weight(abs(d)) for d in offsets])
        found: list[tuple[int, int]] = []
        for _ in range(TRIES):
            at = random.integers(0, len(self.ids), 4 * number)
            for centre in at[self.ids[at] >= 0]:
                near = centre + offsets
                inside = (near >= 0) & (near < len(self.ids))
                near, share = near[inside], weights[inside]
                share = share * (self.sentence[near] == self.sentence[centre]) * (self.ids[near] >= 0)
                share = share * keep[self.ids[near]] * keep[self.ids[centre]]
                # rejection: the centre is met in proportion to all that is left of its window
                if random.random() * weights.sum() < share.sum():
                    other = near[np.searchsorted(np.cumsum(share), random.random() * share.sum())]
                    found.append((int(self.ids[centre]), int(self.ids[other])))
                if len(found) == number:
                    contexts, outputs = np.array(found).T
                    return contexts, outputs
        raise ValueError(f"the text has too few pairs of the model's words to draw {number}: give a longer one.")

    def neighbors(self, contexts: Ids, keep: Doubles) -> Doubles:
        """N(c, .) (C, V): the weights of the words near each of these words, summed over the text."""
        row = np.full(len(keep) + 1, -1, np.int32)  # the last one is for -1, the end of a sentence
        row[contexts] = np.arange(len(contexts))
        result = np.zeros(len(contexts) * len(keep))
        at = np.flatnonzero(row[self.ids] >= 0)
        for distance in range(1, self.window + 1):
            for near in (at - distance, at + distance):
                inside = (near >= 0) & (near < len(self.ids))
                near, centre = near[inside], at[inside]
                same = (self.ids[near] >= 0) & (self.sentence[near] == self.sentence[centre])
                cells = row[self.ids[centre[same]]].astype(np.int64) * len(keep) + self.ids[near[same]]
                result += self.weight(distance) * np.bincount(cells, minlength=len(result))
        # a word that is asked for twice was counted in its last row only
        found: Doubles = result.reshape(len(contexts), -1)[row[contexts]] * keep
        return found


def keeps(vectors: Vectors) -> Doubles:
    """The share of each word's tokens that the model's training kept (V)."""
    sample = vectors.metadata.get("options", {}).get("sample", 0.0)
    return keep_thresholds(vectors.vocab.counts, sample) / (2.0**32 - 1)


def centres(vectors: Vectors, number: int, random: np.random.Generator) -> Ids:
    """Words as often as training meets them: by count, less what is thinned out."""
    weights = np.maximum(vectors.vocab.counts, 1 if not vectors.vocab.counts.any() else 0) * keeps(vectors)
    return inverted(np.cumsum(weights), random, number)


def inverted(sums: Doubles, random: np.random.Generator, shape: int | tuple[int, ...]) -> Ids:
    """Draws by inversion of cumulative weights."""
    found: Ids = np.searchsorted(sums, random.random(shape) * sums[-1], side="right")
    return found.clip(max=len(sums) - 1)


def _in_order_of(vocab: Vocab, corpus: Corpus) -> npt.NDArray[np.int32]:
    """The ids of a corpus under another vocabulary; words that it has not are left out."""
    if corpus.vocab.words.equals(vocab.words):
        return corpus.ids
    order = np.array([vocab.index(word) if word in vocab else -2 for word in corpus.vocab], np.int32)
    ids = np.where(corpus.ids < 0, -1, order[np.maximum(corpus.ids, 0)]).astype(np.int32)
    return ids[ids > -2]
