"""Exact nearest rows by cosine: matrix products over blocks of the table where it lies, never a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
# scores (queries, rows) of a block of rows (rows, D), given with their inverse norms (rows,)
Scorer = Callable[[Floats, Floats], Floats]

SCORES = 1 << 20  # of a batch and a block: 4 MB, and few enough calls that waiting for threads does not matter
BATCH = 256  # queries that share a pass over the table
NORMS = 1 << 18  # numbers that are squared in float64 at a time
EPSILON = 1e-3  # of 3CosMul, as in its paper
ZERO = 1e-30  # a norm below this is taken for zero


def blocks(table: Floats, step: int) -> Iterator[slice]:
    """Slices of `step` rows, the last mostly shorter."""
    for start in range(0, len(table), step):
        yield slice(start, min(start + step, len(table)))


def inverse_norms(table: Floats) -> Floats:
    """1 / |row| for every row (V floats), 0 for a row of zeros; ValueError at the first NaN or infinite number."""
    inverse = np.empty(len(table), np.float32)
    for rows in blocks(table, max(1, NORMS // table.shape[1])):
        block = table[rows].astype(np.float64)  # squares of float32 may not fit into float32
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        if not np.isfinite(norms).all():
            bad = rows.start + int(np.flatnonzero(~np.isfinite(norms))[0])
            raise ValueError(f"row {bad + 1} has NaN or an infinite number, so nothing can be compared with it.")
        inverse[rows] = np.divide(1, norms, out=np.zeros_like(norms), where=norms > ZERO)
    return inverse


def unit(vectors: npt.ArrayLike) -> Floats:
    """Rows of length 1; a row of zeros stays."""
    wide = np.asarray(vectors, np.float64)
    norms = np.sqrt((wide * wide).sum(axis=-1, keepdims=True))
    directions: npt.NDArray[np.float64] = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > ZERO)
    return directions.astype(np.float32)


def cosine(queries: Floats) -> Scorer:
    """cos(q, w) for unit queries (B, D)."""

    def score(rows: Floats, inverse: Floats) -> Floats:
        scores: Floats = queries @ rows.T
        scores *= inverse
        return scores

    return score


def cos_mul(plus: Floats, minus: Floats) -> Scorer:
    """3CosMul of unit vectors plus (B, P, D) and minus (B, M, D).

    prod_p (1 + cos(p, w)) / 2 over prod_m (1 + cos(m, w)) / 2 + 0.001 (Levy and Goldberg, 2014,
    "Linguistic Regularities in Sparse and Explicit Word Representations").
    """

    def product(vectors: Floats, rows: Floats, inverse: Floats) -> Floats:
        result = np.ones((len(vectors), len(rows)), np.float32)
        for i in range(vectors.shape[1]):
            scores = cosine(vectors[:, i])(rows, inverse)
            scores += 1
            scores *= 0.5
            result *= scores.clip(0, out=scores)
        return result

    def score(rows: Floats, inverse: Floats) -> Floats:
        scores = product(plus, rows, inverse)
        scores /= product(minus, rows, inverse) + np.float32(EPSILON)
        return scores

    return score


def top(table: Floats, inverse: Floats, score: Scorer, n: int, excluded: Ids) -> tuple[Ids, Floats]:
    """The n best rows of each query, best first, the lower id first among equals: (B, n) ids and scores.

    `excluded` (B, E) are ids that are no answer, filled up with -1. Where fewer than n rows are left, ids are -1.
    """
    size = len(excluded)
    ids = np.full((size, n), -1, np.int64)
    best = np.full((size, n), -np.inf, np.float32)
    for rows in blocks(table, max(1, SCORES // max(1, size))):
        scores = score(table[rows], inverse[rows])
        query, column = np.nonzero((excluded >= rows.start) & (excluded < rows.stop))
        scores[query, excluded[query, column] - rows.start] = -np.inf
        hot = np.flatnonzero(scores.max(axis=1) > best[:, -1])  # few after the first blocks
        if len(hot):
            _merge(ids, best, hot, scores[hot], rows.start)
    return ids, best


def _merge(ids: Ids, best: Floats, hot: Ids, scores: Floats, start: int) -> None:
    """Put the best of a block among the best so far of the queries `hot`."""
    n = min(best.shape[1], scores.shape[1])
    if n == 1:
        query, row = np.arange(len(hot)), scores.argmax(axis=1)  # the first of equals
    else:
        floor = np.maximum(np.partition(scores, -n, axis=1)[:, -n], np.nextafter(best[hot, -1], np.float32(np.inf)))
        query, row = np.divmod(np.flatnonzero(scores >= floor[:, None]), scores.shape[1])
    every_query = np.concatenate([np.repeat(np.arange(len(hot)), best.shape[1]), query])
    every_id = np.concatenate([ids[hot].ravel(), start + row])
    every_score = np.concatenate([best[hot].ravel(), scores[query, row]])
    order = np.lexsort((every_id, -every_score, every_query))
    # the first n of each query: every query has at least the n it had before
    first = np.concatenate([[0], np.cumsum(np.bincount(every_query, minlength=len(hot)))[:-1]])
    chosen = order[first[:, None] + np.arange(best.shape[1])]
    ids[hot], best[hot] = every_id[chosen], every_score[chosen]
