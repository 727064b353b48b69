"""What a model learns: tables of vectors, and the native kernel that works on them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skipgrad import _native

if TYPE_CHECKING:
    from skipgrad.model import Model

Floats = npt.NDArray[np.float32]


class Parameters:
    """The tables of a model over a vocabulary, as they are before the first step."""

    def __init__(self, model: Model, counts: npt.NDArray[np.int64], seed: int) -> None:
        self.model, self.counts = model, counts
        self.definition = model.head.define(counts)
        self.input = start_vectors(len(counts), model.dim, seed)
        self.output = aligned_rows(self.definition.rows, model.dim)
        self.bias = None if self.definition.bias is None else self.definition.bias.astype(np.float32)
        self.draws = model.head.draws(model.contexts)

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
            **self.definition.native(self.draws),
        )

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
