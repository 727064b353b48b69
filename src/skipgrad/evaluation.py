"""How well vectors agree with people: word pairs by Spearman's rank correlation, analogies by accuracy."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .vectors import Method, Vectors
from .vocab import Vocab

Numbers = npt.NDArray[np.float64]

CHUNK = 1 << 21  # numbers in a block of resamples: 16 MB


@dataclass(frozen=True)
class WordPairs:
    """Spearman's rho of cosines with people's scores; `low` and `high` are the ends of its confidence interval."""

    name: str
    rho: float  # NaN where all cosines, or all scores, are the same
    low: float
    high: float
    pairs: int  # how many were used
    missing: int  # how many have a word outside the vocabulary

    def to_dict(self) -> dict[str, Any]:
        """For JSON: NaN is None."""
        return _jsonable({"kind": "pairs", **asdict(self)})


@dataclass(frozen=True)
class Accuracy:
    """The share of analogies answered rightly; NaN where there was none to answer."""

    name: str
    accuracy: float
    low: float
    high: float
    correct: int
    questions: int  # how many were asked
    missing: int  # how many have a word outside the vocabulary, or outside its first `restrict` words


@dataclass(frozen=True)
class Analogies:
    """Accuracy of all analogies, of the semantic and the syntactic ones (sections gram...), and of each section."""

    name: str
    total: Accuracy
    semantic: Accuracy
    syntactic: Accuracy
    sections: tuple[Accuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: NaN is None."""
        return _jsonable({"kind": "analogies", **asdict(self)})


def evaluate(
    vectors: Vectors,
    path: str | os.PathLike[str],
    *,
    restrict: int = 30000,
    method: Method = "3cosadd",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 1,
) -> WordPairs | Analogies:
    """Score vectors with a file of word pairs or of analogies.

    Word pairs are lines `word word score`, separated by tabs, commas or spaces; the first number after the words is the
    score. A line without one at the top is a heading, and lines that start with # are comments. Analogies are lines
    of four words in sections that start with a line `: name`; questions and answers are taken from the first `restrict`
    words of the vocabulary. A word is looked up as it is written, then in lower case. The confidence
    intervals are percentiles of `resamples` bootstrap samples of pairs or questions.
    """
    if restrict < 1 or resamples < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"restrict={restrict}, resamples={resamples}, confidence={confidence}: expected 1 or more, 1 or more, "
            "and a share between 0 and 1."
        )
    file = Path(path)
    lines = _lines(file)
    bootstrap = _Bootstrap(np.random.default_rng(seed), resamples, confidence)
    if lines[0][1].startswith(":"):
        return _analogies(vectors, file, lines, restrict, method, bootstrap)
    return _word_pairs(vectors, file, lines, bootstrap)


def _lines(path: Path) -> list[tuple[int, str]]:
    """Numbers and text of the lines that say something."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there, or is not a file.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid UTF-8 at byte {error.start:,}; expected a text of word pairs.") from None
    lines = [(number, line.strip("\r")) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{path} is empty; expected lines 'word word score', or ': section' and lines of four words.")
    return lines


# --- word pairs ---


def _word_pairs(vectors: Vectors, path: Path, lines: list[tuple[int, str]], bootstrap: _Bootstrap) -> WordPairs:
    pairs = list(_parse_pairs(path, lines))
    find = _Finder(vectors.vocab, len(vectors))
    ids = np.array([(find(a), find(b)) for a, b, _ in pairs])
    known = (ids >= 0).all(axis=1)
    if known.sum() < 2:
        raise ValueError(
            f"{path}: {known.sum()} of {len(pairs):,} pairs are in the vocabulary; a correlation takes 2 or more."
        )
    left, right = (vectors.input[ids[known, side]] for side in (0, 1))
    cosines = np.asarray(vectors.similarity(left, right))
    scores = np.array([score for _, _, score in pairs])[known]
    rho = float(spearman(cosines, scores))
    low, high = bootstrap.spearman(cosines, scores)
    return WordPairs(path.name, rho, low, high, int(known.sum()), int((~known).sum()))


def _parse_pairs(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[str, str, float]]:
    for row, (number, line) in enumerate(lines):
        fields = re.split(r"\t|;" if "\t" in line else r"[,;]" if re.search("[,;]", line) else r"\s+", line.strip())
        score = next((value for field in fields[2:] if math.isfinite(value := _number(field))), None)
        if score is not None:
            yield fields[0].strip(), fields[1].strip(), score
        elif row or len(lines) == 1:
            raise ValueError(
                f"{path}: line {number} is {line[:60]!r}; expected two words and a score "
                "(or, in a file of analogies, ': section' at the top)."
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def spearman(x: Numbers, y: Numbers, weights: npt.NDArray[np.integer[Any]] | None = None) -> Numbers:
    """Spearman's rho: Pearson's correlation of ranks, equal values sharing the average of theirs.

    `weights` (R, n) says how often each pair stands in each of R samples; the result is then (R,), all in one pass.

    >>> round(float(spearman(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 9]))), 3)
    0.8
    """
    w = np.ones((1, len(x))) if weights is None else weights.astype(np.float64)
    a, b = _centered_ranks(x, w), _centered_ranks(y, w)
    variances = (w * a * a).sum(axis=1) * (w * b * b).sum(axis=1)
    covariance = (w * a * b).sum(axis=1)
    rho: Numbers = np.divide(covariance, np.sqrt(variances), out=np.full(len(w), np.nan), where=variances > 0)
    return rho[0] if weights is None else rho


def _centered_ranks(values: Numbers, w: Numbers) -> Numbers:
    """Average ranks (R, n) of values that stand w times in each sample, minus the mean rank of the sample."""
    order = np.argsort(values, kind="stable")
    new = np.diff(values[order], prepend=np.nan) != 0  # where a group of equal values starts
    counts = np.add.reduceat(w[:, order], np.flatnonzero(new), axis=1)  # (R, groups)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    group = np.empty(len(values), np.int64)
    group[order] = np.cumsum(new) - 1
    size = w.sum(axis=1, keepdims=True)
    centered: Numbers = ranks[:, group] - (size + 1) / 2
    return centered


# --- analogies ---


def _analogies(
    vectors: Vectors,
    path: Path,
    lines: list[tuple[int, str]],
    restrict: int,
    method: Method,
    bootstrap: _Bootstrap,
) -> Analogies:
    names, section, questions = _parse_analogies(path, lines, _Finder(vectors.vocab, min(restrict, len(vectors))))
    known = (questions >= 0).all(axis=1)
    if not known.any():
        raise ValueError(
            f"{path}: none of {len(questions):,} questions has its four words among the first {restrict:,} of the "
            "vocabulary; are they of the same language, and written alike?"
        )
    a, b, c, answer = questions[known].T
    found, _ = vectors.analogies(np.stack([b, c], 1), a[:, None], 1, method, restrict)
    correct = np.zeros(len(questions), bool)
    correct[known] = found[:, 0] == answer

    def accuracy(name: str, of: npt.NDArray[np.bool_]) -> Accuracy:
        asked, right = int((of & known).sum()), int((of & correct).sum())
        share = right / asked if asked else math.nan
        return Accuracy(name, share, *bootstrap.share(right, asked), right, asked, int((of & ~known).sum()))

    syntactic = np.array([name.startswith("gram") for name in names])[section]
    return Analogies(
        path.name,
        accuracy("total", np.ones(len(questions), bool)),
        accuracy("semantic", ~syntactic),
        accuracy("syntactic", syntactic),
        tuple(accuracy(name, section == i) for i, name in enumerate(names)),
    )


def _parse_analogies(
    path: Path, lines: list[tuple[int, str]], find: _Finder
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Names of sections, the section of each question (Q,), and the ids of its words (Q, 4)."""
    names: list[str] = []
    section, questions = [], []
    for number, line in lines:
        if line.startswith(":"):
            names.append(line[1:].strip())
            continue
        words = line.split()
        if len(words) != 4:
            raise ValueError(f"{path}: line {number} is {line[:60]!r}; expected four words, or ': section'.")
        section.append(len(names) - 1)
        questions.append([find(word) for word in words])
    if not questions:
        raise ValueError(f"{path} has sections but no questions; expected lines of four words.")
    return names, np.array(section), np.array(questions)


class _Finder:
    """Looks up the id of a word among the first words: as written, then in lower case; -1 where it is in neither."""

    def __init__(self, vocab: Vocab, limit: int) -> None:
        self.vocab, self.limit = vocab, limit

    def __call__(self, word: str) -> int:
        for form in (word, word.lower()):
            if form in self.vocab and (index := self.vocab.index(form)) < self.limit:
                return index
        return -1


@dataclass(frozen=True)
class _Bootstrap:
    """Percentile intervals from samples drawn with replacement."""

    random: np.random.Generator
    resamples: int
    confidence: float

    def spearman(self, x: Numbers, y: Numbers) -> tuple[float, float]:
        step = max(1, CHUNK // len(x))
        sizes = [min(step, self.resamples - start) for start in range(0, self.resamples, step)]
        even = np.full(len(x), 1 / len(x))
        return self._interval(
            np.concatenate([spearman(x, y, self.random.multinomial(len(x), even, size)) for size in sizes])
        )

    def share(self, right: int, asked: int) -> tuple[float, float]:
        if not asked:
            return math.nan, math.nan
        # how many of `asked` draws with replacement are right has exactly this distribution
        return self._interval(self.random.binomial(asked, right / asked, self.resamples) / asked)

    def _interval(self, values: Numbers) -> tuple[float, float]:
        values = values[~np.isnan(values)]
        if not len(values):
            return math.nan, math.nan
        low, high = np.quantile(values, [(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        return float(low), float(high)


def _jsonable(result: dict[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in result.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return _jsonable(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
