"""How near the kernel of the exact softmax comes to the machine's peak, on one core.

`python -m benchmarks.softmax_kernel` writes results/counts/kernel.json. Kernel and peak are measured in turn, by the
time that the thread had the CPU, and the medians are kept: other programs may share the cores.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.settings import RESULTS
from skipgrad import _native
from skipgrad.dense import zeros

ROWS, HIDDEN, ROUNDS = 8192, 480, 15


def main() -> None:
    """Measure every instruction set at some dimensions."""
    found = [measure(isa, dim) for isa in _native.instruction_sets() for dim in (64, 100, 300)]
    record = {"rows": ROWS, "hidden": HIDDEN, "date": datetime.now(UTC).isoformat(timespec="seconds"), "kernels": found}
    record["machine"] = machine.describe()
    (RESULTS / "counts" / "kernel.json").write_text(json.dumps(record, indent=1) + "\n")


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def peak(isa: str) -> float:
    """Gflop/s of multiply-adds in registers, by CPU time; fma_peak itself reads the clock on the wall."""
    began, cpu = time.perf_counter(), time.thread_time()
    rate = _native.fma_peak(isa, 0.02)
    return rate * (time.perf_counter() - began) / (time.thread_time() - cpu)


def measure(isa: str, dim: int) -> dict[str, Any]:
    """Gflop/s of the forward and the backward pass, and of all: useful (6 n V D) and done (8 n V D)."""
    random = np.random.default_rng(0)
    stride = -(-dim // 16) * 16
    output, hidden, packed, bias = zeros(ROWS, stride), zeros(HIDDEN, stride), zeros(HIDDEN * dim), zeros(ROWS)
    output[:, :dim] = random.normal(0, 0.5, (ROWS, dim))
    hidden[:, :dim] = random.normal(0, 0.5, (HIDDEN, dim))
    kernel = _native.DenseKernel(isa, output, dim, bias, None)
    kernel.pack(hidden, packed)
    peaks, totals, weight, lse = zeros(HIDDEN), zeros(HIDDEN), zeros(HIDDEN), zeros(HIDDEN)
    weight[:] = 1
    none, columns, values = np.zeros(HIDDEN, np.int64), np.zeros(0, np.int32), zeros(1)
    into = zeros(*hidden.shape), zeros(*output.shape), zeros(ROWS)

    def forward() -> None:
        peaks[:], totals[:] = -1e30, 0
        kernel.forward(0, ROWS, hidden, packed, peaks, totals)
        lse[:] = peaks + np.log(totals)

    def backward() -> None:
        given = (hidden, packed, weight, lse, none, none, columns, values[:0])
        kernel.backward(0, ROWS, *given, 1.0, *into)

    unit = ROWS * HIDDEN * dim / 1e9
    tops, forwards, backwards = [], [], []
    for _ in range(ROUNDS):
        tops.append(peak(isa))
        forwards.append(seconds(forward))
        backwards.append(seconds(backward))
    both = median(forwards) + median(backwards)
    return {
        "isa": isa,
        "dim": dim,
        "peak_gflops": median(tops),
        "forward_gflops": 2 * unit / median(forwards),
        "backward_gflops": 6 * unit / median(backwards),
        "useful_gflops": 6 * unit / both,
        "done_gflops": 8 * unit / both,
    }


if __name__ == "__main__":
    main()
