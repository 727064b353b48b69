"""What a model learns: tables of vectors, and the native kernel that works on them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skipgrad import _native
from skipgrad.heads import importance

if TYPE_CHECKING:
    from skipgrad.heads.near import Near
    from skipgrad.model import Model

Floats = npt.NDArray[np.float32]

LOG_Z_RATE = 0.1  # of its gradient a pair, after each call of the kernel
MOST_DRAWS = 8192  # a block: more of them cost memory and gain little


class Parameters:
    """The tables of a model over a vocabulary, as they are before the first step."""

    def __init__(self, model: Model, counts: npt.NDArray[np.int64], seed: int, near: Near | None = None) -> None:
        self.model, self.counts, self.near = model, counts, near
        self.definition = model.head.define(counts)
        self.input = start_vectors(len(counts), model.dim, seed)
        self.output = aligned_rows(self.definition.rows, model.dim)
        self.bias = None if self.definition.bias is None else self.definition.bias.astype(np.float32)
        self.draws = model.head.draws(model.contexts)
        self.follows = getattr(model.head, "proposal", "") == "adaptive"
        self.mass = np.zeros(len(counts), np.float32) if self.follows else None
        self.log_z = getattr(model.head, "log_z", 0.0)
        self.bias_sum = self._bias_sum()

    def kernel(self, isa: str) -> _native.Kernel:
        """The native kernel on these tables."""
        model = self.model
        return _native.Kernel(
            isa,
            model.head.name,
            model.encoder,
            self.input,
            self.output,
            self.bias,
            model.dim,
            keep_thresholds(self.counts, model.sample),
            model.window,
            model.head.block(model.contexts),
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        options = self.definition.native(self.draws) | {"mass": self.mass}
        if self.near is not None:
            options |= self.near.native() | {"offset": None}
        return options

    def adapt(self, effective: float) -> bool:
        """Follows the model with the proposal, and draws more where few draws count; whether there is a new kernel.

        `effective` is the mean effective sample size since the last time.
        """
        head, changed = self.model.head, False
        if self.mass is not None and self.mass.any() and isinstance(self.definition, importance.Definition):
            self.definition.follow(self.mass.astype(np.float64))
            self.mass[:] = 0
            changed = True
        wanted = getattr(head, "effective", 0.0)
        most = min(MOST_DRAWS, len(self.counts) // 8 * 8)
        if effective < wanted and self.draws < most:
            growth = min(2.0, 1.1 * wanted / max(effective, 1.0))
            self.draws = min(most, -(-int(self.draws * growth) // 8) * 8)
            changed = True
        return changed

    def learn_log_z(self, pairs: float, lr: float) -> None:
        """Moves log Z against its gradient, which is the sum of those of all biases; every bias takes it up at once.

        dL/d log Z = -sum of all residuals = sum_w change of b_w / lr, since b_w moves by -lr times its residuals.
        """
        if self.bias is None or not getattr(self.model.head, "learn_z", False):
            return
        step = LOG_Z_RATE * (self._bias_sum() - self.bias_sum) / max(lr * pairs, 1e-30)
        self.bias += np.float32(step)
        self.log_z -= step
        self.bias_sum = self._bias_sum()

    def _bias_sum(self) -> float:
        return 0.0 if self.bias is None else float(self.bias.sum(dtype=np.float64))

    def rows_a_token(self) -> float:
        """About how many output rows a token is scored against."""
        return self.draws + self.model.contexts * self.definition.own_rows

    def tables(self) -> dict[str, Any]:
        """The learned tables under the names that they are saved with."""
        words, dim = len(self.counts), self.model.dim
        tables: dict[str, Any] = {"input": self.input[:, :dim]}
        tree = getattr(self.definition, "tree", None)
        if tree is not None:
            return tables | {"nodes": self.output[:, :dim], "tree": tree.links}
        tables["output"] = self.output[:words, :dim]
        if self.bias is not None:
            tables["bias"] = self.bias[:words, None]
            if self.definition.rows > words:
                tables["clusters"] = np.column_stack([self.output[words:, :dim], self.bias[words:]])
        return tables


def aligned_rows(rows: int, dim: int) -> Floats:
    """Rows of zeros, padded to 16 numbers and aligned to 64 bytes."""
    stride = -(-dim // 16) * 16
    memory = np.zeros(rows * stride + 16, np.float32)
    skip = -memory.ctypes.data % 64 // 4
    return memory[skip : skip + rows * stride].reshape(rows, stride)


def start_vectors(words: int, dim: int, seed: int) -> Floats:
    """Input vectors, uniform in -0.5/dim .. 0.5/dim."""
    table = aligned_rows(words, dim)
    random = np.random.Generator(np.random.Philox(seed))
    rows = max(1, (1 << 20) // dim)
    for begin in range(0, words, rows):
        part = table[begin : begin + rows, :dim]
        part[:] = (random.random(part.shape, np.float32) - np.float32(0.5)) / np.float32(dim)
    return table


def keep_thresholds(counts: npt.NDArray[np.int64], sample: float) -> npt.NDArray[np.uint32]:
    """The probability min(1, sqrt(s/f) + s/f) to keep a token of each word, times 2^32 - 1."""
    share = np.maximum(counts, 1) / max(1, int(counts.sum()))
    keep = np.sqrt(sample / share) + sample / share if sample else np.ones(len(counts))
    return (np.minimum(keep, 1.0) * (2**32 - 1)).astype(np.uint32)


def instruction_set() -> str:
    """The fastest instruction set of this machine, or the one that SKIPGRAD_ISA names."""
    found = _native.instruction_sets()
    chosen = os.environ.get("SKIPGRAD_ISA") or found[-1]
    if chosen not in found:
        raise ValueError(f"SKIPGRAD_ISA is {chosen!r}, but this machine has {', '.join(found)}: set it to one of them.")
    return chosen
