"""The output heads: how a hidden vector predicts words, each with its float64 definition."""

from skipgrad.heads.negative import Negative

Head = Negative
HEADS: dict[str, type[Head]] = {"negative": Negative}

__all__ = ["HEADS", "Head", "Negative"]
