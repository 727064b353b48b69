"""fastText text (.vec): the lines of word2vec text under another extension."""

from __future__ import annotations

from dataclasses import replace

from . import word2vec_text

FORMAT = replace(word2vec_text.FORMAT, name="fasttext-vec", extension=".vec")
