"""The cost of hierarchical softmax against the size of the vocabulary: it grows with log V.

`python -m benchmarks.tree` trains on words that are drawn from Zipf's law, and writes benchmarks/results/tree/tree.json
and the table of docs/maths/hierarchical.md: nanoseconds a pair on one thread, which one input and one path cost.
"""

from __future__ import annotations

import json
import time
from statistics import median

import numpy as np

import skipgrad as sg
from benchmarks import machine
from benchmarks.results import rewrite
from benchmarks.settings import RESULTS, ROOT
from skipgrad.heads import Hierarchical, Tree
from skipgrad.parameters import Parameters, instruction_set

SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIM, TOKENS, REPEATS = 100, 200_000, 5


def main() -> None:
    """Measure all sizes, write the record and the table."""
    rows = [measure(size) for size in SIZES]
    folder = RESULTS / "tree"
    folder.mkdir(parents=True, exist_ok=True)
    record = {"dim": DIM, "rows": rows, "machine": machine.describe()}
    (folder / "tree.json").write_text(json.dumps(record, indent=1) + "\n")
    table = ["| V | mean path | ns a pair | ns a node of a pair |", "|--:|--:|--:|--:|"]
    table += [f"| {r['words']:,} | {r['path']:.1f} | {r['ns']:.0f} | {r['ns'] / r['path']:.1f} |" for r in rows]
    rewrite(ROOT / "docs" / "maths" / "hierarchical.md", "tree", "\n".join(table))


def measure(words: int) -> dict[str, float]:
    """The mean path of a token, and the median time of a pair."""
    counts = (1e9 / np.arange(1, words + 1)).astype(np.int64)
    parameters = Parameters(sg.SkipGram(dim=DIM, sample=0, head=Hierarchical()), counts, seed=1)
    kernel = parameters.kernel(instruction_set())
    ids = np.random.default_rng(1).choice(words, TOKENS, p=counts / counts.sum()).astype(np.int32)
    ids[999::1000] = -1
    scratch = np.empty(kernel.scratch(len(ids)) + 64, np.uint8)
    times = []
    for repeat in range(REPEATS):
        began = time.perf_counter()
        pairs = kernel.run(True, ids, 0, repeat, 1, 0.0, 0.025, 0.025, scratch)[2]
        times.append((time.perf_counter() - began) / pairs * 1e9)
    begins, _ = Tree.huffman(counts).paths()
    return {"words": words, "path": float(np.diff(begins)[ids[ids >= 0]].mean()), "ns": median(times)}


if __name__ == "__main__":
    main()
