"""The output heads: how a hidden vector predicts words, each with its float64 definition."""

from typing import Any

from skipgrad.heads.adaptive import Adaptive
from skipgrad.heads.head import Definition, Head
from skipgrad.heads.hierarchical import Hierarchical
from skipgrad.heads.importance import Importance
from skipgrad.heads.nce import Nce
from skipgrad.heads.negative import Negative
from skipgrad.heads.sampled import Sampled
from skipgrad.heads.softmax import Softmax
from skipgrad.heads.tree import Tree

HEADS: dict[str, type[Any]] = {
    head.name: head for head in (Negative, Softmax, Hierarchical, Importance, Sampled, Nce, Adaptive)
}

__all__ = [
    "HEADS", "Adaptive", "Definition", "Head", "Hierarchical", "Importance", "Nce", "Negative", "Sampled", "Softmax",
    "Tree",
]  # fmt: skip
