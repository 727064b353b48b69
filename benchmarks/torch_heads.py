"""Words a second of a language model in PyTorch, with each head and with a linear layer and cross entropy.

`python -m benchmarks.torch_heads` writes results/torch/heads.json: an LSTM of 256 on 20 x 35 words of 150,000 that
follow Zipf's law, on one thread. Rates are by the CPU time of the process: others may share the cores. What learns is
the embedding (SparseAdam), the LSTM (Adam) and the head: SparseAdam where its gradients are sparse, Adam elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import skipgrad as sg
from benchmarks import machine
from benchmarks.settings import RESULTS
from skipgrad.torch import dense

WORDS, DIM, BATCH, STEPS = 150_000, 256, 20, 35
COUNTS = (1e8 / (np.arange(WORDS) + 2.7)).astype(np.int64)


class NoHead(nn.Module):
    """What the rest of the model costs."""

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Any loss."""
        return hidden.square().mean()


class Linear(nn.Module):
    """What the heads are compared with."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(DIM, WORDS)

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The cross entropy of all scores."""
        return functional.cross_entropy(self.linear(hidden).flatten(0, 1), target.flatten())


HEADS: dict[str, Callable[[], nn.Module]] = {
    "no head": NoHead,
    "nn.Linear + cross_entropy": Linear,
    "ExactSoftmax": lambda: sg.torch.ExactSoftmax(DIM, COUNTS),
    "AdaptiveSoftmax": lambda: sg.torch.AdaptiveSoftmax(DIM, COUNTS),
    "AdaptiveSoftmax, sparse": lambda: sg.torch.AdaptiveSoftmax(DIM, COUNTS, sparse=True),
    "HierarchicalSoftmax, sparse": lambda: sg.torch.HierarchicalSoftmax(DIM, COUNTS, sparse=True),
    "NegativeSampling 256, sparse": lambda: sg.torch.NegativeSampling(DIM, COUNTS, sparse=True),
    "NoiseContrastive 256, sparse": lambda: sg.torch.NoiseContrastive(DIM, COUNTS, sparse=True),
    "ImportanceSoftmax 256, sparse": lambda: sg.torch.ImportanceSoftmax(DIM, COUNTS, samples=256, sparse=True),
    "SampledSoftmax 256, sparse": lambda: sg.torch.SampledSoftmax(DIM, COUNTS, samples=256, sparse=True),
    "SampledSoftmax 1024, sparse": lambda: sg.torch.SampledSoftmax(DIM, COUNTS, samples=1024, sparse=True),
    "SampledSoftmax 256": lambda: sg.torch.SampledSoftmax(DIM, COUNTS, samples=256),
}


def main() -> None:
    """Measure every head, write the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_heads", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds for each head, but at least two steps")
    parser.add_argument("--only", default="", help="heads whose name has this; the record is not written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name, make in HEADS.items():
        if options.only in name or name == "nn.Linear + cross_entropy":
            found[name] = measure(make, options.seconds)
    print(table(found))
    record: dict[str, Any] = {"words": WORDS, "dim": DIM, "batch": [BATCH, STEPS], "threads": 1, "heads": found}
    record["cross_entropy_cpu_seconds"] = {f.__name__: seconds_of(f) for f in (dense.cross_entropy, dense.fused)}
    record |= {"torch": torch.__version__, "date": datetime.now(UTC).isoformat(timespec="seconds")}
    record["machine"] = machine.describe()
    if not options.only:
        folder = RESULTS / "torch"
        folder.mkdir(exist_ok=True)
        (folder / "heads.json").write_text(json.dumps(record, indent=1) + "\n")


def table(found: dict[str, dict[str, float]]) -> str:
    """Words a second of every head, and against a linear layer and cross entropy."""
    linear = found["nn.Linear + cross_entropy"]["words_per_second"]
    lines = ["| head, and its draws | words/s | against nn.Linear |", "|---|--:|--:|"]
    for name, one in found.items():
        rate = one["words_per_second"]
        lines.append(f"| {name} | {rate:,.0f} | {rate / linear:.{1 if rate < 10 * linear else 0}f}x |")
    return "\n".join(lines)


def seconds_of(cross_entropy: Callable[..., Tensor], words: int = 30_000) -> float:
    """CPU seconds of the exact softmax and its gradient, in our blocks or by PyTorch's linear_cross_entropy."""
    torch.manual_seed(1)
    tables = [torch.randn(words, DIM, requires_grad=True), torch.zeros(words, requires_grad=True)]
    hidden, target = torch.randn(BATCH * STEPS, DIM, requires_grad=True), torch.randint(words, (BATCH * STEPS,))
    times = []
    for _ in range(3):
        began = time.process_time()
        cross_entropy(hidden, target, *tables).sum().backward()
        times.append(time.process_time() - began)
    return min(times)


def measure(make: Callable[[], nn.Module], seconds: float) -> dict[str, float]:
    """Words a second of whole training steps, and of them without the head; the medians of steps after the first."""
    torch.manual_seed(1)
    embedding, lstm, head = nn.Embedding(WORDS, DIM, sparse=True), nn.LSTM(DIM, DIM), make()
    rows = [p for p in (getattr(head, "weight", None), getattr(head, "bias", None)) if p is not None]
    rows = rows if getattr(head, "sparse", False) else []
    ours = {id(p) for p in rows}
    others = [p for p in head.parameters() if id(p) not in ours]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.SparseAdam([*embedding.parameters(), *rows], lr=1e-3),
        torch.optim.Adam([*lstm.parameters(), *others], lr=1e-3),
    ]
    share = torch.tensor(COUNTS / COUNTS.sum())
    times: list[float] = []
    while len(times) < 3 or sum(times[1:]) < seconds:
        words = torch.multinomial(share, (STEPS + 1) * BATCH, replacement=True).reshape(STEPS + 1, BATCH)
        began = time.process_time()
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss = head(lstm(embedding(words[:-1]))[0], words[1:])
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        times.append(time.process_time() - began)
    step = median(times[1:])
    return {"words_per_second": STEPS * BATCH / step, "step_seconds": step, "steps": len(times) - 1}


if __name__ == "__main__":
    main()
