"""Every head on the same text: how fast it trains, how good the vectors are, and what its probabilities are worth.

`python -m benchmarks.heads [negative nce ...] [--repeats 1]` writes a record for each head to results/heads/, and the
table of docs/guide/heads.md. All see the 30,000 most frequent words and hold out the same 2 % of the sentences; nats a
pair are those of the exact softmax over the learned scores, or, of a head that is normalised in its own way, its own.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np

import skipgrad as sg
from benchmarks import machine
from benchmarks.counts import scores
from benchmarks.results import rewrite
from benchmarks.settings import RESULTS, ROOT, TEXT, WORK
from skipgrad.counts import Counts
from skipgrad.dense import nats
from skipgrad.heads import Adaptive, Hierarchical, Importance, Nce, Negative, Sampled, Softmax, adaptive, hierarchical
from skipgrad.parameters import instruction_set, keep_thresholds

WORDS, HELDOUT, THREADS = 30_000, 0.02, 2
Record = dict[str, Any]

MODELS: dict[str, tuple[sg.SkipGram | sg.CBOW, int]] = {
    name: (sg.SkipGram(dim=100, sample=1e-4, head=head), epochs)
    for name, head, epochs in (
        ("negative", Negative(), 5),
        ("negative, N=64", Negative(shared=64), 5),
        ("nce", Nce(), 5),
        ("importance, N=64, bigram", Importance(samples=64), 5),
        ("importance, N=64, bigram, 1024 exactly", Importance(samples=64, exact=1024), 1),
        ("sampled, N=64", Sampled(samples=64), 5),
        ("sampled, N=64, drawn", Sampled(samples=64, target="drawn"), 5),
        ("sampled, N=64, bigram", Sampled(samples=64, proposal="bigram"), 5),
        ("sampled, N=512", Sampled(samples=512), 5),
        ("hierarchical", Hierarchical(), 5),
        ("adaptive", Adaptive(), 1),
        ("softmax", Softmax(), 5),
    )
} | {
    f"cbow, {name}": (sg.CBOW(dim=100, sample=1e-4, head=head), 5)
    for name, head in (
        ("negative", Negative()),
        ("sampled, N=64", Sampled(samples=64)),
        ("hierarchical", Hierarchical()),
    )
}


def main() -> None:
    """Train, score, write records and the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heads", description=__doc__)
    parser.add_argument("heads", nargs="*", choices=[*MODELS, []], help="all, where none is named")
    parser.add_argument("--again", action="store_true", help="replace records that are there")
    parser.add_argument("--repeats", type=int, default=1, help="seeds")
    options = parser.parse_args()
    folder = RESULTS / "heads"
    folder.mkdir(parents=True, exist_ok=True)
    corpus = sg.Corpus.build(TEXT, min_count=5, max_size=WORDS, cache=WORK / "heads-cache", threads=THREADS)
    counts = Counts.build(corpus, sample=1e-4, heldout=HELDOUT, threads=THREADS)
    for name in options.heads or MODELS:
        path = folder / f"{name.replace(', ', '-').replace('=', '').replace(' ', '')}.json"
        if options.again or not path.exists():
            print(name, "...", end=" ", flush=True)
            record = measure(name, corpus, counts, options.repeats)
            path.write_text(json.dumps(record, indent=1) + "\n")
            print(row(record), flush=True)
    records = {record["name"]: record for record in map(read, sorted(folder.glob("*.json")))}
    table = "\n".join([*HEADER, *(row(records[name]) for name in MODELS if name in records), "", note(records)])
    rewrite(ROOT / "docs" / "guide" / "heads.md", "heads", table)
    costs = [cost(records[name]) for name in MODELS if name in records and records[name]["rows"]]
    rewrite(ROOT / "docs" / "maths" / "README.md", "costs", "\n".join([*COSTS, *costs]))


def read(path: Any) -> Record:
    """A record."""
    record: Record = json.loads(path.read_text())
    return record


def measure(name: str, corpus: sg.Corpus, counts: Counts, repeats: int) -> Record:
    """Train with each seed; what it took and what came of it."""
    model, epochs = MODELS[name]
    runs = []
    for seed in range(1, repeats + 1):
        began = time.perf_counter()
        vectors = model.fit(corpus, epochs=epochs, threads=THREADS, seed=seed, heldout=HELDOUT)
        history = vectors.metadata["history"]
        runs.append(
            {
                "seed": seed,
                "seconds": time.perf_counter() - began,
                "raw_rate": sum(e["raw_words"] for e in history) / sum(e["seconds"] for e in history),
                "trained_rate": sum(e["trained_words"] for e in history) / sum(e["seconds"] for e in history),
                "nats": heldout_nats(vectors, counts),
                "scores": scores(vectors),
            }
        )
    return {
        "name": name,
        "epochs": epochs,
        "rows": rows_a_word(model, corpus),
        "options": vectors.metadata["options"],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": runs,
        "machine": machine.describe(),
    }


def rows_a_word(model: sg.SkipGram | sg.CBOW, corpus: sg.Corpus) -> float | None:
    """Output rows that a trained word is scored against, where its pairs are; None for what is learned from counts."""
    head, counts = model.head, corpus.vocab.counts
    if getattr(head, "way", "") == "counts":
        return None
    kept = counts * keep_thresholds(counts, model.sample) / (2**32 - 1)
    kept /= kept.sum()
    definition = head.define(counts)
    places = 2 * model.window if model.encoder == "skipgram" else 1
    if isinstance(definition, hierarchical.Definition):  # as many inputs as the weights sum to, in the mean over draws
        return float(model.contexts * (kept @ np.diff(definition.begins)))
    if isinstance(definition, adaptive.Definition):
        ends = definition.ends
        chances = np.add.reduceat(kept, ends[:-1])
        return float(ends[0] + len(chances) + (1 - (1 - chances) ** places) @ np.diff(ends))
    return places + float(head.draws(model.contexts))


def heldout_nats(vectors: sg.Vectors, counts: Counts) -> float | None:
    """Held-out nats a pair; None for CBOW, whose hidden vectors are no rows."""
    if vectors.metadata["model"] != "SkipGram":
        return None
    if vectors.output is None or "clusters" in vectors.parts:
        return float(vectors.metadata["history"][-1]["heldout_loss"])
    if "bias" in vectors.parts:
        bias = vectors.parts["bias"][:, 0]
    else:
        q = Negative().define(counts.vocab.counts).q
        bias = np.log(q)
    assert counts.heldout is not None
    return nats(vectors.input, vectors.output, bias, counts.heldout, instruction_set(), THREADS)


HEADER = [
    "| head | epochs | raw words/s | seconds | held-out nats a pair | analogies, % | WordSim-353 | SimLex-999 |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
]


COSTS = [
    "| head | rows a word, computed | kflop, computed | ns a word and thread, measured | Gflop/s a thread |",
    "|---|--:|--:|--:|--:|",
]


def cost(record: Record) -> str:
    """A line of the table of costs: 6 D flop a row and trained word, against the time that it took."""
    kflop = 6 * 100 * record["rows"] / 1e3
    nanoseconds = THREADS * 1e9 / median(run["trained_rate"] for run in record["runs"])
    return (
        f"| {record['name']} | {record['rows']:,.0f} | {kflop:,.1f} | {nanoseconds:,.0f} "
        f"| {kflop * 1e3 / nanoseconds:.0f} |"
    )


def row(record: Record) -> str:
    """A line of the table: medians over seeds."""

    def middle(pick: Any) -> float:
        return float(median(pick(run) for run in record["runs"]))

    known = record["runs"][0]["nats"] is not None
    return (
        f"| {record['name']} | {record['epochs']} | {middle(lambda r: r['raw_rate']) / 1e6:.2f} M "
        f"| {middle(lambda r: r['seconds']):.0f} | {format(middle(lambda r: r['nats']), '.3f') if known else '-'} "
        f"| {middle(lambda r: r['scores']['analogies']) * 100:.1f} | {middle(lambda r: r['scores']['wordsim353']):.3f} "
        f"| {middle(lambda r: r['scores']['simlex999']):.3f} |"
    )


def note(records: dict[str, Record]) -> str:
    """The machine, and what it does not say by itself."""
    about = next(iter(records.values()))["machine"]
    return (
        f"{about['cpu']}, {about['cores']} cores, 2 threads; D = 100, window 5, sample 1e-4, the 30,000 most frequent "
        "words of 16.9 M, 2 % of the sentences held out. The softmax of counts reads the text once: its words a second "
        "are those of its passes over the counts."
    )


if __name__ == "__main__":
    main()
