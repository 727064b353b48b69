"""Expected counts against an enumeration of all that subsampling can do, and what is learned from them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from skipgrad import CBOW, Corpus, Progress, SkipGram, Training, _native, counts
from skipgrad.counts import Counts, Matrix
from skipgrad.counts_training import train_counts
from skipgrad.heads import Negative
from skipgrad.heads.softmax import Softmax
from skipgrad.parameters import keep_thresholds
from skipgrad.training import train


def dense(matrix: Matrix) -> npt.NDArray[np.float64]:
    table = np.zeros((len(matrix), len(matrix)))
    table[matrix.rows(0, len(matrix)), matrix.columns] = matrix.values
    return table


def corpus_of(words: int, sentences: int, length: int, seed: int = 0, skew: float = 1.0) -> Corpus:
    random = np.random.default_rng(seed)
    share = np.arange(1, words + 1) ** -skew
    drawn = random.choice(words, (sentences, length), p=share / share.sum())
    return Corpus.build([[f"w{i}" for i in row] for row in drawn], min_count=1, cache=False)


def topics(words: int, sentences: int, seed: int = 0) -> Corpus:
    """Words that all come together, but not all as often as by chance."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.ones(words), 5)
    return Corpus.build(
        [[f"w{i}" for i in random.choice(words, 30, p=shares[k % 5])] for k in range(sentences)],
        min_count=1, cache=False,
    )  # fmt: skip


def sentences_of(corpus: Corpus) -> list[list[int]]:
    cuts = np.flatnonzero(corpus.ids == -1)
    return [part[part >= 0].tolist() for part in np.split(corpus.ids, cuts)]


def enumerated(corpus: Corpus, window: int, keep: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Every way to keep tokens, with its probability."""
    table = np.zeros((len(corpus.vocab), len(corpus.vocab)))
    for sentence in sentences_of(corpus):
        chance = keep[sentence]
        for kept in itertools.product([False, True], repeat=len(sentence)):
            probability = np.prod(np.where(kept, chance, 1 - chance))
            left = [word for word, is_kept in zip(sentence, kept, strict=True) if is_kept]
            for i, j in itertools.permutations(range(len(left)), 2):
                table[left[i], left[j]] += probability * max(0, 1 - (abs(i - j) - 1) / window)
    return table


@pytest.mark.parametrize("window", [1, 2, 5, 7, 10])
@pytest.mark.parametrize("sample", [0, 0.05, 1e-3])
def test_counts_are_the_mean_over_all_subsampled_texts(window: int, sample: float) -> None:
    corpus = corpus_of(6, 3, 10)
    keep = keep_thresholds(corpus.vocab.counts, sample) / (2**32 - 1)
    table = dense(Counts.build(corpus, window=window, sample=sample).trained)
    expected = enumerated(corpus, window, keep)
    # Walks end where a pair is too faint, at 1e-3 of a full one.
    np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-3 * expected.max())


def test_a_walk_that_ends_early_loses_little() -> None:
    ids = np.random.default_rng(0).zipf(1.3, 300) % 50
    total = 0.0
    whole = Corpus.build([[f"{i}" for i in ids]], min_count=1, cache=False)
    keep = keep_thresholds(whole.vocab.counts, 1e-3) / (2**32 - 1)
    for i, word in enumerate(whole.ids[:-1]):
        seen = 1 - np.arange(6) / 5
        for other in whole.ids[i + 1 : -1]:
            total += 2 * keep[word] * keep[other] * seen[0]
            seen[:-1] += keep[other] * np.diff(seen)
    assert Counts.build(whole, window=5, sample=1e-3).total == pytest.approx(total, rel=1e-3)


def test_the_matrix_is_symmetric_and_in_order() -> None:
    matrix = Counts.build(corpus_of(300, 50, 40), sample=1e-2).trained
    table, words = dense(matrix), len(matrix)
    assert np.array_equal(table, table.T)
    assert (np.diff(matrix.rows(0, words) * words + matrix.columns) > 0).all()
    np.testing.assert_allclose(matrix.sums, table.sum(axis=1), rtol=1e-6)
    assert matrix.total == pytest.approx(table.sum())


def test_threads_and_slabs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(200, 50, 40)
    first = Counts.build(corpus, threads=1, heldout=0.2)
    monkeypatch.setattr(counts, "_PLACE", 1000)  # so that a megabyte holds the places of few words
    second = Counts.build(corpus, threads=3, heldout=0.2, memory=1)
    for a, b in zip((first.trained, first.heldout), (second.trained, second.heldout), strict=True):
        assert a is not None
        assert b is not None
        assert np.array_equal(a.offsets, b.offsets)
        assert np.array_equal(a.columns, b.columns)
        assert np.array_equal(a.values, b.values)


def test_training_and_counts_hold_out_the_same_sentences_and_see_the_same_pairs() -> None:
    corpus = corpus_of(100, 200, 30)
    counted = Counts.build(corpus, sample=0, heldout=0.1, seed=5)
    history = train(SkipGram(dim=4, sample=0), corpus, Training(epochs=1, heldout=0.1, seed=5)).metadata["history"]
    assert counted.total == pytest.approx(history[0]["pairs"], rel=1e-5)
    assert counted.heldout is not None
    assert 0.05 < counted.heldout.total / counted.total < 0.2
    whole = Counts.build(corpus, sample=0)
    assert counted.total + counted.heldout.total == pytest.approx(whole.total, rel=1e-6)


def test_memory_is_kept_by_leaving_out_the_smallest_counts() -> None:
    corpus = corpus_of(1000, 300, 100, skew=0.5)
    whole, small = Counts.build(corpus, sample=0), Counts.build(corpus, sample=0, memory=1)
    assert len(whole.trained.values) * 12 > 1e6
    assert len(small.trained.values) * 12 <= 0.75e6
    assert small.least > 0
    assert small.trained.values.min() >= small.least
    assert small.dropped * whole.total + small.total == pytest.approx(
        whole.total, rel=1e-3
    )  # of the diagonal it counts two


def test_the_nats_of_counts() -> None:
    corpus = Corpus.build([["a", "b"], ["a", "c"]] * 10, min_count=1, cache=False)
    built = Counts.build(corpus, sample=0)
    assert built.nats == pytest.approx(
        np.log(2) / 2
    )  # a has two contexts; b and c have one each, and half of the pairs
    assert built["a", "b"] == 10
    assert built["b", "c"] == 0
    assert "pairs" in repr(built)


def test_memory_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="memory is 0"):
        Counts.build(corpus_of(3, 2, 5), memory=0)


def test_a_word_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="id is not of a word"):
        _native.CooccurrenceCounter(np.array([0, 5, -1], np.int32), np.ones(2, np.float32), 5, 0, 0.0)


# ---------------------------------------------------------------- training


def fit(head: Any, corpus: Corpus, dim: int = 16, callback: Any = None, **options: Any) -> Any:
    return train_counts(SkipGram(dim=dim, sample=0, head=head), corpus, Training(**options), callback)


def test_a_model_with_room_for_all_learns_the_conditional_probabilities() -> None:
    """More dimensions than words: the loss must come down to the entropy of the counts."""
    corpus = topics(8, 200)
    vectors = fit(Softmax(warmup=0), corpus, epochs=400, threads=1)
    nats = vectors.metadata["counts"]["nats"]
    assert vectors.metadata["history"][-1]["loss"] == pytest.approx(nats, abs=2e-4)
    assert vectors.metadata["history"][0]["loss"] > nats + 0.02


def test_negative_sampling_without_noise_learns_the_shifted_mutual_information() -> None:
    corpus = topics(8, 200)
    head = Negative(negatives=3)
    vectors = fit(head, corpus, epochs=400, threads=1)
    table = dense(Counts.build(corpus, sample=0).trained)
    q = head.define(corpus.vocab.counts).q
    wanted = np.log(table / table.sum(axis=1, keepdims=True) / q) - np.log(3)
    np.testing.assert_allclose(vectors.input @ vectors.output.T, wanted, atol=0.02)


def test_words_of_the_same_contexts_come_together() -> None:
    random = np.random.default_rng(0)
    text = [[f"{side}{random.integers(8)}" for _ in range(6)] for side in random.choice(["a", "b"], 3000)]
    vectors = fit(Softmax(), Corpus.build(text, min_count=1, cache=False), epochs=5)
    for word in ("a0", "b3"):
        assert {near[0] for near, _ in vectors.nearest(word, 7)} == {word[0]}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_repeats_bit_for_bit(threads: int) -> None:
    corpus = corpus_of(700, 100, 50)
    first = fit(Softmax(warmup=0), corpus, epochs=2, threads=1)
    again = fit(Softmax(warmup=0), corpus, epochs=2, threads=threads)
    assert np.array_equal(first.input, again.input)
    assert np.array_equal(first.output, again.output)
    assert first.metadata["history"][-1]["loss"] == again.metadata["history"][-1]["loss"]


@pytest.mark.parametrize("head", [Softmax(), Negative()], ids=["softmax", "negative"])
def test_the_heldout_loss_and_progress(head: Any) -> None:
    seen: list[Progress] = []
    corpus = corpus_of(300, 200, 40)
    vectors = fit(head, corpus, epochs=3, heldout=0.1, callback=seen.append)
    history = vectors.metadata["history"]
    assert [record["epoch"] for record in history] == [1, 2, 3]
    assert all(np.isfinite(record["heldout_loss"]) for record in history)
    assert history[-1]["loss"] < history[0]["loss"] < history[-1]["heldout_loss"] + 5
    assert Counter(now.event for now in seen if now.event != "step") == {"epoch": 3, "end": 1}
    assert seen[-1].share == 1
    assert vectors.metadata["finished"] is True
    assert vectors.metadata["options"]["head"]["name"] == head.name


@pytest.mark.parametrize("when", ["epoch", "step"])
def test_an_interrupt_returns_what_was_learned(when: str) -> None:
    def interrupt(now: Progress) -> None:
        if now.event == when:
            raise KeyboardInterrupt

    vectors = fit(Softmax(warmup=0), corpus_of(3000, 100, 100), epochs=50, callback=interrupt)
    assert vectors.metadata["finished"] is False
    assert np.isfinite(vectors.input).all()


def test_a_loss_that_is_lost_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="Try a tenth of it"):
        fit(Softmax(warmup=0), corpus_of(100, 100, 20), epochs=3, lr=1e9)


def test_a_vocabulary_of_two_words() -> None:
    corpus = Corpus.build([["a", "b", "a", "b"]] * 20, min_count=1, cache=False)
    vectors = fit(Softmax(), corpus, dim=2, epochs=3)
    assert vectors.input.shape == (2, 2)
    assert np.isfinite(vectors.input).all()


@pytest.mark.parametrize(
    ("sentences", "options", "sentence"),
    [
        ([["a"], ["b"]], {}, "nothing to predict"),
        ([["a"]], {}, "only one word"),
        ([["a", "b"]] * 3, {"heldout": 1e-6}, "no sentence of two words was held out"),
    ],
)
def test_texts_that_teach_nothing_are_refused(sentences: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fit(Softmax(warmup=0), Corpus.build(sentences, min_count=1, cache=False), epochs=1, **options)


def test_a_model_that_pairs_do_not_describe_is_refused() -> None:
    with pytest.raises(ValueError, match="take SkipGram"):
        train_counts(CBOW(dim=4), corpus_of(10, 5, 10), Training())


def test_the_bias_is_kept_with_the_vectors() -> None:
    vectors = fit(Softmax(warmup=0), topics(8, 50), epochs=2)
    assert vectors.parts["bias"].shape == (8, 1)
    assert vectors.parts["bias"].any()
