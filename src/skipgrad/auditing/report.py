"""An audit in words and rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skipgrad.auditing.result import REACH, ROUNDING, Audit, Estimate

ENOUGH = 10.0
"""Effective draws: a mean over so many has the error 1/sqrt(10), a third of what is averaged."""
SMALL = 0.1
"""Relative bias: the cosine of mean step and gradient is then above 0.995; noise averages out over steps, bias not."""
RISK = "But in one context {} of the probability is on words that are hardly ever drawn: watch the loss in training."
STEADY = 0.5
"""Standard deviation of log Z: probabilities of two contexts then compare within a factor of about e^0.5."""

COLUMNS = (
    "proposal", "draws", "bias", "+-", "predicted", "typical", "noise", "ESS", "predicted ESS", "loss bias", "+-",
    "log Z drift", "unreached", "worst", "hits", "Mflop", "us",
)  # fmt: skip


def rows(audit: Audit) -> Iterator[tuple[object, ...]]:
    """A row for each proposal and number of draws; biases and noise in % of the gradient."""
    for one in audit.estimates:
        yield (
            one.proposal,
            one.samples,
            *map(percent, (one.bias, one.bias_error, one.predicted, one.typical, one.noise)),
            *(_number(value, 1) for value in (one.ess, one.ess_predicted)),
            *(_number(value, 4) for value in (one.loss_bias, one.loss_bias_error)),
            _number(one.log_z_drift, 3),
            *map(percent, (one.unreached, one.unreached_worst)),
            percent(one.hits),
            f"{one.cost.flop / 1e6:.3g}",
            f"{one.cost.microseconds:.0f}",
        )


def percent(share: float) -> str:
    """Two digits of a share in %.

    >>> percent(0.0123), percent(0.5), percent(1e-9), percent(12.3)
    ('1.2 %', '50 %', '0 %', '1230 %')
    """
    if math.isnan(share):
        return "-"
    if abs(share) < ROUNDING:
        return "0 %"
    return f"{100 * share:.{max(0, 1 - math.floor(math.log10(100 * abs(share))))}f} %"


def sentences(audit: Audit) -> list[str]:
    """What was looked at, what the head estimates, and whether the settings suit it."""
    verdict = {"softmax": _softmax, "own": _own, "exact": _exact}[audit.kind]
    return [audit.probe, audit.scores, *verdict(audit)]


def _softmax(audit: Audit) -> Iterator[str]:
    exact = audit.exact
    yield (
        f"{audit.head} estimates the gradient of the exact softmax, which takes {exact.flop / 1e6:.3g} Mflop and "
        f"{exact.microseconds:.0f} us a prediction; log Z is {audit.log_z:.2f} and differs by {audit.log_z_drift:.2f} "
        "between contexts."
    )
    if audit.options.get("target") == "drawn":
        yield 'With target "drawn" its loss is not that of the softmax: only the gradients are comparable.'
    for name in audit.proposals:
        yield f"{name}: {_advice(audit.of(name))}"


def _advice(estimates: list[Estimate]) -> str:
    """The smallest number of draws that is enough, or what is wrong."""
    last = estimates[-1]
    if not last.explained:
        return (
            f"the mean gradient is {percent(last.typical)} off with {last.samples:,} draws, where the draws explain "
            f"{percent(last.typical_predicted)}: the head's correction for the proposal is wrong."
        )
    if last.unreached > REACH:
        return (
            f"{percent(last.unreached)} of the probability is on words that {last.samples:,} draws hardly ever reach: "
            "the proposal is far from the model, or the model has diverged."
        )
    enough = [one for one in estimates if one.ess_predicted >= ENOUGH and one.bias + 2 * one.bias_error <= SMALL]
    if not enough:
        short = last.ess_predicted < ENOUGH
        why = f"{last.ess_predicted:.1f} effective draws" if short else f"a bias of {percent(last.bias)}"
        return f"{last.samples:,} draws are too few, with {why}: draw more, or from a proposal nearer to the model."
    first = enough[0]
    return (
        f"{first.samples:,} draws or more suit this model: a bias of {percent(first.bias)} of the gradient (limit "
        f"{percent(SMALL)}), {first.ess_predicted:.0f} effective draws (at least {ENOUGH:.0f}), noise of "
        f"{percent(first.noise)}."
        + (f" {RISK.format(percent(first.unreached_worst))}" if first.unreached_worst > REACH else "")
    )


def _own(audit: Audit) -> Iterator[str]:
    yield (
        f"{audit.head} estimates its own objective, no softmax: its mean gradient differs from the softmax's "
        f"by {percent(audit.softmax_gap)} of that."
    )
    for name in audit.proposals:
        last = audit.of(name)[-1]
        right = f"the objective's; the noise of {last.samples:,} draws is {percent(last.noise)}."
        wrong = f"{percent(last.bias)} off the objective's: noise words are weighed wrongly, or left out."
        yield f"{name}: the mean gradient over draws is {right if last.explained else wrong}"
    steady = abs(audit.log_z) <= STEADY and audit.log_z_drift <= STEADY
    yield (
        f"Taken as it means them, its scores are probabilities that sum to exp({audit.log_z:.2f}), and log Z differs "
        f"by {audit.log_z_drift:.2f} between contexts: "
        + (f"nearly normalised (both below {STEADY})." if steady else f"not normalised (the limit is {STEADY}).")
    )


def _exact(audit: Audit) -> Iterator[str]:
    cost, fails = audit.exact, max(audit.sum_error, audit.gradient_error) > ROUNDING
    says = "should be exact for its own distribution, and is not" if fails else "is exact for its own distribution"
    yield (
        f"{audit.head} {says}: "
        f"its probabilities sum to one within {audit.sum_error:.1e}, and its gradient is that of -log P within "
        f"{audit.gradient_error:.1e}. Nothing is drawn, so there is no noise."
    )
    yield (
        f"A prediction scores {cost.rows:,.0f} of {audit.words:,} rows in the mean: {cost.flop / 1e6:.3g} Mflop, "
        f"{cost.microseconds:.0f} us."
    )


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
