"""Training from counts: a pass visits every word once, against the whole table, whatever the length of the text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

import skipgrad
from skipgrad.corpus import Corpus, cores
from skipgrad.counts import Counts, Matrix
from skipgrad.dense import TILE, DenseHead
from skipgrad.heads.negative import Negative
from skipgrad.heads.softmax import Softmax
from skipgrad.parameters import aligned_rows, instruction_set, keep_thresholds, start_vectors
from skipgrad.training import LOST, Progress, Training, mix, train
from skipgrad.vectors import Vectors

if TYPE_CHECKING:
    from skipgrad.model import Model

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

BATCH = 480  # words a step at most, a multiple of the kernel's tile: what is gathered for them fits the second cache
STEPS = 40  # steps a pass at least, as far as words fill the kernel's tile
WARMUP = 3  # epochs of negative sampling, for a head that does not say how many
INPUT_RATE = 20.0  # learning rate of the input table in units of Newton steps: 0.025 is half a step
DAMPING = 0.01  # added to the curvature, as a share of its mean
FARTHEST = 1.0  # an input row moves by at most this multiple of its length at once
SMALL = 1 << 18  # multiplications of a product that OpenBLAS does on one thread
CURVATURE_STEPS = 8  # steps between two looks at the curvature


def train_counts(
    model: Model, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None = None
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
    finally:
        run.pool.shutdown(cancel_futures=True)
    run.report("end")
    input, output = (table[:, : model.dim] for table in (run.input, run.output))
    bias = {"bias": run.bias[:, None]} if run.softmax else {}
    return Vectors(corpus.vocab, input, output, run.metadata(), **bias)


class CountsRun:
    """The state of one training from counts: tables, biases, moments, counts."""

    def __init__(
        self, model: Model, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None = None
    ) -> None:
        if len(corpus.vocab) < 2:
            raise ValueError(
                "The vocabulary has only one word, and there is nothing to predict: lower min_count or add text."
            )
        if model.encoder != "skipgram":
            raise ValueError(f"{type(model).__name__} cannot be learned from counts of pairs: take SkipGram.")
        self.model, self.corpus, self.training, self.callback = model, corpus, training, callback
        self.head: Any = model.head  # a Softmax, or a Negative whose noise is summed up instead of drawn
        self.softmax = isinstance(self.head, Softmax)
        self.threads = training.threads or cores()
        self.first_lr = training.lr or model.lr
        self.input = start_vectors(len(corpus.vocab), model.dim, training.seed)
        self.output = aligned_rows(len(corpus.vocab), model.dim)
        self.bias = np.zeros(len(corpus.vocab), np.float32)
        self.batch = max(TILE, min(BATCH, len(corpus.vocab) // STEPS // TILE * TILE))
        self.pool = ThreadPoolExecutor(self.threads)
        self.history: list[dict[str, Any]] = []
        self.start = time.perf_counter()
        self.share = 0.0
        self.finished = False
        self.loss = 0.0  # of the last step, nats a pair
        self.warmup: list[dict[str, Any]] = []  # the history of negative sampling
        self.count_facts: dict[str, float] = {}
        keep = keep_thresholds(corpus.vocab.counts, model.sample) / (2**32 - 1)
        self.kept_words = int((corpus.vocab.counts * keep).sum())

    # --- before the first pass ---

    def warm_up(self) -> bool:
        """A few epochs of negative sampling, from whose vectors all starts; whether they came to their end.

        Their scores estimate log P(o | c) / q(o) - log K, so with the bias log q(o) they are those of a softmax.
        """
        head = self.head if isinstance(self.head, Negative) else Negative()
        epochs: int = getattr(self.head, "warmup", WARMUP)
        self.noise = head.define(self.corpus.vocab.counts).q
        if epochs:
            self.bias[:] = np.log(np.maximum(self.noise, 1e-30))
            model = replace(self.model, head=head)
            vectors = train(model, self.corpus, replace(self.training, epochs=epochs, patience=0), self.report_warm_up)
            self.input[:, : self.model.dim] = vectors.input
            self.output[:, : self.model.dim] = vectors.output if vectors.output is not None else 0
            self.warmup = vectors.metadata["history"]
            if not vectors.metadata["finished"]:
                return False
        return True

    def count(self) -> None:
        """Counts pairs, and makes ready what depends on the counts."""
        model, training = self.model, self.training
        began = time.perf_counter()
        self.counts = Counts.build(
            self.corpus, window=model.window, sample=model.sample, heldout=training.heldout, seed=training.seed,
            threads=self.threads,
        )  # fmt: skip
        self.count_facts = {
            "seconds": time.perf_counter() - began,
            "pairs": self.counts.total,
            "entries": len(self.counts.trained.values),
            "nats": self.counts.nats,
            "dropped": self.counts.dropped,
        }
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
        if not self.warmup:
            self.bias[:] = np.log(self.chance)
        noise = None if self.softmax else (self.head.negatives * self.noise).astype(np.float32)
        bias = self.bias if self.softmax else None
        self.dense = DenseHead(instruction_set(), self.output, model.dim, bias, noise, self.pool, self.batch)

    # --- a pass ---

    def epoch(self, epoch: int) -> None:
        """One pass: each word once, in steps; then the held-out loss, and a report."""
        began = time.perf_counter()
        batches = list(self.batches(mix(self.training.seed, epoch, -3)))
        loss = 0.0
        for number, words in enumerate(batches):
            self.share = (epoch + number / len(batches)) / self.training.epochs
            loss += self.step(words)
            self.report_step()
        record = {"epoch": epoch + 1, "loss": loss / self.counts.total, "seconds": time.perf_counter() - began}
        record |= {"raw_words": self.corpus.words, "trained_words": self.kept_words, "pairs": self.counts.total}
        if self.counts.heldout is not None:
            record["heldout_loss"] = self.evaluate(self.counts.heldout)
        self.share = (epoch + 1) / self.training.epochs
        self.history.append(record)
        self.report("epoch")

    def batches(self, key: int) -> Iterator[Ids]:
        """Every word once, at random, but each batch with its share of frequent and of rare words."""
        words = len(self.output)
        count = -(-words // self.batch)
        random = np.random.Generator(np.random.Philox(key))
        strata = np.arange(-(-words // count) * count).reshape(-1, count)
        for column in random.permuted(strata, axis=1).T:
            yield column[column < words]

    def step(self, words: Ids) -> float:
        """Moves the words' input rows, and all output rows; returns the loss of the words."""
        lr = self.lr()
        if self.dense.steps % CURVATURE_STEPS == 0:
            self.inverse = self.inverse_curvature()
        batch = self.dense.gather(self.input, words, self.counts.trained)
        loss, gradient = self.dense.step(batch, lr)
        self.move_inputs(words, gradient, lr)
        self.loss = loss / max(1e-30, float(batch.weight.sum(dtype=np.float64)))
        if not self.loss <= LOST:  # NaN is not smaller either
            raise ValueError(
                f"The loss became {self.loss:.3g} a pair in pass {len(self.history) + 1}: the learning rate "
                f"{self.first_lr:g} is too large. Try a tenth of it."
            )
        return loss

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
        move = product(gradient[:, : self.model.dim], self.inverse)[: len(words)] / pairs[:, None]
        farthest = FARTHEST * (np.linalg.norm(rows, axis=1) + 0.1)
        move *= np.minimum(1, farthest / np.maximum(np.linalg.norm(move, axis=1), 1e-30))[:, None]
        self.input[words, : self.model.dim] = rows - np.float32(min(1.0, INPUT_RATE * lr)) * move

    def lr(self) -> float:
        """The learning rate falls linearly to 1/10,000."""
        return self.first_lr * max(1e-4, 1 - self.share)

    # --- what is told ---

    def evaluate(self, matrix: Matrix) -> float:
        """The mean loss of the pairs of a matrix, in nats."""
        loss = 0.0
        for begin in range(0, len(matrix), self.batch):
            words = np.arange(begin, min(begin + self.batch, len(matrix)))
            loss += self.dense.loss(self.dense.gather(self.input, words, matrix))
        return loss / matrix.total

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
        return {
            "model": type(self.model).__name__,
            "version": skipgrad.__version__,
            "finished": self.finished,
            "options": model | {"head": {"name": self.head.name} | model["head"]},
            "training": asdict(self.training)
            | {"lr": self.first_lr, "threads": self.threads, "instruction_set": instruction_set()},
            "corpus": {
                "fingerprint": self.corpus.fingerprint,
                "words": self.corpus.words,
                "sentences": self.corpus.sentences,
            },
            "warmup": self.warmup,
            "counts": self.count_facts,
            "history": self.history,
        }


def product(rows: Floats, matrix: Floats) -> Floats:
    """The product of rows (n, D), n a multiple of the tile, and a matrix (D, D), in pieces.

    They are small enough for BLAS to stay on one thread: its threads wait for the next product in a busy loop, on the
    cores that the kernel needs, and a pass takes twice as long.
    """
    size = max([2, *(m for m in (4, 8, 16, 24) if m * matrix.size <= SMALL)])
    whole: Floats = (rows.reshape(-1, size, rows.shape[1]) @ matrix).reshape(rows.shape)
    return whole
