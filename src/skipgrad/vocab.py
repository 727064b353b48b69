"""The words of a corpus, their counts and their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Vocab:
    """Words in the order of their ids: by count, largest first, then by word.

    >>> vocab = Vocab(pa.array(["the", "whale"], pa.large_string()), np.array([9, 2]))
    >>> vocab.index("whale"), vocab.counts[1], len(vocab)
    (1, np.int64(2), 2)
    """

    def __init__(self, words: pa.LargeStringArray, counts: npt.NDArray[np.int64]) -> None:
        self.words = words
        self.counts = counts
        self._ids: dict[str, int] | None = None  # made when a word is first looked up: opening stays fast

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> str:
        return str(self.words[index])

    def __contains__(self, word: str) -> bool:
        return word in self._lookup()

    def index(self, word: str) -> int:
        """The id of a word; KeyError, with near matches, where it is not there."""
        return self._lookup()[word]

    def _lookup(self) -> dict[str, int]:
        if self._ids is None:
            self._ids = {word: i for i, word in enumerate(self.words.to_pylist())}
        return self._ids
