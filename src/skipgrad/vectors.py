"""Vectors of words: kept, searched, compared, exchanged."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt

from . import formats, search
from .formats import folder
from .formats.format import replace_spaces as replace_spaces_in
from .heads.tree import Tree
from .vocab import Vocab

Floats = npt.NDArray[np.float32]
Query = str | Sequence[str] | npt.NDArray[np.floating[Any]]
Neighbors = list[tuple[str, float]]
Words = str | Sequence[str]
Method = Literal["3cosadd", "3cosmul"]


class Vectors:
    """A vector for each word of a vocabulary, and what it was trained with.

    `input` and `output` have a row for each word. `parts` is what else a head learned: the bias of the words, the nodes
    and the tree of a hierarchical softmax, the clusters of an adaptive one.

    >>> import pyarrow as pa
    >>> words = pa.array(["man", "woman", "king", "queen"], pa.large_string())
    >>> table = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 2], [0, 1, 2]], np.float32)
    >>> vectors = Vectors(Vocab(words, np.array([9, 8, 2, 1])), table)
    >>> vectors
    Vectors(4 words, 3 dimensions)
    >>> [word for word, _ in vectors.nearest("king", n=2)]
    ['queen', 'man']
    >>> vectors.analogy("king", minus="man", plus="woman", n=1)[0][0]
    'queen'
    """

    def __init__(
        self,
        vocab: Vocab,
        input: npt.ArrayLike,
        output: npt.ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        **parts: npt.ArrayLike,
    ) -> None:
        self.vocab = vocab
        self.input = _read_only(input)
        self.output = None if output is None else _read_only(output)
        self.metadata = dict(metadata or {})
        self.parts = {name: _frozen(np.asarray(part)) for name, part in parts.items()}
        for name, table in self.tables.items():
            if table.ndim != 2 or table.shape != (len(vocab), self.dim) or not table.size:
                raise ValueError(f"{name} has shape {table.shape}; expected a row for each of {len(vocab):,} words.")

    @property
    def tables(self) -> dict[str, Floats]:
        """The tables by name: input and, where there is one, output; (V, D) each."""
        return {"input": self.input} if self.output is None else {"input": self.input, "output": self.output}

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.input.shape[-1])

    def __len__(self) -> int:
        return len(self.input)

    def __contains__(self, word: str) -> bool:
        return word in self.vocab

    def __getitem__(self, word: str) -> Floats:
        """The vector of a word: a view of the table, which cannot be written to."""
        row: Floats = self.input[self.vocab.index(word)]
        return row

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.dim} dimensions)"

    # --- search ---

    @overload
    def nearest(self, query: str, n: int = ..., *, restrict: int | None = ..., exclude: Words = ...) -> Neighbors: ...
    @overload
    def nearest(
        self, query: Query, n: int = ..., *, restrict: int | None = ..., exclude: Words = ...
    ) -> Neighbors | list[Neighbors]: ...
    def nearest(
        self, query: Query, n: int = 10, *, restrict: int | None = None, exclude: Words = ()
    ) -> Neighbors | list[Neighbors]:
        """The n words whose vectors have the largest cosine with the query: a list of (word, cosine).

        The query is a word or a vector (D,); for a list of words or vectors (B, D) it is a list of such lists.
        Only the first `restrict` words of the vocabulary, its most frequent, are looked at. The word of a query
        and those in `exclude` are no answers. The first call reads all vectors to compute their norms.
        """
        ids, vectors = self._query(query)
        table = self._searched(n, restrict)
        others = self._ids(exclude)
        excluded = np.array([[i, *others] for i in ids], np.int64)
        answers: list[Neighbors] = []
        for part in _batches(len(ids)):
            found = search.top(table, self._inverse, search.cosine(vectors[part]), n, excluded[part])
            answers += [self._named(*row) for row in zip(*found, strict=True)]
        return answers[0] if _is_single(query) else answers

    @overload
    def similarity(self, a: str, b: str) -> float: ...
    @overload
    def similarity(self, a: Query, b: Query) -> float | npt.NDArray[np.float64]: ...
    def similarity(self, a: Query, b: Query) -> float | npt.NDArray[np.float64]:
        """The cosine of two words or vectors; of two lists of them, an array: first with first, second with second.

        A vector of zeros has the cosine 0 with everything.
        """
        left, right = (self._query(query)[1].astype(np.float64) for query in (a, b))
        if len(left) != len(right) and not (_is_single(a) or _is_single(b)):
            raise ValueError(f"{len(left)} and {len(right)} queries were given; expected as many of both, or one.")
        cosines: npt.NDArray[np.float64] = (left * right).sum(axis=1).clip(-1, 1)
        return float(cosines[0]) if _is_single(a) and _is_single(b) else cosines

    def analogy(
        self,
        word: Words,
        *,
        minus: Words = (),
        plus: Words = (),
        n: int = 10,
        method: Method = "3cosadd",
        restrict: int | None = None,
    ) -> Neighbors:
        """What is to `plus` as `word` is to `minus`: `analogy("king", minus="man", plus="woman")`.

        3CosAdd takes the largest cos(w, sum of unit vectors), 3CosMul the largest product of cosines over a product of
        cosines (Levy and Goldberg, 2014). The words that are given are no answers.
        """
        added, taken = self._ids(word) + self._ids(plus), self._ids(minus)
        if not added:
            raise ValueError("an analogy of no words; expected for example 'king', minus='man', plus='woman'.")
        ids, scores = self.analogies(np.array([added], int), np.array([taken], int), n, method, restrict)
        return self._named(ids[0], scores[0])

    def analogies(
        self,
        plus: npt.NDArray[np.int64],
        minus: npt.NDArray[np.int64],
        n: int = 1,
        method: Method = "3cosadd",
        restrict: int | None = None,
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Answer many analogies at once: ids (B, P) and (B, M) of words; gives ids and scores (B, n), best first."""
        if method not in ("3cosadd", "3cosmul"):
            raise ValueError(f"method={method!r} is not known; expected '3cosadd' or '3cosmul'.")
        table = self._searched(n, restrict)
        given = np.concatenate([plus, minus], axis=1)
        parts = []
        for part in _batches(len(given)):
            up, down = search.unit(self.input[plus[part]]), search.unit(self.input[minus[part]])
            if method == "3cosadd":
                score = search.cosine(search.unit(up.sum(axis=1) - down.sum(axis=1)))
            else:
                score = search.cos_mul(up, down)
            parts.append(search.top(table, self._inverse, score, n, given[part]))
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])

    @cached_property
    def _inverse(self) -> Floats:
        return search.inverse_norms(self.input)

    def _searched(self, n: int, restrict: int | None) -> Floats:
        """The rows that are looked at."""
        for name, value in (("n", n), ("restrict", restrict)):
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} should be 1 or more.")
        rows: Floats = self.input[:restrict]
        return rows

    def _query(self, query: Query) -> tuple[list[int], Floats]:
        """Ids (-1 for a vector) and unit vectors (B, D) of a query."""
        if not len(query):
            raise ValueError("an empty query; expected a word, a vector, a list of words, or rows of vectors.")
        if isinstance(query, str) or isinstance(query[0], str):
            ids = self._ids(cast(Words, query))
            return ids, search.unit(self.input[ids])
        try:
            vectors = np.atleast_2d(np.asarray(query, np.float64))
        except (TypeError, ValueError):
            raise ValueError("a query should be a word, a vector, a list of words, or rows of vectors.") from None
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise ValueError(f"a query has shape {np.shape(query)}; expected {self.dim} numbers, or rows of as many.")
        if not np.isfinite(vectors).all():
            raise ValueError("a query vector has NaN or an infinite number.")
        return [-1] * len(vectors), search.unit(vectors)

    def _ids(self, words: Words) -> list[int]:
        words = [words] if isinstance(words, str) else words
        for word in words:
            if not isinstance(word, str):
                raise ValueError(f"{word!r} among words is not a word; expected a word, or a list of words.")
        return [self.vocab.index(word) for word in words]

    def _named(self, ids: npt.NDArray[np.int64], scores: Floats) -> Neighbors:
        return [(self.vocab[int(i)], float(score)) for i, score in zip(ids, scores, strict=True) if i >= 0]

    def path(self, word: str) -> list[tuple[int, bool, int]]:
        """The way to a word in the tree of a hierarchical softmax: nodes, whether it goes left, words that are left."""
        if "tree" not in self.parts:
            raise ValueError("these vectors have no tree of words; expected some that the head hierarchical learned.")
        tree = Tree(self.parts["tree"])
        _, steps = tree.paths()
        taken = [(node, left, 2 * node + left) for node, left in tree.path(self.vocab.index(word))]
        return [(node, bool(left), int((steps == step).sum())) for node, left, step in taken]

    # --- files ---

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the folder `name.vectors/`: vectors.safetensors, vocab.parquet and model.json.

        It takes its name when it is complete, so a crash leaves the old one, or the new one, whole.
        """
        folder.save(Path(path), self.vocab, self.tables | self.parts, self.metadata, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vectors:
        """Open a folder that `save` wrote; the tables are memory-mapped, not read."""
        vocab, tables, metadata = folder.load(Path(path))
        return cls(vocab, metadata=metadata, **tables)

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], format: str | None = None, *, errors: Literal["strict", "replace"] = "strict"
    ) -> Vectors:
        """Read a file of another program, or open a folder of vectors; the format is found from the content.

        Formats: word2vec-binary, word2vec-text, fasttext-vec, glove, npy. They hold no counts, so counts are 0, and the
        order of the file is kept. Of a word that is repeated the first row is kept. `errors="replace"` reads words
        that are not valid UTF-8.
        """
        if format is None and Path(path).is_dir():
            return cls.load(path)
        (words, table), found, dropped = formats.read(Path(path), format, errors)
        if dropped:
            warnings.warn(f"{path}: {dropped:,} rows of repeated words were left out.", stacklevel=2)
        metadata = {"source": os.fspath(path), "format": found.name, "repeated": dropped}
        return cls(Vocab(words, np.zeros(len(words), np.int64)), table, metadata=metadata)

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        which: Literal["input", "output"] = "input",
        replace_spaces: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a file for other programs; the extension gives the format: .bin, .txt, .vec, .glove or .npy.

        `which` is the table; `replace_spaces="_"` writes words with spaces to a format that cannot hold them.
        """
        if which not in self.tables:
            raise ValueError(f"which={which!r} is not here; expected one of {', '.join(self.tables)}.")
        words = self.vocab.words
        if replace_spaces is not None:
            words = replace_spaces_in(words, replace_spaces)
        formats.write(Path(path), format, words, self.tables[which], overwrite)


def _read_only(table: npt.ArrayLike) -> Floats:
    """A float32 view that cannot be written to: norms are computed once."""
    return _frozen(np.asarray(table, np.float32))


def _frozen(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = table.view()
    view.flags.writeable = False
    return view


def _is_single(query: Query) -> bool:
    return isinstance(query, str) or (np.ndim(query) == 1 and not isinstance(query[0], str))


def _batches(size: int) -> Iterator[slice]:
    for start in range(0, size, search.BATCH):
        yield slice(start, start + search.BATCH)
