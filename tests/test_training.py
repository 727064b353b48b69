"""Training: what repeats, what is counted, when it stops, and that what is learned is what the text says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skipgrad as sg
from skipgrad import _native
from skipgrad.parameters import aligned_rows, start_vectors
from skipgrad.training import Progress, Training, shards

TOPICS, WORDS = 20, 15


def topics(sentences: int, seed: int = 0, noise: float = 0.1) -> Any:
    """Sentences of twelve words of one topic, a share of them replaced by any word; the topic is the first letter."""
    random = np.random.default_rng(seed)
    topic = np.repeat(random.integers(0, TOPICS, (sentences, 1)), 12, 1)
    topic = np.where(random.random(topic.shape) < noise, random.integers(0, TOPICS, topic.shape), topic)
    word = random.integers(0, WORDS, topic.shape)
    return [
        [f"{chr(97 + t)}{w}" for t, w in zip(*row, strict=True)]
        for row in zip(topic.tolist(), word.tolist(), strict=True)
    ]


@pytest.fixture(scope="module")
def text() -> sg.Corpus:
    """72,000 words, enough for two blocks."""
    return sg.Corpus.build(topics(6000), min_count=1, cache=False)


@pytest.fixture(scope="module")
def small() -> sg.Corpus:
    """3,600 words, for what needs no learning."""
    return sg.Corpus.build(topics(300), min_count=1, cache=False)


def bits(vectors: sg.Vectors) -> bytes:
    """Both tables."""
    assert vectors.output is not None
    return np.array(vectors.input).tobytes() + np.array(vectors.output).tobytes()


def history(vectors: sg.Vectors, name: str) -> list[Any]:
    """A number of each epoch."""
    return [record[name] for record in vectors.metadata["history"]]


class TestRepetition:
    """On one thread a seed fixes every bit; threads change the order of updates, and nothing that is counted."""

    def test_one_thread_and_one_seed_give_the_same_bits(self, text: sg.Corpus) -> None:
        model = sg.SkipGram(dim=20)
        first, second = (model.fit(text, epochs=2, threads=1, seed=3, heldout=0.1) for _ in range(2))
        assert bits(first) == bits(second)
        assert history(first, "loss") == history(second, "loss")
        assert history(first, "heldout_loss") == history(second, "heldout_loss")

    def test_another_seed_gives_other_vectors(self, small: sg.Corpus) -> None:
        runs = [sg.SkipGram(dim=20).fit(small, epochs=1, threads=1, seed=seed) for seed in (0, 1, 2**63 - 1)]
        assert len({bits(run) for run in runs}) == 3

    @pytest.mark.parametrize("sample", [0, 1e-3])
    def test_threads_count_the_same_words_and_reach_the_same_loss(self, text: sg.Corpus, sample: float) -> None:
        model = sg.SkipGram(dim=20, sample=sample)
        one, *more = (model.fit(text, epochs=3, threads=threads, heldout=0.1, lr=0.05) for threads in (1, 2, 3))
        for other in more:
            for name in ("raw_words", "trained_words", "pairs"):
                assert history(other, name) == history(one, name)
            for name in ("loss", "heldout_loss"):  # the first epoch's depends on how early which shard is seen
                assert history(other, name)[-1] == pytest.approx(history(one, name)[-1], rel=0.02)

    def test_each_epoch_reads_every_word_that_is_not_held_out(self, text: sg.Corpus) -> None:
        vectors = sg.SkipGram(dim=4, sample=0).fit(text, epochs=2, threads=1)
        assert history(vectors, "raw_words") == history(vectors, "trained_words") == [text.words, text.words]
        held = sg.SkipGram(dim=4, sample=0).fit(text, epochs=1, threads=1, heldout=0.25)
        assert history(held, "raw_words")[0] == pytest.approx(0.75 * text.words, rel=0.03)

    def test_subsampling_trains_fewer_words(self, text: sg.Corpus) -> None:
        vectors = sg.SkipGram(dim=4, sample=1e-4).fit(text, epochs=1, threads=1)
        counts = text.vocab.counts / text.words
        keep = np.minimum(1, np.sqrt(1e-4 / counts) + 1e-4 / counts)
        assert history(vectors, "trained_words")[0] == pytest.approx((keep * text.vocab.counts).sum(), rel=0.02)

    def test_the_start_is_small_and_depends_on_the_seed(self) -> None:
        start, zero = start_vectors(1000, 10, 1), aligned_rows(1000, 10)
        assert start.shape == zero.shape == (1000, 16)
        assert start.ctypes.data % 64 == zero.ctypes.data % 64 == 0
        assert np.abs(start[:, :10]).max() <= 0.05
        assert not start[:, 10:].any()
        assert not zero.any()
        assert (start_vectors(1000, 10, 1) == start).all()
        assert not (start_vectors(1000, 10, 2) == start)[:, :10].all()

    @pytest.mark.parametrize("tokens", [1, 1000, 10**9])
    def test_shards_are_whole_sentences_that_cover_the_corpus(self, text: sg.Corpus, tokens: int) -> None:
        parts = list(shards(text, tokens))
        assert [0, *(end for _, end in parts)] == [*(begin for begin, _ in parts), len(text.ids)]
        assert all(text.ids[end - 1] == -1 for _, end in parts)


class TestLearning:
    """Text sampled from a known model gives that model back."""

    def test_neighbors_are_words_of_the_same_topic(self, text: sg.Corpus) -> None:
        vectors = sg.SkipGram(dim=32, sample=0).fit(text, epochs=5, threads=1, lr=0.05)
        right = [near[0] == word[0] for word in vectors.vocab for near, _ in vectors.nearest(word, WORDS - 1)]
        assert np.mean(right) > 0.99

    def test_neighbors_on_a_ring_are_neighbors(self) -> None:
        """A sentence is a random walk on a ring of words: those within 2 steps of a word are its nearest vectors."""
        around, walks = 60, 4000
        random = np.random.default_rng(1)
        steps = random.integers(-2, 3, (walks, 20))
        steps[:, 0] = random.integers(0, around, walks)
        ring = sg.Corpus.build(np.mod(np.cumsum(steps, 1), around).astype(str).tolist(), min_count=1, cache=False)
        vectors = sg.SkipGram(dim=16, window=3, sample=0).fit(ring, epochs=10, threads=1, lr=0.05)
        near = [int(other) - int(word) for word in vectors.vocab for other, _ in vectors.nearest(word, 4)]
        distance = np.minimum(np.mod(near, around), np.mod(-np.array(near), around))
        assert (distance <= 3).mean() > 0.95
        far = [vectors.similarity(str(i), str((i + around // 2) % around)) for i in range(around)]
        next_to = [vectors.similarity(str(i), str((i + 1) % around)) for i in range(around)]
        assert max(far) < min(next_to)

    def test_losses_fall_where_the_text_has_structure(self, text: sg.Corpus) -> None:
        vectors = sg.SkipGram(dim=32, sample=0).fit(text, epochs=4, threads=1, lr=0.05, heldout=0.1)
        for name in ("loss", "heldout_loss"):
            losses = history(vectors, name)
            assert losses == sorted(losses, reverse=True)
        assert history(vectors, "heldout_loss")[-1] < 0.9 * history(vectors, "heldout_loss")[0]

    def test_a_loss_before_learning_is_that_of_a_coin(self, small: sg.Corpus) -> None:
        """Output vectors start at 0: K + 1 decisions of log 2 nats each, but for the draws that hit a context."""
        vectors = sg.SkipGram(dim=8, sample=0).fit(small, epochs=1, threads=1, lr=1e-9)
        assert history(vectors, "loss")[0] == pytest.approx(6 * np.log(2), rel=0.05)

    def test_training_stops_when_the_held_out_loss_no_longer_falls(self) -> None:
        """Random text has nothing to learn beyond its counts: soon only the training loss falls."""
        random = np.random.default_rng(0).integers(0, 200, (400, 10)).astype(str).tolist()
        corpus = sg.Corpus.build(random, min_count=1, cache=False)
        vectors = sg.SkipGram(dim=50, sample=0).fit(corpus, epochs=60, threads=1, lr=0.05, heldout=0.2, patience=2)
        losses = history(vectors, "heldout_loss")
        assert 3 <= len(losses) < 60
        assert min(losses) == losses[-3]
        assert vectors.metadata["finished"]

    @pytest.mark.parametrize("isa", _native.instruction_sets())
    @pytest.mark.parametrize(
        ("dim", "window", "negatives"), [(2, 1, 1), (2, 50, 64), (17, 5, 5), (1024, 2, 5), (1024, 1, 64)]
    )
    def test_the_ends_of_every_range_train(
        self, isa: str, dim: int, window: int, negatives: int, small: sg.Corpus, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SKIPGRAD_ISA", isa)
        head = sg.heads.Negative(negatives=negatives)
        vectors = sg.SkipGram(dim=dim, window=window, head=head, sample=0).fit(small, epochs=5, threads=1)
        losses = history(vectors, "loss")
        assert losses[-1] < losses[0]
        assert np.isfinite(vectors.input).all()
        assert vectors.dim == dim

    def test_instruction_sets_reach_the_same_loss(self, text: sg.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        losses = []
        for isa in _native.instruction_sets():
            monkeypatch.setenv("SKIPGRAD_ISA", isa)
            vectors = sg.SkipGram(dim=20).fit(text, epochs=1, threads=1)
            assert vectors.metadata["training"]["instruction_set"] == isa
            losses.append(history(vectors, "loss")[0])
        assert losses == pytest.approx([losses[0]] * len(losses), rel=1e-3)


class TestProgress:
    """What a callback is told."""

    def test_events_shares_and_clocks(self, text: sg.Corpus) -> None:
        told: list[Progress] = []
        vectors = sg.SkipGram(dim=200, window=10, sample=0).fit(
            text, epochs=3, threads=1, heldout=0.1, callback=told.append
        )
        assert [now.epoch for now in told if now.event == "epoch"] == [1, 2, 3]
        assert "step" in {now.event for now in told}
        assert [now.event for now in told].index("end") == len(told) - 1
        shares = [now.share for now in told]
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert [now.lr for now in told] == sorted((now.lr for now in told), reverse=True)
        assert [now.loss for now in told if now.event == "epoch"] == history(vectors, "loss")
        assert [now.heldout_loss for now in told if now.event == "epoch"] == history(vectors, "heldout_loss")
        assert all(np.isfinite(now.loss) and now.loss > 0 for now in told)
        last = told[-1]
        assert last.raw_words == sum(history(vectors, "raw_words"))
        assert last.trained_words == sum(history(vectors, "trained_words"))
        assert last.raw_rate == pytest.approx(last.raw_words / last.seconds)
        assert last.remaining == 0

    def test_metadata_says_where_vectors_come_from(self, small: sg.Corpus) -> None:
        model = sg.SkipGram(dim=8, head=sg.heads.Negative(negatives=3))
        metadata = json.loads(json.dumps(dict(model.fit(small, epochs=1, threads=1, seed=7).metadata)))
        assert metadata["finished"] is True
        assert metadata["version"] == sg.__version__
        assert metadata["options"]["head"] == {"name": "negative", "negatives": 3, "exponent": 0.75, "shared": 0}
        assert metadata["training"]["seed"] == 7
        assert metadata["corpus"]["fingerprint"] == small.fingerprint

    def test_no_number_of_threads_takes_the_cores(self, small: sg.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("skipgrad.training.cores", lambda: 3)
        assert sg.SkipGram(dim=2).fit(small, epochs=1).metadata["training"]["threads"] == 3
        assert sg.SkipGram(dim=2).fit(small, epochs=1, threads=2).metadata["training"]["threads"] == 2


class TestStopping:
    """Ctrl-C keeps what was learned."""

    @pytest.mark.parametrize("event", ["step", "epoch"])
    def test_an_interrupt_returns_an_unfinished_model(self, text: sg.Corpus, event: str) -> None:
        def stop(now: Progress) -> None:
            if now.event == event:
                raise KeyboardInterrupt

        vectors = sg.SkipGram(dim=200, window=10, sample=0).fit(text, epochs=50, threads=2, callback=stop)
        assert vectors.metadata["finished"] is False
        assert len(vectors.metadata["history"]) < 5
        assert vectors.output is not None
        assert np.any(vectors.output)

    def test_an_error_in_a_callback_is_not_swallowed(self, small: sg.Corpus) -> None:
        def fail(now: Progress) -> None:
            raise OSError("no room for a log")

        with pytest.raises(OSError, match="no room"):
            sg.SkipGram(dim=2).fit(small, epochs=1, callback=fail)

    def test_a_signal_stops_within_a_second(self, tmp_path: Path) -> None:
        program = """
            import skipgrad as sg
            corpus = sg.Corpus.build([[str(i % 500) for i in range(j, j + 50)] for j in range(4000)], cache=False)
            model = sg.SkipGram(dim=300, window=10, sample=0)
            vectors = model.fit(corpus, epochs=10_000, callback=lambda now: print(now.event, flush=True))
            print("finished", vectors.metadata["finished"], flush=True)
        """
        command = [sys.executable, "-c", re.sub(r"^ {12}", "", program, flags=re.MULTILINE)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "step\n"
            child.send_signal(signal.SIGINT)
            sent = time.monotonic()
            lines = child.stdout.read().splitlines()
            assert time.monotonic() - sent < 2  # one second where the machine has nothing else to do
        assert lines[-1] == "finished False"
        assert child.returncode == 0


class TestRefusals:
    """Each is one sentence that says what was given and what to do."""

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: sg.SkipGram(dim=1), "dim is 1, but must be from 2 to 1024"),
            (lambda: sg.SkipGram(dim=1025), "dim is 1025"),
            (lambda: sg.SkipGram(window=0), "window is 0, but must be from 1 to 50"),
            (lambda: sg.SkipGram(window=51), "window is 51"),
            (lambda: sg.SkipGram(sample=-0.1), "sample is -0.1"),
            (lambda: sg.SkipGram(sample=float("nan")), "sample is nan"),
            (lambda: Training(epochs=0), "epochs is 0, but must be at least 1"),
            (lambda: Training(lr=-1), "lr is -1"),
            (lambda: Training(lr=float("inf")), "lr is inf"),
            (lambda: Training(threads=-1), "threads is -1"),
            (lambda: Training(threads=1025), "threads is 1025"),
            (lambda: Training(seed=-1), "seed is -1"),
            (lambda: Training(seed=2**63), "seed is 9223372036854775808"),
            (lambda: Training(heldout=0.6), "heldout is 0.6"),
            (lambda: Training(heldout=float("nan")), "heldout is nan"),
            (lambda: Training(heldout=0.1, patience=-1), "patience is -1"),
            (lambda: Training(patience=1), "give a share to hold out"),
        ],
    )
    def test_options_out_of_range(self, make: Callable[[], object], says: str) -> None:
        with pytest.raises(ValueError, match=re.escape(says)) as error:
            make()
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("lr", [100, 1e6, 1e30])
    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_learning_rate_that_makes_the_loss_infinite(self, text: sg.Corpus, lr: float, threads: int) -> None:
        with pytest.raises(ValueError, match=r"learning rate .* is too large\. Try a tenth of it\."):
            sg.SkipGram(dim=20, sample=0).fit(text, epochs=5, threads=threads, lr=lr)

    def test_a_vocabulary_of_one_word(self) -> None:
        corpus = sg.Corpus.build([["whale"] * 20] * 20, min_count=1, cache=False)
        with pytest.raises(ValueError, match="only one word"):
            sg.SkipGram().fit(corpus)

    def test_sentences_of_one_word(self) -> None:
        corpus = sg.Corpus.build([["whale"], ["fish"]] * 20, min_count=1, cache=False)
        with pytest.raises(ValueError, match="No sentence has two words"):
            sg.SkipGram(sample=0).fit(corpus, threads=1)

    def test_too_few_sentences_to_hold_out(self) -> None:
        corpus = sg.Corpus.build([["big", "whale"] * 20] * 2, min_count=1, cache=False)
        with pytest.raises(ValueError, match=r"heldout is 0\.001, but no sentence .* was held out"):
            sg.SkipGram(sample=0).fit(corpus, threads=1, heldout=0.001)

    def test_an_instruction_set_that_is_not_there(self, small: sg.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SKIPGRAD_ISA", "v9")
        with pytest.raises(ValueError, match="SKIPGRAD_ISA") as error:
            sg.SkipGram().fit(small)
        assert "'v9'" in str(error.value)
        assert all(isa in str(error.value) for isa in _native.instruction_sets())

    def test_two_words_are_enough(self) -> None:
        corpus = sg.Corpus.build([["big", "whale"]] * 50, min_count=1, cache=False)
        vectors = sg.SkipGram(dim=4, sample=0).fit(corpus, epochs=1, threads=1)
        assert history(vectors, "pairs") == [100]
