"""The words of a corpus, their counts and their order."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

_NEAR_CANDIDATES = 20_000  # words that are compared with a word that is missing: about 0.1 s
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LEAST_MEMORY = 10**6


@dataclass(frozen=True, kw_only=True)
class VocabOptions:
    """Which words of a text get an id.

    >>> VocabOptions(max_memory="500MB").memory
    500000000
    """

    min_count: int = 5
    """Words that occur less often are left out."""

    max_size: int | None = None
    """Keep at most this many words, the most frequent ones."""

    max_memory: int | str = "4GB"
    """Memory for counting, in bytes or as "500MB": where it gets short, the rarest words so far are forgotten, and the
    summary says how many."""

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ValueError(f"min_count must be 1 or more, not {self.min_count}.")
        if self.max_size is not None and self.max_size < 1:
            raise ValueError(f"max_size must be 1 or more, or None, not {self.max_size}.")
        if self.memory < _LEAST_MEMORY:
            raise ValueError(f"max_memory must be 1MB or more, not {self.max_memory!r}.")

    @property
    def memory(self) -> int:
        """`max_memory` in bytes."""
        text = str(self.max_memory).strip().upper()
        number = text.rstrip("BKMGT ")
        try:
            return int(float(number) * _UNITS[text[len(number) :].strip()])
        except (ValueError, KeyError, OverflowError):
            raise ValueError(
                f"max_memory is a number of bytes, or text such as '500MB', not {self.max_memory!r}."
            ) from None


class UnknownWordError(KeyError):
    """A word that is not in the vocabulary.

    >>> str(UnknownWordError("'whalee' is not there; did you mean 'whale'?"))
    "'whalee' is not there; did you mean 'whale'?"
    """

    def __str__(self) -> str:  # KeyError shows the repr, in quotes
        return str(self.args[0]) if self.args else ""


class Vocab:
    """Words in the order of their ids: by count, largest first, then by word.

    >>> vocab = Vocab.from_counts({"whale": 2, "the": 9})
    >>> list(vocab), vocab.index("whale"), int(vocab.counts[0])
    (['the', 'whale'], 1, 9)
    """

    def __init__(self, words: Any, counts: npt.NDArray[np.int64]) -> None:
        self.words = words
        self.counts = counts
        self._ids: dict[str, int] | None = None  # made when a word is first looked up: opening stays fast

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int] | pa.Table | str | Path, min_count: int = 1, max_size: int | None = None
    ) -> Vocab:
        """The vocabulary of counts that were made elsewhere: a mapping, or a table or Parquet file (word, count)."""
        VocabOptions(min_count=min_count, max_size=max_size)
        if isinstance(counts, Mapping):
            counts = pa.table({"word": pa.array(list(counts), pa.large_string()),
                               "count": pa.array(list(counts.values()), pa.int64())})  # fmt: skip
        words, numbers = _columns(counts)
        _check_distinct(words)
        if numbers is None:
            raise ValueError("the table of words has no column 'count'.")
        order = count_order(words, numbers, min_count, max_size)
        return cls(words.take(pa.array(order)), numbers[order])

    @classmethod
    def read(cls, path: str | Path) -> Vocab:
        """A vocabulary from a Parquet file with the columns word and count, in the order of the file."""
        words, counts = _columns(path)
        if counts is None:
            raise ValueError(f"{path} has no column 'count'.")
        return cls(words, counts)

    def write(self, path: str | Path) -> None:
        """Writes a Parquet file with the columns word and count."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        pa.parquet.write_table(pa.table({"word": self.words, "count": self.counts}), partial)
        os.replace(partial, path)

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words.to_pylist())

    def __getitem__(self, index: int) -> str:
        return str(self.words[index])

    def __contains__(self, word: str) -> bool:
        return word in self._lookup()

    def __repr__(self) -> str:
        return f"Vocab({len(self):,} words, {int(self.counts.sum()):,} occurrences)"

    def index(self, word: str) -> int:
        """The id of a word; UnknownWordError, with near matches, where it is not there."""
        found = self._lookup().get(word)
        if found is None:
            near = " or ".join(repr(other) for other in self.near(word))
            hint = f"; did you mean {near}?" if near else "."
            raise UnknownWordError(f"{word!r} is not among the {len(self):,} words of the vocabulary{hint}")
        return found

    def near(self, word: str, n: int = 3) -> list[str]:
        """Words that look like this one, the most similar first."""
        if not word:
            return []
        head = self.words.slice(0, 50 * _NEAR_CANDIDATES)
        longer = pc.subtract(pc.utf8_length(head), len(word))
        alike = pc.and_(pc.less_equal(pc.abs(longer), 3), pc.starts_with(head, word[0], ignore_case=True))
        candidates = head.filter(alike).slice(0, _NEAR_CANDIDATES).to_pylist()
        same = [other for other in candidates if other != word and other.casefold() == word.casefold()]
        close = difflib.get_close_matches(word, candidates, n=n + 1, cutoff=0.7)
        return list(dict.fromkeys(same + [other for other in close if other != word]))[:n]

    def _lookup(self) -> dict[str, int]:
        if self._ids is None:
            self._ids = {word: i for i, word in enumerate(self.words.to_pylist())}
        return self._ids


def given_words(vocab: Any) -> tuple[Any, npt.NDArray[np.int64] | None]:
    """The words, and the counts if there are any, of a Vocab, a table, a Parquet file or an iterable of words."""
    if isinstance(vocab, Vocab):
        return vocab.words, vocab.counts
    if isinstance(vocab, (str, Path, pa.Table)):
        words, counts = _columns(vocab)
    elif isinstance(vocab, Iterable) and not isinstance(vocab, (bytes, Mapping)):
        words, counts = _columns(pa.table({"word": pa.array(list(vocab), pa.large_string())}))
    else:
        raise ValueError(f"vocab= takes a Vocab, words, an Arrow table or a Parquet file, not {type(vocab).__name__}.")
    _check_distinct(words)
    if counts is None:
        return words, None
    order = count_order(words, counts, 0, None)
    return words.take(pa.array(order)), counts[order]


def count_order(
    words: Any, counts: npt.NDArray[np.int64], min_count: int, max_size: int | None
) -> npt.NDArray[np.int64]:
    """The positions of the words to keep, by count, largest first, then by word (as UTF-8 bytes)."""
    kept = np.flatnonzero(counts >= min_count)
    table = pa.table({"word": words.take(pa.array(kept)), "count": counts[kept]})
    order = pc.sort_indices(table, [("count", "descending"), ("word", "ascending")])
    found: npt.NDArray[np.int64] = kept[order.to_numpy()[:max_size]]
    return found


def _columns(source: Any) -> tuple[Any, npt.NDArray[np.int64] | None]:
    name = "the table of words" if isinstance(source, pa.Table) else str(source)
    try:
        table = source if isinstance(source, pa.Table) else pa.parquet.read_table(source)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name} is not a whole Parquet file: {error}") from None
    if "word" not in table.column_names:
        raise ValueError(f"{name} has no column 'word'; there are: {', '.join(table.column_names)}.")
    words = _cast(table, "word", pa.large_string(), "strings", name)
    if words.null_count or pc.any(pc.equal(words, "")).as_py():
        raise ValueError(f"{name} has empty words; filter them out.")
    if "count" not in table.column_names:
        return words, None
    counts = _cast(table, "count", pa.int64(), "whole numbers", name)
    if counts.null_count or (len(counts) and pc.min(counts).as_py() < 0):
        raise ValueError(f"{name} has counts that are missing or negative.")
    return words, np.array(counts, np.int64)


def _check_distinct(words: Any) -> None:
    distinct = pc.count_distinct(words).as_py()
    if distinct < len(words):
        raise ValueError(f"the table of words has {len(words) - distinct:,} words twice; group them by word first.")


def _cast(table: Any, column: str, kind: Any, what: str, name: str) -> Any:
    values = table.column(column)
    found = values.type
    if pa.types.is_dictionary(found):
        found = found.value_type
    wrong = f"{name}: column {column!r} must hold {what}, not {found}."
    number = pa.types.is_integer(found) or pa.types.is_floating(found)
    if number != (kind == pa.int64()):  # Arrow would parse and print numbers
        raise ValueError(wrong)
    try:
        return values.cast(kind).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(wrong) from None
