"""Training from counts: a pass visits every word once, against the whole table, whatever the length of the text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

import skipgrad
from skipgrad import _native
from skipgrad.corpus import Corpus, cores
from skipgrad.counts import Counts, Matrix
from skipgrad.heads.negative import Negative
from skipgrad.heads.softmax import Softmax
from skipgrad.training import LOST, Progress, Training, instruction_set, keep_thresholds, mix, tables, train
from skipgrad.vectors import Vectors

if TYPE_CHECKING:
    from skipgrad.model import SkipGram

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

BATCH = 480  # words a step, a multiple of the kernel's tile: what is gathered for them fits the second cache
ROWS = 512  # output rows a job: their gradient fits the second cache, and is applied while it is there
TILE: int = _native.HIDDEN_TILE
BETAS = 0.9, 0.99
EPSILON = 1e-8
INPUT_RATE = 20.0  # learning rate of the input table in units of Newton steps: 0.025 is half a step
DAMPING = 0.01  # added to the curvature, as a share of its mean
FARTHEST = 1.0  # an input row moves by at most this multiple of its length at once
CURVATURE_STEPS = 8  # steps between two looks at the curvature


def train_counts(
    model: SkipGram, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None = None
) -> Vectors:
    """Counts the pairs of the corpus, trains the model on the counts and returns its vectors.

    An epoch is a pass over the counts. What each pass did is in metadata["history"]; a run repeats bit for bit on any
    number of threads if the head's warmup is 0, otherwise on one.
    """
    run = CountsRun(model, corpus, training, callback)
    try:
        if run.warm_up():
            run.count()
            for epoch in range(training.epochs):
                run.epoch(epoch)
                if run.should_stop():
                    break
            run.finished = True
    except KeyboardInterrupt:
        pass
    run.report("end")
    return Vectors(corpus.vocab, run.input[:, : model.dim], run.output[:, : model.dim], run.metadata())


class Batch(NamedTuple):
    """Words that are learned at once; arrays are filled up to whole tiles with rows of 0 that weigh 0."""

    words: Ids
    hidden: Floats  # (n, stride)
    packed: Floats
    weight: Floats  # (n) how many pairs a word has
    starts: Ids  # (n) of its row in the matrix
    ends: Ids


class CountsRun:
    """The state of one training from counts: tables, biases, moments, counts."""

    def __init__(
        self, model: SkipGram, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None = None
    ) -> None:
        if len(corpus.vocab) < 2:
            raise ValueError(
                "The vocabulary has only one word, and there is nothing to predict: lower min_count or add text."
            )
        self.model, self.corpus, self.training, self.callback = model, corpus, training, callback
        self.head: Any = model.head  # a Softmax, or a Negative whose noise is summed up instead of drawn
        self.softmax = isinstance(self.head, Softmax)
        self.threads = training.threads or cores()
        self.input, self.output = tables(len(corpus.vocab), model.dim, training.seed)
        self.bias = np.zeros(len(corpus.vocab), np.float32)
        self.history: list[dict[str, Any]] = []
        self.start = time.perf_counter()
        self.share = 0.0
        self.finished = False
        self.steps = 0
        self.loss = 0.0  # of the last step, nats a pair
        self.warmup: list[dict[str, Any]] = []  # the history of negative sampling
        self.local = threading.local()
        keep = keep_thresholds(corpus.vocab.counts, model.sample) / (2**32 - 1)
        self.kept_words = int((corpus.vocab.counts * keep).sum())

    # --- before the first pass ---

    def warm_up(self) -> bool:
        """A few epochs of negative sampling, from whose vectors all starts; whether they came to their end.

        Their scores estimate log P(o | c) / q(o) - log K, so with the bias log q(o) they are those of a softmax.
        """
        head = self.head if isinstance(self.head, Negative) else Negative()
        epochs = self.head.warmup if self.softmax else 2
        if epochs:
            model = replace(self.model, head=head)
            vectors = train(model, self.corpus, replace(self.training, epochs=epochs, patience=0), self.report_warm_up)
            self.input[:, : self.model.dim] = vectors.input
            self.output[:, : self.model.dim] = vectors.output if vectors.output is not None else 0
            self.warmup = vectors.metadata["history"]
            if not vectors.metadata["finished"]:
                return False
        self.noise = np.diff(head.noise(self.corpus.vocab.counts).astype(np.float64), prepend=0.0) / 2.0**64
        return True

    def count(self) -> None:
        """Counts pairs, and makes ready what depends on the counts."""
        model, training = self.model, self.training
        began = time.perf_counter()
        self.counts = Counts.build(
            self.corpus, window=model.window, sample=model.sample, heldout=training.heldout, seed=training.seed,
            threads=self.threads,
        )  # fmt: skip
        self.count_seconds = time.perf_counter() - began
        if not self.counts.total:
            raise ValueError(
                "No sentence has two words of the vocabulary after subsampling, so there is nothing to predict: "
                "lower min_count, set sample to 0, or give longer sentences."
            )
        if self.counts.heldout is not None and not self.counts.heldout.total:
            raise ValueError(
                f"heldout is {training.heldout}, but no sentence of two words was held out: give a larger share, or a "
                "corpus with more sentences (a line is a sentence)."
            )
        self.chance = np.maximum(self.counts.trained.sums, 0.5)
        self.chance /= self.chance.sum()
        warm = bool(self.output.any())
        self.bias[:] = np.log(np.maximum(self.noise, 1e-30) if self.softmax and warm else self.chance)
        noise = None if self.softmax else (self.head.negatives * self.noise).astype(np.float32)
        bias = self.bias if self.softmax else None
        self.kernel = _native.DenseKernel(instruction_set(), self.output, model.dim, bias, noise)
        self.moments = [zeros(len(self.output), self.output.shape[1]) for _ in range(2)]
        self.bias_moments = [np.zeros_like(self.bias) for _ in range(2)]
        self.parts = [(i, min(i + ROWS, len(self.output))) for i in range(0, len(self.output), ROWS)]
        self.gradients = [zeros(-(-BATCH // TILE) * TILE, self.output.shape[1]) for _ in self.parts]

    # --- a pass ---

    def epoch(self, epoch: int) -> None:
        """One pass: each word once, in steps; then the held-out loss, and a report."""
        began = time.perf_counter()
        batches = list(self.batches(mix(self.training.seed, epoch, -3)))
        loss = 0.0
        with ThreadPoolExecutor(self.threads) as pool:
            for number, words in enumerate(batches):
                self.share = (epoch + number / len(batches)) / self.training.epochs
                loss += self.step(pool, words)
                self.report_step()
            record = {"epoch": epoch + 1, "loss": loss / self.counts.total, "seconds": time.perf_counter() - began}
            record |= {"raw_words": self.corpus.words, "trained_words": self.kept_words, "pairs": self.counts.total}
            if self.counts.heldout is not None:
                record["heldout_loss"] = self.evaluate(pool, self.counts.heldout)
        self.share = (epoch + 1) / self.training.epochs
        self.history.append(record)
        self.report("epoch")

    def batches(self, key: int) -> Iterator[Ids]:
        """Every word once, at random, but each batch with its share of frequent and of rare words."""
        words = len(self.output)
        count = -(-words // BATCH)
        random = np.random.Generator(np.random.Philox(key))
        strata = np.arange(-(-words // count) * count).reshape(-1, count)
        for column in random.permuted(strata, axis=1).T:
            yield column[column < words]

    def step(self, pool: ThreadPoolExecutor, words: Ids) -> float:
        """Moves the words' input rows, and all output rows; returns the loss of the words."""
        lr = self.lr()
        batch = self.gather(words, self.counts.trained)
        if self.steps % CURVATURE_STEPS == 0:
            self.inverse = self.inverse_curvature()
        self.steps += 1
        lse = self.log_sums(pool, batch) if self.softmax else None
        loss, gradient = self.backward(pool, batch, lse, lr)
        if lse is not None:
            loss += float((batch.weight.astype(np.float64) * lse).sum())
        self.move_inputs(words, gradient[: len(words)], lr)
        self.loss = loss / max(1e-30, float(batch.weight.sum(dtype=np.float64)))
        if not self.loss <= LOST:  # NaN is not smaller either
            raise ValueError(
                f"The loss became {self.loss:.3g} a pair in pass {len(self.history) + 1}: the learning rate "
                f"{self.training.lr:g} is too large. Try a tenth of it."
            )
        return loss

    def gather(self, words: Ids, matrix: Matrix) -> Batch:
        """The words' rows, and where their counts are."""
        n = -(-len(words) // TILE) * TILE
        hidden, packed, weight = zeros(n, self.input.shape[1]), zeros(n * self.model.dim), zeros(n)
        starts, ends = np.zeros(n, np.int64), np.zeros(n, np.int64)
        hidden[: len(words)] = self.input[words]
        weight[: len(words)] = matrix.sums[words]
        starts[: len(words)], ends[: len(words)] = matrix.offsets[words], matrix.offsets[words + 1]
        self.kernel.pack(hidden, packed)
        return Batch(words, hidden, packed, weight, starts, ends)

    def log_sums(self, pool: ThreadPoolExecutor, batch: Batch) -> Floats:
        """The logarithm of the sum of exp(score) over all words, for each row of the batch."""
        n = len(batch.weight)
        peaks, totals = ([zeros(n) for _ in self.parts] for _ in range(2))

        def work(part: int) -> None:
            peaks[part][:] = -1e30
            self.kernel.forward(*self.parts[part], batch.hidden, batch.packed, peaks[part], totals[part])

        list(pool.map(work, range(len(self.parts))))
        peak = np.max(peaks, axis=0).astype(np.float64)
        lse = zeros(n)
        lse[:] = peak + np.log(np.sum(np.exp(peaks - peak) * totals, axis=0))
        return lse

    def backward(self, pool: ThreadPoolExecutor, batch: Batch, lse: Floats | None, lr: float) -> tuple[float, Floats]:
        """Moves all output rows, by Adam; returns the loss without that of lse, and the input rows' gradient."""
        beta1, beta2 = BETAS
        adam = (lr / (1 - beta1**self.steps), (1 - beta2**self.steps) ** -0.5, beta1, beta2, EPSILON)
        counts = self.counts.trained
        pairs = (batch.starts, batch.ends, counts.columns, counts.values)

        def work(part: int) -> float:
            begin, end = self.parts[part]
            hidden = self.gradients[part][: len(batch.weight)]
            hidden[:] = 0
            rows, bias = self.memory(end - begin)
            given = (batch.hidden, batch.packed, batch.weight, lse, *pairs)
            loss = self.kernel.backward(begin, end, *given, 1.0, hidden, rows, bias if self.softmax else None)
            self.kernel.adam(self.output[begin:end], rows, *(m[begin:end] for m in self.moments), *adam)
            if self.softmax:
                self.kernel.adam(self.bias[begin:end], bias, *(m[begin:end] for m in self.bias_moments), *adam)
            return float(loss)

        loss = sum(pool.map(work, range(len(self.parts))))
        gradient = self.gradients[0][: len(batch.weight)].copy()
        for other in self.gradients[1:]:  # always in this order: on any number of threads the same sum
            gradient += other[: len(batch.weight)]
        return loss, gradient

    def memory(self, rows: int) -> tuple[Floats, Floats]:
        """The calling thread's gradients of so many rows and biases: 0, as Adam leaves them."""
        if not hasattr(self.local, "memory"):
            self.local.memory = zeros(ROWS, self.output.shape[1]), zeros(ROWS)
        table, bias = self.local.memory
        return table[:rows], bias[:rows]

    def inverse_curvature(self) -> Floats:
        """The inverse of the second derivative of a pair's loss by the input row, as if all words predicted alike.

        softmax:  sum_o p_o u_o u_o^T - m m^T,  m = sum_o p_o u_o,  p_o the share of word o in all pairs
        negative: sum_o p_o K q_o / (p_o + K q_o) u_o u_o^T
        """
        rows = self.output[:, : self.model.dim]
        noise = self.noise if self.softmax else self.head.negatives * self.noise
        weight = self.chance if self.softmax else self.chance * noise / (self.chance + noise)
        weight = weight.astype(np.float32)
        matrix = ((rows * weight[:, None]).T @ rows).astype(np.float64)
        if self.softmax:
            mean = (weight @ rows).astype(np.float64)
            matrix -= np.outer(mean, mean)
        matrix += np.eye(len(matrix)) * (DAMPING * np.trace(matrix) / len(matrix) + 1e-6)
        return np.linalg.inv(matrix).astype(np.float32)

    def move_inputs(self, words: Ids, gradient: Floats, lr: float) -> None:
        """A part of a Newton step with the shared curvature: v_c moves by -rate M^-1 g_c / n_c, and not too far."""
        rows = self.input[words, : self.model.dim]
        pairs = np.maximum(self.counts.trained.sums[words], 1e-30).astype(np.float32)
        move = (gradient[:, : self.model.dim] / pairs[:, None]) @ self.inverse
        farthest = FARTHEST * (np.linalg.norm(rows, axis=1) + 0.1)
        move *= np.minimum(1, farthest / np.maximum(np.linalg.norm(move, axis=1), 1e-30))[:, None]
        self.input[words, : self.model.dim] = rows - np.float32(min(1.0, INPUT_RATE * lr)) * move

    def lr(self) -> float:
        """The learning rate falls linearly to 1/10,000."""
        return self.training.lr * max(1e-4, 1 - self.share)

    # --- what is told ---

    def evaluate(self, pool: ThreadPoolExecutor, matrix: Matrix) -> float:
        """The mean loss of the pairs of a matrix, in nats."""
        loss = 0.0
        for begin in range(0, len(matrix), BATCH):
            words = np.arange(begin, min(begin + BATCH, len(matrix)))
            batch = self.gather(words, matrix)
            if self.softmax:
                lse = self.log_sums(pool, batch)
                loss += float((batch.weight.astype(np.float64) * lse).sum()) - self.true_scores(matrix, begin, len(words))
            else:
                loss += self.backward_only(pool, batch, matrix)
        return loss / matrix.total

    def true_scores(self, matrix: Matrix, begin: int, count: int) -> float:
        """The sum of N(c, o) (u_o . v_c + b_o) over rows of a matrix."""
        rows = matrix.rows(begin, begin + count)
        part = slice(matrix.offsets[begin], matrix.offsets[begin + count])
        columns, values = matrix.columns[part], matrix.values[part].astype(np.float64)
        scores = np.einsum("ij,ij->i", self.input[rows], self.output[columns]) + self.bias[columns]
        return float(values @ scores)

    def backward_only(self, pool: ThreadPoolExecutor, batch: Batch, matrix: Matrix) -> float:
        """The loss of a batch under a head that is not normalised; its gradients are dropped."""

        def work(part: tuple[int, int]) -> float:
            begin, end = part
            into = zeros(*batch.hidden.shape), zeros(end - begin, self.input.shape[1])
            pairs = (batch.starts, batch.ends, matrix.columns, matrix.values)
            given = (batch.hidden, batch.packed, batch.weight, None, *pairs, 1.0, *into, None)
            return float(self.kernel.backward(begin, end, *given))

        return sum(pool.map(work, self.parts))

    def should_stop(self) -> bool:
        """Whether the held-out loss has not improved for `patience` passes."""
        losses = [record["heldout_loss"] for record in self.history] if self.training.patience else []
        return bool(losses) and len(losses) - 1 - losses.index(min(losses)) >= self.training.patience

    def report_warm_up(self, now: Progress) -> None:
        """Tells how far the warm-up is, as steps before the first pass."""
        if self.callback and now.event == "step":
            seconds = time.perf_counter() - self.start
            self.callback(replace(now, epoch=0, epochs=self.training.epochs, share=0.0, seconds=seconds))

    def report_step(self) -> None:
        """Reports about ten times a second."""
        now = time.perf_counter()
        if now - getattr(self, "reported", self.start) >= 0.1:
            self.reported = now
            self.report("step")

    def report(self, event: Literal["step", "epoch", "end"]) -> None:
        """Tells the callback where training stands; a pass counts as one reading of the corpus."""
        if not self.callback:
            return
        passes = self.share * self.training.epochs
        last = self.history[-1] if self.history and event != "step" else {"loss": self.loss}
        epoch = len(self.history) + (event == "step")
        words = int(self.corpus.words * passes), int(self.kept_words * passes)
        seconds = time.perf_counter() - self.start
        losses = last["loss"], last.get("heldout_loss")
        self.callback(Progress(event, epoch, self.training.epochs, self.share, seconds, *words, self.lr(), *losses))

    def metadata(self) -> dict[str, Any]:
        """All that is needed to know where the vectors come from."""
        model = asdict(self.model)
        counts = {"pairs": self.counts.total, "entries": len(self.counts.trained.values), "nats": self.counts.nats,
                  "dropped": self.counts.dropped, "seconds": self.count_seconds} if hasattr(self, "counts") else {}  # fmt: skip
        return {
            "model": "SkipGram",
            "version": skipgrad.__version__,
            "finished": self.finished,
            "options": model | {"head": {"name": self.head.name} | model["head"]},
            "training": asdict(self.training) | {"threads": self.threads, "instruction_set": instruction_set()},
            "corpus": {
                "fingerprint": self.corpus.fingerprint,
                "words": self.corpus.words,
                "sentences": self.corpus.sentences,
            },
            "warmup": self.warmup,
            "counts": counts,
            "history": self.history,
        }


def zeros(*shape: int) -> Floats:
    """Zeros that begin at a multiple of 64 bytes."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 16, np.float32)
    skip = -memory.ctypes.data % 64 // 4
    return memory[skip : skip + size].reshape(shape)
