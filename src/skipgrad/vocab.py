"""The words of a corpus, their counts and their order."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq


class UnknownWordError(KeyError):
    """A word that is not in the vocabulary; its text is a sentence with near matches."""

    def __str__(self) -> str:
        return str(self.args[0])


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
        try:
            return self._lookup()[word]
        except KeyError:
            near = ", ".join(repr(match) for match in self.near(word))
            raise UnknownWordError(
                f"{word!r} is not in the vocabulary of {len(self):,} words" + (f"; near: {near}." if near else ".")
            ) from None

    def near(self, word: str, n: int = 3) -> list[str]:
        """Words that are spelled much like this one."""
        return difflib.get_close_matches(word, self._lookup(), n)

    @classmethod
    def read(cls, path: str | Path) -> Vocab:
        """Read a Parquet file with the columns word and count."""
        table = pq.read_table(path, memory_map=True).combine_chunks()
        return cls(table["word"].chunk(0), table["count"].to_numpy())

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with the columns word and count."""
        table = pa.table({"word": self.words, "count": self.counts})
        pq.write_table(table, path, compression="none", use_dictionary=False)

    def _lookup(self) -> dict[str, int]:
        if self._ids is None:
            self._ids = {word: i for i, word in enumerate(self.words.to_pylist())}
        return self._ids
