"""Learns vectors and language models over very large vocabularies."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING

from skipgrad import heads
from skipgrad.auditing import Audit, audit
from skipgrad.corpus import Corpus, CorpusOptions
from skipgrad.evaluation import evaluate
from skipgrad.model import CBOW, SkipGram
from skipgrad.text import TextOptions
from skipgrad.training import Progress, Training
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab, VocabOptions

if TYPE_CHECKING:
    from skipgrad import torch as torch
else:

    def __getattr__(name: str) -> object:
        """`skipgrad.torch` is imported at its first use: it takes a second, and needs an extra."""
        if name == "torch":
            from importlib import import_module

            return import_module("skipgrad.torch")
        raise AttributeError(f"skipgrad has no {name!r}")


__all__ = [
    "CBOW",
    "Audit",
    "Corpus",
    "CorpusOptions",
    "Progress",
    "SkipGram",
    "TextOptions",
    "Training",
    "Vectors",
    "Vocab",
    "VocabOptions",
    "__version__",
    "audit",
    "evaluate",
    "heads",
]
