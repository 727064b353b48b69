"""Learns vectors and language models over very large vocabularies."""

__version__ = "0.1.0"

from skipgrad import heads
from skipgrad.auditing import Audit, audit
from skipgrad.corpus import Corpus, CorpusOptions
from skipgrad.evaluation import evaluate
from skipgrad.model import CBOW, SkipGram
from skipgrad.text import TextOptions
from skipgrad.training import Progress, Training
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab, VocabOptions

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
