"""Draws of a head, many times over, against what their mean should be."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skipgrad.auditing.exact import Model, Target
from skipgrad.auditing.probe import inverted
from skipgrad.auditing.result import Cost, Estimate
from skipgrad.heads.head import Doubles, Ids

GROUPS = 16  # of replicates, for the jackknife
RUNS = 60  # of a prediction, for its time: the fastest, since others share the machine


class Measured(NamedTuple):
    """One prediction, over all replicates; d is the gradient less its control and the exact one."""

    d: Doubles  # sums over groups of replicates (G, D)
    d_square: Doubles  # (G)
    variance: float  # of the gradient itself: the trace
    square: float  # |exact gradient|^2
    predicted: float  # |first-order bias|^2
    loss: float  # mean loss less the exact one
    loss_variance: float
    log_z: float
    ess: float
    ess_predicted: float
    unreached: float
    hits: float


def measure(model: Model, definition: Any, output: int, scores: Doubles, target: Target, draws: Ids) -> Measured:
    """One prediction with draws (M, N), each row a replicate: the head's own `answer`, every time."""
    exact = np.arange(getattr(definition, "exact", 0))
    outputs, one = np.array([output]), np.ones(1)
    own = definition.own(outputs)
    own_rows, own_scores = model.rows(own), scores[own]
    replicates, number = draws.shape
    raw, control = np.empty((2, replicates, model.table.shape[1]))
    loss, loss_control, ess = np.empty((3, replicates))
    for m in range(replicates):
        ids = np.concatenate([exact, draws[m]])
        answer = definition.answer(outputs, one, ids, own_scores, scores[ids])
        a = target.a[draws[m]] / number
        both = np.stack([answer.drawn, np.concatenate([np.zeros(len(exact)), a])]) @ model.rows(ids)
        raw[m] = both[0] + answer.own @ own_rows
        control[m] = both[1] - a.sum() * target.centre - target.mean
        loss[m], loss_control[m] = answer.loss, a.sum()
        w = answer.drawn[len(exact) :]
        ess[m] = w.sum() ** 2 / max(w @ w, 1e-300)
    d = raw - control - target.gradient
    groups = np.arange(replicates) * GROUPS // replicates
    losses = loss - target.loss - (0.0 if np.isnan(target.loss_mean) else loss_control - target.loss_mean)
    return Measured(
        d=np.stack([d[groups == g].sum(axis=0) for g in range(GROUPS)]),
        d_square=np.array([(d[groups == g] ** 2).sum() for g in range(GROUPS)]),
        variance=float(raw.var(axis=0, ddof=1).sum()),
        square=float(target.gradient @ target.gradient),
        predicted=float(target.predicted @ target.predicted) / number**2,
        loss=float(losses.mean()),
        loss_variance=float(losses.var(ddof=1)) / replicates,
        log_z=float(losses.mean() + target.loss + scores[output]),
        ess=float(ess.mean()),
        ess_predicted=number / target.spread,
        unreached=unreached(target.a * definition.q, definition.q, number) if target.spread > 0 else np.nan,
        hits=float((draws == output).any(axis=1).mean()),
    )


def unreached(p: Doubles, q: Doubles, samples: int) -> float:
    """sum_w max(0, p_w - (1 - (1 - q_w)^N)): a draw's weight is at most 1, so w gets no more than the chance of a draw.

    >>> unreached(np.array([0.5, 0.5]), np.array([0.75, 0.25]), 1)
    0.25
    """
    return float(np.maximum(0.0, p + np.expm1(samples * np.log1p(-np.minimum(q, 1 - 1e-12)))).sum())


def estimate(proposal: str, samples: int, found: list[Measured], sizes: Ids, cost: Cost) -> Estimate:
    """All predictions of a proposal and a number of draws; `sizes` are those of the groups of replicates."""
    length = sum(one.square for one in found)
    weighted = not np.isnan(found[0].ess_predicted)
    suited = sorted(found, key=lambda one: -one.ess_predicted)[: len(found) // 2] if weighted else found
    bias, error, predicted = relative_bias(found, sizes)
    typical, typical_error, typical_predicted = relative_bias(suited, sizes)
    log_z = np.array([one.log_z for one in found]) if weighted else np.full(1, np.nan)
    return Estimate(
        proposal=proposal,
        samples=samples,
        bias=bias,
        bias_error=error,
        predicted=predicted if weighted else np.nan,
        typical=typical,
        typical_error=typical_error,
        typical_predicted=typical_predicted if weighted else np.nan,
        noise=float(np.sqrt(sum(one.variance for one in found) / length)),
        ess=float(np.mean([one.ess for one in found])) if weighted else np.nan,
        ess_predicted=float(np.mean([one.ess_predicted for one in found])),
        unreached=float(np.mean([one.unreached for one in found])),
        unreached_worst=float(np.max([one.unreached for one in found])),
        loss_bias=float(np.mean([one.loss for one in found])),
        loss_bias_error=float(np.sqrt(sum(one.loss_variance for one in found))) / len(found),
        log_z=float(log_z.mean()),
        log_z_drift=float(log_z.std()),
        hits=float(np.mean([one.hits for one in found])),
        cost=cost,
    )


def relative_bias(found: list[Measured], sizes: Ids) -> tuple[float, float, float]:
    """Root mean square bias, its standard error and what is predicted, relative to the exact gradients' length."""
    length = sum(one.square for one in found)
    square = squared_bias([one.d for one in found], [one.d_square for one in found], sizes) / length
    without = [
        squared_bias(
            [np.delete(one.d, g, axis=0) for one in found],
            [np.delete(one.d_square, g) for one in found],
            np.delete(sizes, g),
        )
        / length
        for g in range(GROUPS)
    ]
    spread = float(np.sqrt((GROUPS - 1) * np.var(without)))  # of the square
    bias = float(np.sqrt(max(square, 0.0)))
    predicted = float(np.sqrt(sum(one.predicted for one in found) / length))
    # that of a root is that of its square over twice the root, and where the root is lost in noise, the root of that
    return bias, spread / (2 * bias) if square > spread else float(np.sqrt(spread)), predicted


def squared_bias(sums: list[Doubles], squares: list[Doubles], sizes: Ids) -> float:
    """Estimate the sum over predictions of |E d|^2, without bias: the mean product of two different replicates.

    (|sum_m d_m|^2 - sum_m |d_m|^2) / (M (M - 1))

    >>> squared_bias([np.array([[2.0], [4.0]])], [np.array([4.0, 16.0])], np.array([1, 1]))
    8.0
    """
    number = int(sizes.sum())
    found = 0.0
    for total, square in zip(sums, squares, strict=True):
        whole = total.sum(axis=0)
        found += float(whole @ whole - square.sum())
    return found / (number * (number - 1))


@dataclass(frozen=True)
class Stopwatch:
    """Costs of one prediction."""

    model: Model
    word: int
    output: int

    def drawn(self, definition: Any, draws: Ids) -> Cost:
        """Of a head that scores its own rows and these."""
        h, table, bias = self.model.input[self.word], self.model.table, self.model.bias
        outputs, one = np.array([self.output]), np.ones(1)
        own = definition.own(outputs)
        ids = np.concatenate([np.arange(getattr(definition, "exact", 0)), draws]).astype(np.int64)

        def run() -> None:
            u, v = table[own], table[ids]
            answer = definition.answer(outputs, one, ids, u @ h + bias[own], v @ h + bias[ids])
            answer.own @ u + answer.drawn @ v
            np.multiply.outer(answer.own, h)
            np.multiply.outer(answer.drawn, h)

        return self._cost(len(own) + len(ids), run)

    def softmax(self) -> Cost:
        """Of the exact softmax over all rows."""
        h, table, bias = self.model.input[self.word], self.model.table, self.model.bias.astype(np.float32)

        def run() -> None:
            scores = table @ h + bias
            p = np.exp(scores - scores.max())
            p /= p.sum()
            p @ table
            np.multiply.outer(p, h)

        return self._cost(len(table), run)

    def _cost(self, rows: float, run: Callable[[], None]) -> Cost:
        seconds = []
        for _ in range(RUNS):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        return Cost(rows, 6.0 * rows * len(self.model.input[self.word]), min(seconds) * 1e6)


def group_sizes(replicates: int) -> Ids:
    """Replicates in each group of the jackknife."""
    return np.bincount(np.arange(replicates) * GROUPS // replicates, minlength=GROUPS)


def draw(q: Doubles, replicates: int, samples: int, random: np.random.Generator) -> Ids:
    """Draws (M, N) from q."""
    return inverted(np.cumsum(q), random, (replicates, samples))
