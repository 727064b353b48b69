"""A head that scores every word: batches of hidden vectors against the whole output table, on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from skipgrad import _native
from skipgrad.counts import Matrix

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Apply = Callable[[int, int, Floats, Floats], None]  # begin and end of rows, their gradient, that of their biases
Result = TypeVar("Result")

TILE: int = _native.HIDDEN_TILE
ROWS = 512  # output rows whose gradient is made and applied at once: it fits the second cache
JOBS = 64  # parts of the table at most: each has a gradient of the batch of its own
BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-8


class Batch(NamedTuple):
    """Words that are scored at once; arrays are filled up to whole tiles with rows of 0 that weigh 0."""

    hidden: Floats  # (n, stride)
    packed: Floats
    weight: Floats  # (n) how many pairs a word has
    starts: Ids  # (n) of its row in the matrix
    ends: Ids
    matrix: Matrix


class DenseHead:
    """The output table of a softmax, or of negative sampling without noise (K q of each word), and its optimiser.

    Jobs are ranges of rows. What they give to the hidden vectors is summed in the order of the rows, so the numbers
    are the same on any number of threads; the gradient of the rows is applied at once and never stored as a whole.
    """

    def __init__(
        self,
        isa: str,
        output: Floats,
        dim: int,
        bias: Floats | None,
        noise: Floats | None,
        pool: ThreadPoolExecutor,
        batch: int,
    ) -> None:
        self.output, self.dim, self.bias = output, dim, bias
        self.kernel = _native.DenseKernel(isa, output, dim, bias, noise)
        rows = -(-len(output) // (ROWS * JOBS)) * ROWS
        self.parts = [(i, min(i + rows, len(output))) for i in range(0, len(output), rows)]
        self.gradients = [zeros(-(-batch // TILE) * TILE, output.shape[1]) for _ in self.parts]
        self.moments = [zeros(*output.shape) for _ in range(2)]
        self.bias_moments = [np.zeros(len(output), np.float32) for _ in range(2)]
        self.local = threading.local()
        self.pool = pool
        self.steps = 0

    def gather(self, input: Floats, words: Ids, matrix: Matrix) -> Batch:
        """The words' rows of the input table, and where their counts are."""
        n = -(-len(words) // TILE) * TILE
        batch = Batch(
            zeros(n, input.shape[1]),
            zeros(n * self.dim),
            zeros(n),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            matrix,
        )
        batch.hidden[: len(words)] = input[words]
        batch.weight[: len(words)] = matrix.sums[words]
        batch.starts[: len(words)], batch.ends[: len(words)] = matrix.offsets[words], matrix.offsets[words + 1]
        self.kernel.pack(batch.hidden, batch.packed)
        return batch

    def log_sums(self, batch: Batch) -> Floats | None:
        """The logarithm of the sum of exp(score) over all words, for each row; None for a head that needs none."""
        if self.bias is None:
            return None
        n = len(batch.weight)
        peaks, totals = ([zeros(n) for _ in self.parts] for _ in range(2))

        def work(part: int) -> None:
            peaks[part][:] = -1e30
            self.kernel.forward(*self.parts[part], batch.hidden, batch.packed, peaks[part], totals[part])

        self.run(work)
        peak = np.max(peaks, axis=0).astype(np.float64)
        lse = zeros(n)
        lse[:] = peak + np.log(np.sum(np.exp(peaks - peak) * totals, axis=0))
        return lse

    def step(self, batch: Batch, lr: float) -> tuple[float, Floats]:
        """Moves all rows and biases, by Adam; returns the loss of the batch, in nats, and its rows' gradient."""
        self.steps += 1
        rate, root = lr / (1 - BETA1**self.steps), (1 - BETA2**self.steps) ** -0.5

        def adam(x: Floats, gradient: Floats, moments: list[Floats], begin: int, end: int) -> None:
            m, s = (moment[begin:end] for moment in moments)
            self.kernel.adam(x[begin:end], gradient, m, s, rate, root, BETA1, BETA2, EPSILON)

        def apply(begin: int, end: int, rows: Floats, bias: Floats) -> None:
            adam(self.output, rows, self.moments, begin, end)
            if self.bias is not None:
                adam(self.bias, bias, self.bias_moments, begin, end)

        loss = self.backward(batch, apply)
        gradient = self.gradients[0][: len(batch.weight)].copy()
        for other in self.gradients[1:]:
            gradient += other[: len(batch.weight)]
        return loss, gradient

    def loss(self, batch: Batch) -> float:
        """The loss of a batch, in nats; nothing moves."""

        def drop(begin: int, end: int, rows: Floats, bias: Floats) -> None:
            rows[:], bias[:] = 0, 0

        lse = self.log_sums(batch)
        return self.backward(batch, drop) if lse is None else weighted(batch.weight, lse) - self.true_scores(batch)

    def backward(self, batch: Batch, apply: Apply) -> float:
        """The loss of a batch; `apply` gets the gradient of each range of rows, and leaves it 0."""
        lse = self.log_sums(batch)
        given = (batch.hidden, batch.packed, batch.weight, lse, batch.starts, batch.ends)

        def work(part: int) -> float:
            hidden = self.gradients[part][: len(batch.weight)]
            hidden[:] = 0
            loss = 0.0
            for begin in range(*self.parts[part], ROWS):
                end = min(begin + ROWS, self.parts[part][1])
                rows, bias = self.memory(end - begin)
                into = (1.0, hidden, rows, None if self.bias is None else bias)
                loss += self.kernel.backward(begin, end, *given, batch.matrix.columns, batch.matrix.values, *into)
                apply(begin, end, rows, bias)
            return loss

        return sum(self.run(work)) + (0.0 if lse is None else weighted(batch.weight, lse))

    def run(self, work: Callable[[int], Result]) -> list[Result]:
        """The work on all parts, on threads, in the order of the rows."""
        return list(self.pool.map(work, range(len(self.parts))))

    def memory(self, rows: int) -> tuple[Floats, Floats]:
        """The calling thread's gradients of so many rows and biases: 0, as Adam leaves them."""
        if not hasattr(self.local, "memory"):
            self.local.memory = zeros(ROWS, self.output.shape[1]), zeros(ROWS)
        table, bias = self.local.memory
        return table[:rows], bias[:rows]

    def true_scores(self, batch: Batch) -> float:
        """The sum of N(c, o) (u_o . v_c + b_o) over the pairs of a batch."""
        total = 0.0
        for row, begin, end in zip(batch.hidden, batch.starts.tolist(), batch.ends.tolist(), strict=True):
            columns = batch.matrix.columns[begin:end]
            scores = self.output[columns] @ row
            if self.bias is not None:
                scores += self.bias[columns]
            total += float(batch.matrix.values[begin:end].astype(np.float64) @ scores)
        return total


def weighted(weight: Floats, values: Floats) -> float:
    """The sum of their products, in float64."""
    return float(weight.astype(np.float64) @ values)


def zeros(*shape: int) -> Floats:
    """Zeros that begin at a multiple of 64 bytes."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 16, np.float32)
    skip = -memory.ctypes.data % 64 // 4
    return memory[skip : skip + size].reshape(shape)


def nats(
    input: Floats, output: Floats, bias: Floats, matrix: Matrix, isa: str, threads: int, batch: int = 480
) -> float:
    """The mean loss of the pairs of a matrix under the exact softmax of two tables (V, D): the judge of every head.

    For tables of negative sampling, which learn log P(o | c) / q(o) - log K, the bias is log q.
    """
    tables = [zeros(len(table), -(-table.shape[1] // 16) * 16) for table in (input, output)]
    for table, given in zip(tables, (input, output), strict=True):
        table[:, : given.shape[1]] = given
    loss = 0.0
    with ThreadPoolExecutor(threads) as pool:
        head = DenseHead(isa, tables[1], input.shape[1], np.array(bias, np.float32), None, pool, batch)
        for begin in range(0, len(matrix), batch):
            loss += head.loss(head.gather(tables[0], np.arange(begin, min(begin + batch, len(matrix))), matrix))
    return loss / matrix.total
