"""What every head has: options, a distribution of draws, and a definition in float64 that judges its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]


class Answer(NamedTuple):
    """The loss of one prediction, and d loss / d score for its own rows and for the drawn ones."""

    loss: float
    own: Doubles
    drawn: Doubles


class Definition(Protocol):
    """A head on a vocabulary: which rows of the output table are scored, and what is made of the scores."""

    @property
    def rows(self) -> int:
        """Of the output table."""

    @property
    def bias(self) -> Doubles | None:
        """What is added to the scores of the rows at the start of training; it is learned. None: no bias."""

    @property
    def q(self) -> Doubles | None:
        """The distribution that rows are drawn from; None where nothing is drawn."""

    @property
    def own_rows(self) -> float:
        """About how many rows are scored because of one word that is to be predicted."""

    def own(self, outputs: Ids) -> Ids:
        """The rows that are scored because these words are to be predicted."""

    def answer(self, outputs: Ids, weights: Doubles, draws: Ids, own: Doubles, drawn: Doubles) -> Answer:
        """Loss and residuals, from the scores of `own(outputs)` and of the draws."""

    def native(self, draws: int) -> dict[str, Any]:
        """What the native kernel needs to know, for so many draws a block."""


class Head(Protocol):
    """Options of a head."""

    name: ClassVar[str]

    def define(self, counts: Counts) -> Definition:
        """The head on a vocabulary with these counts."""

    def draws(self, contexts: float) -> int:
        """Rows that a block of tokens shares (N), where a hidden vector predicts so many words; 0 for none."""

    def block(self, contexts: float) -> int:
        """Tokens in a block (T)."""


@dataclass(frozen=True)
class Prediction:
    """A hidden vector, as a weighted sum of input rows, and the words it predicts."""

    inputs: Sequence[int]
    shares: Sequence[float]
    outputs: Sequence[int]
    weights: Sequence[float]


def step(
    definition: Definition,
    input: Doubles,
    output: Doubles,
    bias: Doubles | None,
    groups: Sequence[Sequence[Prediction]],
    draws: Sequence[int],
    lr: float,
) -> float:
    """One step of gradient descent in float64, in place, and its loss: the slow twin that judges the kernels.

    h = sum_k share_k v_k; s = U_R h + b_R; r = d loss / d s; dL/dv_k = share_k U_R^T r; dL/dU_R = r h^T; dL/db_R = r

    Hidden vectors and the scores of draws are those at the start of the step; the words' own rows are those that the
    groups before left.
    """
    drawn_ids, start, drawn_rows = np.array(draws, np.int64), input.copy(), output[list(draws)]
    drawn_bias = np.zeros(len(draws)) if bias is None else bias[drawn_ids]
    moves, loss = np.zeros_like(drawn_rows), 0.0
    bias_moves = np.zeros(len(draws))
    for group in groups:
        rows, offsets = output.copy(), np.zeros(len(output)) if bias is None else bias.copy()
        for one in group:
            h = np.array(one.shares) @ start[list(one.inputs)]
            outputs = np.array(one.outputs, np.int64)
            own = definition.own(outputs)
            scores = rows[own] @ h + offsets[own], drawn_rows @ h + drawn_bias
            answer = definition.answer(outputs, np.array(one.weights, np.float64), drawn_ids, *scores)
            loss += answer.loss
            gradient = answer.own @ rows[own] + answer.drawn @ rows[drawn_ids]
            np.subtract.at(input, np.array(one.inputs, np.int64), lr * np.outer(one.shares, gradient))
            np.subtract.at(output, own, lr * np.outer(answer.own, h))
            moves += lr * np.outer(answer.drawn, h)
            bias_moves += lr * answer.drawn
            if bias is not None:
                np.subtract.at(bias, own, lr * answer.own)
    np.subtract.at(output, drawn_ids, moves)
    if bias is not None:
        np.subtract.at(bias, drawn_ids, bias_moves)
    return loss
