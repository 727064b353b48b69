"""Training: threads over shards of the corpus, the learning rate's schedule, the true loss, progress."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

import skipgrad
from skipgrad import _native
from skipgrad.corpus import Corpus, cores
from skipgrad.heads.near import Near
from skipgrad.parameters import Parameters, instruction_set
from skipgrad.vectors import Vectors

if TYPE_CHECKING:
    from skipgrad.model import Model

Sums = tuple[int, int, float, float, float]

LOST = 1e6  # nats a pair: a model that is this wrong does not come back


@dataclass(frozen=True)
class Training:
    """How long, how fast and with what a model is trained."""

    epochs: int = 5
    """Passes over the corpus."""
    lr: float = 0.0
    """Learning rate at the start; it falls linearly to 1/10,000 of that. 0 takes what suits the model."""
    threads: int = 0
    """Threads that train; 0 takes one for each core. With one thread a run repeats bit for bit."""
    seed: int = 1
    """Of all that is random."""
    heldout: float = 0.0
    """Share of the sentences that is never trained on, for a held-out loss after each epoch; up to 0.5."""
    patience: int = 0
    """Stop when the held-out loss has not improved for so many epochs; 0 never stops early."""

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs is {self.epochs}, but must be at least 1.")
        if not (math.isfinite(self.lr) and self.lr >= 0):
            raise ValueError(f"lr is {self.lr}, but must be a positive number, or 0 for what suits the model.")
        if not 0 <= self.threads <= 1024:
            raise ValueError(f"threads is {self.threads}, but must be from 1 to 1024, or 0 for one on each core.")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed is {self.seed}, but must be from 0 to 2^63 - 1.")
        if not 0 <= self.heldout <= 0.5:
            raise ValueError(f"heldout is {self.heldout}, but must be from 0 to 0.5, as a share of the sentences.")
        if self.patience < 0:
            raise ValueError(f"patience is {self.patience}, but must be at least 1, or 0 to never stop early.")
        if self.patience and not self.heldout:
            raise ValueError("patience needs a held-out loss to watch: give a share to hold out, such as heldout=0.02.")


@dataclass(frozen=True)
class Progress:
    """Where training stands."""

    event: Literal["step", "epoch", "end"]
    epoch: int
    """Epochs begun; of `epochs`."""
    epochs: int
    share: float
    """Of the whole training, 0 to 1."""
    seconds: float
    raw_words: int
    """Words of the corpus that were read, over all epochs."""
    trained_words: int
    """Words that survived subsampling and were trained on."""
    lr: float
    loss: float
    """Mean loss of a positive pair, in nats: of the last shards at a step, of the epoch otherwise."""
    heldout_loss: float | None
    """The same on the sentences held out, after an epoch."""

    @property
    def raw_rate(self) -> float:
        """Words of the corpus per second, as word2vec.c and fastText count them."""
        return self.raw_words / max(self.seconds, 1e-9)

    @property
    def trained_rate(self) -> float:
        """Words after subsampling per second, as gensim counts them."""
        return self.trained_words / max(self.seconds, 1e-9)

    @property
    def remaining(self) -> float:
        """Seconds that training will still take, at the present pace."""
        return self.seconds * (1 - self.share) / max(self.share, 1e-9)


def train(
    model: Model, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None = None
) -> Vectors:
    """Trains the model on the corpus and returns its vectors."""
    run = Run(model, corpus, training, callback)
    try:
        for epoch in range(training.epochs):
            run.epoch(epoch)
            if run.should_stop():
                break
        finished = True
    except KeyboardInterrupt:
        finished = False
    run.report("end", len(run.history))
    return Vectors(corpus.vocab, metadata=run.metadata(finished), **run.parameters.tables())


class Run:
    """The state of one training: parameters, kernel, sums."""

    def __init__(
        self, model: Model, corpus: Corpus, training: Training, callback: Callable[[Progress], None] | None
    ) -> None:
        if len(corpus.vocab) < 2:
            raise ValueError(
                "The vocabulary has only one word, and there is nothing to predict: lower min_count or add text."
            )
        self.model, self.corpus, self.training, self.callback = model, corpus, training, callback
        self.threads = training.threads or cores()
        self.isa = instruction_set()
        self.parameters = Parameters(model, corpus.vocab.counts, training.seed, near_words(model, corpus))
        self.kernel = self.parameters.kernel(self.isa)
        self.first_lr = training.lr or model.lr
        self.shards = list(shards(corpus, self.tokens_per_call()))
        self.longest = max(end - begin for begin, end in self.shards)
        self.scratch = threading.local()
        self.history: list[dict[str, Any]] = []
        self.start = time.perf_counter()
        self.done = self.raw = self.trained = 0
        self.recent: tuple[float, float] = (0.0, 0.0)  # loss and pairs since the last report
        self.lock = threading.Lock()
        self.stopping = False

    def tokens_per_call(self) -> int:
        """Ids a kernel call, so that it lasts at most about a tenth of a second and Ctrl-C is heard."""
        return max(1000, int(2e9 / (6 * self.parameters.rows_a_token() * self.model.dim)))

    def epoch(self, epoch: int) -> None:
        """One pass over all shards; then the held-out loss, and a report."""
        began = time.perf_counter()
        raw, trained, pairs, loss, effective = self.sums(True, epoch)
        if not pairs:
            raise ValueError(
                "No sentence has two words of the vocabulary after subsampling, so there is nothing to predict: "
                "lower min_count, set sample to 0, or give longer sentences."
            )
        record = {"epoch": epoch + 1, "loss": loss / pairs, "seconds": time.perf_counter() - began}
        record |= {"raw_words": raw, "trained_words": trained, "pairs": pairs}
        if effective:
            record |= {"effective": effective / pairs, "draws": self.parameters.draws}
        if self.training.heldout:
            _, _, held_pairs, held_loss, _ = self.sums(False, epoch)
            if not held_pairs:
                raise ValueError(
                    f"heldout is {self.training.heldout}, but no sentence of two words was held out: give a larger "
                    "share, or a corpus with more sentences (a line is a sentence)."
                )
            record["heldout_loss"] = held_loss / held_pairs
        self.history.append(record)
        self.report("epoch", epoch + 1)

    def sums(self, update: bool, epoch: int) -> Sums:
        """Raw words, trained words, pairs, loss and effective draws over all shards; the first three on any threads."""
        order = iter(range(len(self.shards)))
        results: list[Sums] = [(0, 0, 0.0, 0.0, 0.0)] * len(self.shards)

        def work() -> None:
            while not self.stopping and (i := next(order, None)) is not None:
                results[i] = self.shard(update, epoch, i)

        with ThreadPoolExecutor(self.threads) as pool:
            workers = [pool.submit(work) for _ in range(self.threads)]
            try:
                while not all(worker.done() for worker in workers):
                    time.sleep(0.02)
                    if update:
                        self.report_step(epoch + 1)
            except BaseException:
                self.stopping = True
                raise
        for worker in workers:
            worker.result()
        raw, trained, pairs, loss, effective = zip(*results, strict=True)
        return sum(raw), sum(trained), math.fsum(pairs), math.fsum(loss), math.fsum(effective)

    def shard(self, update: bool, epoch: int, i: int) -> Sums:
        """Trains on one shard, or evaluates its held-out sentences."""
        begin, end = self.shards[i]
        words, kernel = self.corpus.ids, self.kernel
        sums = kernel.run(
            update,
            words[begin:end],
            begin,
            mix(self.training.seed, epoch if update else -1, begin),
            mix(self.training.seed, -2, 0),
            self.training.heldout,
            self.lr(epoch, begin / len(words)),
            self.lr(epoch, end / len(words)),
            self.memory(kernel),
        )
        self.corpus.forget(begin, end)
        if not sums[3] <= LOST * max(1, sums[2]):  # NaN is not smaller either
            self.stopping = True
            raise ValueError(
                f"The loss became {sums[3] / max(1, sums[2]):.3g} a pair in epoch {epoch + 1}: the learning rate "
                f"{self.first_lr:g} is too large{getattr(self.model.head, 'cure', '')}. Try a tenth of it."
            )
        if update:
            with self.lock:
                self.done += end - begin
                self.raw, self.trained = self.raw + sums[0], self.trained + sums[1]
                self.recent = (self.recent[0] + sums[3], self.recent[1] + sums[2])
                self.parameters.learn_log_z(sums[2], self.lr(epoch, begin / len(words)))
                if sums[4] and self.parameters.adapt(sums[4] / sums[2]):
                    self.kernel = self.parameters.kernel(self.isa)
        return sums

    def memory(self, kernel: _native.Kernel) -> npt.NDArray[np.uint8]:
        """The scratch memory of the calling thread."""
        need = kernel.scratch(self.longest) + 64
        if not hasattr(self.scratch, "memory") or len(self.scratch.memory) < need:
            self.scratch.memory = np.empty(need, np.uint8)
        return self.scratch.memory  # type: ignore[no-any-return]

    def lr(self, epoch: int, share: float) -> float:
        """The learning rate at a share of an epoch: a function of the place in the corpus, not of the clock."""
        return self.first_lr * max(1e-4, 1 - (epoch + share) / self.training.epochs)

    def should_stop(self) -> bool:
        """Whether the held-out loss has not improved for `patience` epochs."""
        losses = [record["heldout_loss"] for record in self.history] if self.training.patience else []
        return bool(losses) and len(losses) - 1 - losses.index(min(losses)) >= self.training.patience

    def report_step(self, epoch: int) -> None:
        """Reports about ten times a second."""
        now = time.perf_counter()
        if self.callback and self.recent[1] and now - getattr(self, "reported", self.start) >= 0.1:
            self.reported = now
            self.report("step", epoch)

    def report(self, event: Literal["step", "epoch", "end"], epoch: int) -> None:
        """Tells the callback where training stands."""
        if not self.callback:
            return
        with self.lock:
            (loss, pairs), self.recent = self.recent, (0.0, 0.0)
            share = self.done / (len(self.corpus.ids) * self.training.epochs)
            raw, trained = self.raw, self.trained
        last = self.history[-1] if self.history and event != "step" else {"loss": loss / max(1, pairs)}
        self.callback(
            Progress(
                event,
                epoch,
                self.training.epochs,
                share,
                time.perf_counter() - self.start,
                raw,
                trained,
                self.lr(0, share * self.training.epochs),
                last["loss"],
                last.get("heldout_loss"),
            )
        )

    def metadata(self, finished: bool) -> dict[str, Any]:
        """All that is needed to know where the vectors come from."""
        model = asdict(self.model)
        return {
            "model": type(self.model).__name__,
            "version": skipgrad.__version__,
            "finished": finished,
            "options": model | {"head": {"name": self.model.head.name} | model["head"]},
            "training": asdict(self.training)
            | {"lr": self.first_lr, "threads": self.threads, "instruction_set": self.isa},
            "corpus": {
                "fingerprint": self.corpus.fingerprint,
                "words": self.corpus.words,
                "sentences": self.corpus.sentences,
            },
            "history": self.history,
            **({"log_z": self.parameters.log_z} if getattr(self.model.head, "learn_z", False) else {}),
        }


def shards(corpus: Corpus, tokens: int) -> Iterator[tuple[int, int]]:
    """The blocks of the corpus, cut at ends of sentences into parts of about `tokens` ids."""
    for begin, end in zip(corpus.blocks[:-1].tolist(), corpus.blocks[1:].tolist(), strict=True):
        parts = max(1, round((end - begin) / tokens))
        if parts > 1:
            ends = np.flatnonzero(corpus.ids[begin:end] == -1) + begin + 1
            wanted = np.linspace(begin, end, parts + 1)[1:]
            cuts = np.unique(ends[np.searchsorted(ends, wanted)]).tolist()
        else:
            cuts = [end]
        for cut in cuts:
            yield begin, cut
            begin = cut


def near_words(model: Model, corpus: Corpus) -> Near | None:
    """What is seen around each word, where the head's draws depend on it."""
    p = model.head.define(corpus.vocab.counts).q
    if p is None or getattr(model.head, "proposal", "") != "bigram":
        return None
    from skipgrad.counts import Counts  # which knows how this module holds sentences out

    seen = Counts.build(corpus, window=model.window, sample=model.sample).trained
    return Near.of(seen.offsets, seen.columns, seen.values, p, getattr(model.head, "exact", 0))


def mix(*numbers: int) -> int:
    """64 bits that depend on all the numbers: the key of a random stream."""
    return int(np.random.SeedSequence([n % 2**64 for n in numbers]).generate_state(1, np.uint64)[0])
