"""Draws that depend on a block's words, that follow the model, and that grow in number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import skipgrad as sg
from skipgrad import _native
from skipgrad.heads import Importance, Nce, Sampled
from skipgrad.heads.head import step
from skipgrad.heads.near import Near
from skipgrad.parameters import Parameters
from tests.test_heads import ENCODERS, Setup, every_encoder, every_isa, zipf


def random_near(words: int, p: npt.NDArray[np.float64], exact: int = 0, seed: int = 0) -> Near:
    """A sparse random matrix of counts, some rows of which are empty."""
    random = np.random.default_rng(seed)
    sizes = random.integers(0, min(words - exact, 40), words)
    rows = [np.sort(random.choice(np.arange(exact, words), size, replace=False)) for size in sizes]
    columns = np.concatenate(rows).astype(np.int32)
    values = random.integers(1, 100, len(columns)).astype(np.float32)
    return Near.of(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), columns, values, p, exact)


@every_isa
@every_encoder
@pytest.mark.parametrize(
    "head", [Importance(samples=16), Importance(samples=16, exact=8), Sampled(samples=24, proposal="bigram")]
)
def test_a_step_with_near_words_is_that_of_the_mixture(isa: str, encoder: str, head: Any) -> None:
    """The definition is given the mixture over the block's tokens as its q; in CBOW, over the words beside them."""
    setup = Setup(isa, 300, 20, head, encoder)
    exact = getattr(head, "exact", 0)
    near = random_near(300, setup.definition.q, exact)
    setup.parameters.near = near
    kernel = setup.parameters.kernel(isa)
    for lr in (0.05, 0.01):
        groups, (tokens, places, shapes) = setup.block(16)
        draws = setup.draws()
        given = tokens.tolist() if encoder == "skipgram" else beside(places, shapes)
        definition = head.define(zipf(300))
        definition.q = near.q(given)
        loss = kernel.step(tokens, places, shapes, draws, 0, lr)[3]
        assert loss == pytest.approx(
            step(definition, *setup.tables, setup.bias64, groups, draws.tolist(), lr), rel=2e-5
        )
    setup.agrees()


def beside(places: npt.NDArray[np.int32], shapes: npt.NDArray[np.int32]) -> list[int]:
    """The word before each token, or the one behind it at the start of a sentence."""
    found, first = [], 0
    for size, count, lead in shapes.tolist():
        found += [int(places[first + (t - 1 if t else t + 1)]) for t in range(lead, lead + size)]
        first += count
    return found


def test_near_words_are_the_most_frequent_ones_and_sum_to_one() -> None:
    p = np.full(500, 1 / 500)
    near = random_near(500, p, exact=16)
    shares = np.diff(near.cumulative.astype(np.float64), prepend=0.0, axis=1)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert near.words.min() >= 16
    assert (np.diff(near.words, axis=1) >= 0).all()
    assert near.q([3, 7, 7]).sum() == pytest.approx(1)


def test_lists_stay_within_their_budget() -> None:
    words = 200_000
    empty = np.zeros(words + 1, np.int64)
    near = Near.of(empty, np.zeros(0, np.int32), np.zeros(0, np.float32), np.full(words, 1 / words))
    assert near.words.nbytes + near.cumulative.nbytes <= 2**27


def topics(sentences: int) -> list[list[str]]:
    random = np.random.default_rng(0)
    return [[f"{chr(97 + t)}{w}" for w in random.integers(0, 15, 12)] for t in random.integers(0, 20, sentences)]


@pytest.fixture(scope="module")
def text() -> sg.Corpus:
    return sg.Corpus.build(topics(4000), min_count=1, cache=False)


@pytest.mark.parametrize("encoder", [sg.SkipGram, sg.CBOW])
@pytest.mark.parametrize("head", [Importance(), Importance(proposal="adaptive"), Sampled(proposal="bigram")])
def test_it_learns_which_words_go_together(text: sg.Corpus, encoder: Any, head: Any) -> None:
    vectors = encoder(dim=20, sample=0, head=head).fit(text, epochs=5, threads=1)
    near = [word for word, _ in vectors.nearest("c3", n=10)]
    assert sum(word[0] == "c" for word in near) >= 8


def test_more_is_drawn_until_enough_draws_count(text: sg.Corpus) -> None:
    head = Importance(samples=16, proposal="uniform", effective=40)
    history = sg.SkipGram(dim=20, sample=0, head=head).fit(text, epochs=3, lr=0.002, threads=1).metadata["history"]
    assert history[-1]["draws"] > 16
    assert history[-1]["effective"] > 30
    fixed = sg.SkipGram(dim=20, sample=0, head=Importance(samples=16, proposal="uniform"))
    assert fixed.fit(text, epochs=1, threads=1).metadata["history"][0]["draws"] == 16


def test_the_adaptive_proposal_follows_the_model() -> None:
    """A model that is certain of one word gives it all of the mass, and the proposal comes to draw little else."""
    model = sg.SkipGram(dim=4, sample=0, head=Importance(samples=16, proposal="adaptive"))
    parameters = Parameters(model, zipf(50), 1)
    assert parameters.mass is not None
    assert parameters.bias is not None
    parameters.bias[7] = 20
    ids = np.random.default_rng(0).integers(0, 50, 600, dtype=np.int32)
    ids[19::20] = -1
    for _ in range(40):
        kernel = parameters.kernel(_native.instruction_sets()[-1])
        scratch = np.empty(kernel.scratch(len(ids)) + 64, np.uint8)
        sums = kernel.run(True, ids, 0, 1, 2, 0.0, 0.0, 0.0, scratch)
        assert parameters.adapt(sums[4] / sums[2])
    assert parameters.definition.q is not None
    assert parameters.definition.q[7] > 0.7
    assert parameters.definition.q.min() > 0


def test_log_z_is_learned(text: sg.Corpus) -> None:
    """From a start that is far off it comes most of the way, and sooner than the biases of the words alone."""
    losses = {}
    for learn in (False, True):
        head = Nce(negatives=5, log_z=0.0, learn_z=learn)
        parameters = Parameters(sg.SkipGram(dim=10, sample=0, head=head), text.vocab.counts, 1)
        assert parameters.bias is not None
        parameters.bias += 3  # scores that are too large by 3: log Z should become about 3
        parameters.bias_sum += 3.0 * len(parameters.bias)
        kernel = parameters.kernel(_native.instruction_sets()[-1])
        ids = np.array(text.ids)
        scratch = np.empty(kernel.scratch(len(ids)) + 64, np.uint8)
        for key in range(30):
            sums = kernel.run(True, ids[:1300], 0, key, 2, 0.0, 0.001, 0.001, scratch)
            parameters.learn_log_z(sums[2], 0.001)
        losses[learn] = sums[3] / sums[2]
        assert (parameters.log_z > 1) == learn
    assert losses[True] < losses[False] - 0.1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Sampled(target="drawn", proposal="bigram"), "target is drawn"),
        (lambda: Sampled(proposal="adaptive"), "only the head importance"),
        (lambda: Importance(effective=-1), "effective is -1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_every_encoder_is_here() -> None:
    assert set(ENCODERS) == {"skipgram", "mean", "sum"}
