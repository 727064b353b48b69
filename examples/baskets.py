"""Vectors of products from market baskets: a basket is a sentence, a product a word, and order says nothing.

    python examples/baskets.py baskets.txt

reads a basket a line, products with blanks between them. Without a file it makes baskets up, in which a product goes
with others of its kind.
"""

from __future__ import annotations

import random
import sys

import skipgrad as sg


def made_up(baskets: int = 20_000, seed: int = 1) -> list[list[str]]:
    """Baskets of two kinds each, out of ten kinds of twenty products."""
    draw = random.Random(seed)
    kinds = ["bread", "fruit", "cheese", "tools", "paper", "pasta", "soap", "toys", "wine", "plants"]
    return [
        [f"{kind}{draw.randrange(20)}" for kind in draw.sample(kinds, 2) for _ in range(draw.randint(2, 5))]
        for _ in range(baskets)
    ]


if __name__ == "__main__":
    corpus = sg.Corpus.build(sys.argv[1] if len(sys.argv) > 1 else made_up())
    # A window as wide as a basket: every pair of products in it counts.
    vectors = sg.SkipGram(dim=32, window=20).fit(corpus, epochs=5)
    for product in corpus.vocab.words[:5].to_pylist():
        print(product, *(near for near, _ in vectors.nearest(product, 5)))
