"""What an audit found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["softmax", "own", "exact"]

REACH = 0.05
"""Share of a softmax that no draws push down: scores with that share can grow until they have all of it."""
ROUNDING = 1e-6  # a relative bias below this is none: scores and rows are float32


@dataclass(frozen=True)
class Cost:
    """Of one prediction that draws for itself: scores of rows, residuals, and the gradients of h and of the rows."""

    rows: float
    flop: float
    microseconds: float
    """In NumPy, the fastest of some runs: the fixed cost of a call is in it."""


@dataclass(frozen=True)
class Estimate:
    """A head with one proposal and one number of draws; gradients of h are relative to the length of the exact one."""

    proposal: str
    samples: int
    bias: float
    """Root mean square, over predictions, of |mean gradient - exact gradient|."""
    bias_error: float
    """Its standard error, by the jackknife over draws; where that is larger than the bias, the bias is below it."""
    predicted: float
    """The first-order bias, right where N is well above 1 + chi2(p, q); NaN for heads that have none."""
    typical: float
    """The bias over the half of the predictions that the proposal suits best: the others' few words of great weight
    make up most of the mean square."""
    typical_error: float
    typical_predicted: float
    noise: float
    """Standard deviation of one estimate."""
    ess: float
    """Effective draws (sum w)^2 / sum w^2, the mean; NaN where draws have no weights."""
    ess_predicted: float
    """N / (1 + chi2(p, q)), the mean."""
    unreached: float
    """sum_w max(0, p_w - P(w is drawn)), the mean: no draws push this share of the probability down, as weights are at
    most 1. NaN where draws have no weights."""
    unreached_worst: float
    """The largest over predictions. A score that nothing pushes down grows: training may diverge."""
    loss_bias: float
    loss_bias_error: float
    log_z: float
    """The mean estimate of log Z; NaN for heads that do not estimate it."""
    log_z_drift: float
    """How much it differs between contexts (standard deviation of its means over draws)."""
    hits: float
    """Share of predictions that draw the word they predict."""
    cost: Cost

    @property
    def explained(self) -> bool:
        """Whether the bias is what the draws explain; if not, the head's correction is wrong.

        Where draws do not reach the model's likely words, that explains any bias.
        """
        if math.isnan(self.predicted):
            return self.bias - 3 * self.bias_error <= ROUNDING
        if self.unreached > REACH:
            return True
        return self.typical - 3 * self.typical_error <= 3 * self.typical_predicted + 0.01


@dataclass(frozen=True)
class Audit:
    """All estimates of a head on a model, and what they are held against."""

    head: str
    options: dict[str, Any]
    """Of the head."""
    kind: Kind
    """What is held against what: `softmax`, the exact softmax; `own`, the head's mean; `exact`, nothing is drawn."""
    words: int
    dim: int
    predictions: int
    replicates: int
    seed: int
    probe: str
    scores: str
    loss: float
    """Mean exact loss of the probe."""
    log_z: float
    """Mean of log Z of the scores, taken as log probabilities: 0 if they are normalised."""
    log_z_drift: float
    """Its standard deviation over contexts, which NCE takes for 0."""
    softmax_gap: float
    """How far the head's mean gradient is from the softmax's, relative to it; NaN where that is the target itself."""
    sum_error: float
    """Largest |log sum P| over contexts, of heads that are exact; NaN elsewhere."""
    gradient_error: float
    """Largest relative difference of their gradient from finite differences of -log P."""
    exact: Cost
    """Of the exact softmax; of the head itself where nothing is drawn."""
    estimates: tuple[Estimate, ...]

    @property
    def proposals(self) -> list[str]:
        """Names of the proposals, in order."""
        return list(dict.fromkeys(estimate.proposal for estimate in self.estimates))

    def of(self, proposal: str) -> list[Estimate]:
        """The estimates of a proposal, N rising."""
        return sorted((one for one in self.estimates if one.proposal == proposal), key=lambda one: one.samples)

    def slope(self, proposal: str, typical: bool = False, least: int = 0) -> tuple[float, float]:
        """The slope of log bias over log N and its standard error, by least squares; NaN for one point.

        -1 is what a weighted mean has once N is well above 1 + chi2(p, q). Biases count that are above twice their
        error, with at least so many draws.
        """
        ones = [one for one in self.of(proposal) if one.samples >= least]
        pairs = [(one.typical, one.typical_error) if typical else (one.bias, one.bias_error) for one in ones]
        points = np.array(
            [
                (one.samples, bias, error)
                for one, (bias, error) in zip(ones, pairs, strict=True)
                if bias > max(2 * error, ROUNDING)
            ]
        )
        if len(points) < 2:
            return math.nan, math.nan
        x, y, errors = np.log(points[:, 0]), np.log(points[:, 1]), points[:, 2] / points[:, 1]
        x = x - x.mean()
        # all points count alike: errors are estimates too, and a bias that came out small has a small one
        return float(x @ y / (x @ x)), float(np.linalg.norm(x * errors) / (x @ x))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: NaN is None; with the slopes."""
        slopes = {name: {"all": self.slope(name), "typical": self.slope(name, True)} for name in self.proposals}
        found: dict[str, Any] = _plain(asdict(self) | {"slopes": slopes})
        return found

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Audit:
        """What `to_dict` made."""
        facts = _with_nan({name: value for name, value in facts.items() if name != "slopes"})
        estimates = tuple(Estimate(**{**one, "cost": Cost(**one["cost"])}) for one in facts.pop("estimates"))
        return cls(**facts | {"exact": Cost(**facts["exact"])}, estimates=estimates)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _with_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_nan(item) for item in value]
    return math.nan if value is None else value
