"""Distributions that words are drawn from, and their tables for exact inversion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from skipgrad.heads.head import Counts, Doubles

Name = Literal["unigram", "uniform", "log-uniform", "bigram", "adaptive"]


@dataclass(frozen=True)
class Proposal:
    """Where draws come from: q ~ count^exponent, uniform, or q_k ~ log((k+2)/(k+1)) of a word's rank k.

    Two more begin as the unigram's: "bigram" is mixed with what is seen around the words of a block (see Near), and
    "adaptive" follows the model while it is trained.

    >>> Proposal("uniform").q(np.array([7, 2, 1])).round(3).tolist()
    [0.333, 0.333, 0.333]
    >>> Proposal("unigram").q(np.array([7, 2, 1])).round(3).tolist()
    [0.7, 0.2, 0.1]
    """

    name: Name
    exponent: float = 1.0

    def q(self, counts: Counts) -> Doubles:
        """The probability of each word."""
        ranks = np.arange(len(counts))
        known = np.maximum(counts, 1).astype(np.float64)
        if self.name in ("unigram", "bigram", "adaptive") and (counts > 0).any():
            weights = np.where(counts > 0, known**self.exponent, 0.0)
        elif self.name == "log-uniform":
            weights = np.log((ranks + 2) / (ranks + 1))
        else:
            weights = np.ones(len(counts))
        result: Doubles = weights / weights.sum()
        return result


def check_exponent(exponent: float) -> None:
    """Refuse an exponent that no text needs."""
    if not (math.isfinite(exponent) and -2 <= exponent <= 2):
        raise ValueError(f"exponent is {exponent}, but must be from -2 to 2; 0.75 suits most texts.")


def check_proposal(name: Name, exponent: float) -> None:
    """Refuse an exponent of a distribution that has none."""
    check_exponent(exponent)
    if name != "unigram" and exponent != 1:
        raise ValueError(f"exponent is {exponent}, but the proposal is {name}, which has none: leave one of them out.")


def cumulative(q: Doubles) -> npt.NDArray[np.uint64]:
    """The cumulative distribution in units of 2^-64: word w is drawn for cumulative[w-1] <= u < cumulative[w]."""
    sums = np.cumsum(q)
    scaled = np.minimum(sums * (2.0**64 / sums[-1]), np.nextafter(2.0**64, 0))
    units: npt.NDArray[np.uint64] = scaled.astype(np.uint64)
    units[sums >= sums[-1]] = np.iinfo(np.uint64).max
    return units


def log_share(counts: Counts) -> Doubles:
    """log(count / all), where a bias starts: the scores are then right for words that know nothing of each other."""
    known = np.maximum(counts, 1)
    shares: Doubles = np.log(known / known.sum())
    return shares
