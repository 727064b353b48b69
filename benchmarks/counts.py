"""The exact softmax from counts: how long it takes, how good it is, and its curve of held-out nats.

`python -m benchmarks.counts [--words 30000] [--head softmax] [--epochs 5] [--warmup 3] [--repeats 3]` writes a record
to results/counts/: runs that are timed and scored hold nothing out; one more with the same options holds out 2 % of the
sentences. `--judge` adds, for comparison, what negative sampling reaches on the same held-out pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

import skipgrad as sg
from benchmarks import machine
from benchmarks.settings import JUDGES, RESTRICT, RESULTS, TEXT, WORK
from benchmarks.trainers import _peak
from skipgrad.counts import Counts
from skipgrad.counts_training import train_counts
from skipgrad.dense import nats
from skipgrad.evaluation import Analogies
from skipgrad.heads.softmax import Softmax
from skipgrad.parameters import instruction_set
from skipgrad.training import Training

HELDOUT = 0.02
Record = dict[str, Any]


def main() -> None:
    """Train, score, write the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counts", description=__doc__)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--head", choices=["softmax", "negative"], default="softmax")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    head: Any = Softmax(warmup=options.warmup) if options.head == "softmax" else sg.heads.Negative()
    model = sg.SkipGram(dim=options.dim, sample=1e-4, head=head)
    name = f"{options.head}-v{options.words}-d{options.dim}-w{options.warmup}-e{options.epochs}"
    record: Record = {"setting": vars(options), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    record["runs"] = [run(model, options, seed) for seed in range(1, options.repeats + 1)]
    record["curve"] = curve(model, options)
    if options.judge:
        record["negative_sampling"] = judge(options)
    record["machine"] = machine.describe()
    folder = RESULTS / "counts"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def corpus_of(options: argparse.Namespace, cache: bool) -> sg.Corpus:
    """The most frequent words of the text."""
    where = WORK / "counts-cache" if cache else False
    return sg.Corpus.build(TEXT, min_count=5, max_size=options.words, cache=where, threads=options.threads)


def run(model: sg.SkipGram, options: argparse.Namespace, seed: int) -> Record:
    """One timed run, from the text to vectors, and its scores."""
    peak = _peak(options.threads)
    began, cpu = time.perf_counter(), time.process_time()
    corpus = corpus_of(options, cache=False)
    read = time.perf_counter()
    vectors = train_counts(model, corpus, Training(epochs=options.epochs, threads=options.threads, seed=seed))
    ended, used = (
        time.perf_counter(),
        time.process_time() - cpu,
    )  # CPU seconds of all threads: others may share the cores
    facts = vectors.metadata
    passes = [record["seconds"] for record in facts["history"]]
    times = {
        "corpus": read - began,
        "warmup": sum(record["seconds"] for record in facts["warmup"]),
        "count": facts["counts"]["seconds"],
        "passes": passes,
        "train": ended - read,
        "total": ended - began,
        "cpu": used,
    }
    flop = 6 * len(corpus.vocab) ** 2 * options.dim
    times |= {
        "useful_gflops": flop * len(passes) / sum(passes) / 1e9,
        "peak_gflops": (peak + _peak(options.threads)) / 2,
    }
    found = {"input": scores(vectors)}
    if vectors.output is not None:
        found["input + output"] = scores(sg.Vectors(corpus.vocab, vectors.input + vectors.output))
    return {
        "seed": seed,
        "times": times,
        "scores": found,
        "counts": facts["counts"],
        "loss": facts["history"][-1]["loss"],
    }


def scores(vectors: sg.Vectors) -> Record:
    """Accuracy on analogies, and rank correlations."""
    found: Record = {}
    for name, path in JUDGES.items():
        result = sg.evaluate(vectors, path, restrict=RESTRICT)
        if isinstance(result, Analogies):
            parts = {"analogies": result.total, "semantic": result.semantic, "syntactic": result.syntactic}
            found |= {part: value.accuracy for part, value in parts.items()}
        else:
            found[name] = result.rho
    return found


def curve(model: sg.SkipGram, options: argparse.Namespace) -> list[Record]:
    """Held-out nats a pair after each pass, against seconds with the counting and without the evaluation."""
    training = Training(epochs=options.epochs, threads=options.threads, heldout=HELDOUT)
    facts = train_counts(model, corpus_of(options, cache=True), training).metadata
    seconds = facts["counts"]["seconds"] + sum(record["seconds"] for record in facts["warmup"])
    points = []
    for record in facts["history"]:
        seconds += record["seconds"]
        points.append({name: record[name] for name in ("epoch", "loss", "heldout_loss")} | {"seconds": seconds})
    return points


def judge(options: argparse.Namespace) -> Record:
    """Negative sampling under the same exact softmax: its tables, with log q as bias."""
    corpus = corpus_of(options, cache=True)
    counts = Counts.build(corpus, sample=1e-4, heldout=HELDOUT, threads=options.threads)
    model, found = sg.SkipGram(dim=options.dim, sample=1e-4), []
    q = model.head.define(corpus.vocab.counts).q
    assert q is not None
    bias = np.log(q).astype(np.float32)
    for epochs in (1, 2, 5, 10):
        training = Training(epochs=epochs, threads=options.threads, heldout=HELDOUT)
        vectors = model.fit(corpus, **asdict(training))
        assert vectors.output is not None
        assert counts.heldout is not None
        loss = nats(vectors.input, vectors.output, bias, counts.heldout, instruction_set(), options.threads)
        seconds = sum(record["seconds"] for record in vectors.metadata["history"])
        found.append({"epochs": epochs, "seconds": seconds, "heldout_loss": loss, "scores": scores(vectors)})
    return {"runs": found, "nats_of_training_counts": counts.nats, "unigram_nats": unigram(counts)}


def unigram(counts: Counts) -> float:
    """The held-out loss of who knows only how often words are contexts."""
    assert counts.heldout is not None
    share = np.maximum(counts.trained.sums, 0.5)
    share /= share.sum()
    return float(-(counts.heldout.sums * np.log(share)).sum() / counts.heldout.total)


if __name__ == "__main__":
    main()
