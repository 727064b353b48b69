"""The audit: its figures agree with exact sums, and it catches heads that are wrong.

All draws have seeds. A bound of k standard errors on a right estimate fails for one seed in 370 (k = 3), or 16,000 (4).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import chisquare

from benchmarks import audit as script
from skipgrad import cli, heads
from skipgrad.auditing import Audit, Estimate, audit
from skipgrad.auditing.exact import drawing_from, model_of, softmax, softmax_targets
from skipgrad.auditing.measure import GROUPS, draw, group_sizes, measure, relative_bias, squared_bias, unreached
from skipgrad.auditing.picture import picture
from skipgrad.auditing.probe import Text
from skipgrad.auditing.report import sentences
from skipgrad.corpus import Corpus
from skipgrad.heads import importance, nce
from skipgrad.model import CBOW, SkipGram
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab

WORDS = 30_000
N = [64, 512]


def zipf(words: int) -> Vocab:
    return Vocab.from_counts({f"w{rank}": 3_000_000 // (rank + 3) for rank in range(words)})


def random_vectors(words: int, dim: int = 16, spread: float = 0.7, seed: int = 1) -> Vectors:
    """Scores h . u are normal with this standard deviation in the mean."""
    random = np.random.default_rng(seed)
    h, u = random.normal(size=(2, words, dim))
    return Vectors(zipf(words), h, u * spread / np.sqrt(dim))


@pytest.fixture(scope="module")
def untrained() -> Vectors:
    """Parameters that know nothing, at V = 30,000."""
    return random_vectors(WORDS)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of 20 words, half of them from one of 300 topics, half by Zipf's law."""
    random, words = np.random.default_rng(1), 45_000
    sums = np.cumsum(1 / (np.arange(words) + 10))
    drawn = np.searchsorted(sums, random.random((50_000, 20)) * sums[-1])
    topics = random.integers(0, 300, len(drawn))
    of_topic = drawn // 300 * 300 + topics[:, None]  # the words of a topic are every 300th
    ids = np.where(random.random(drawn.shape) < 0.5, drawn, np.minimum(of_topic, words - 1))
    path = tmp_path_factory.mktemp("audit") / "text.txt"
    path.write_text("\n".join(" ".join(f"w{i}" for i in row) for row in ids.tolist()))
    return path


@pytest.fixture(scope="module")
def trained(text: Path) -> Vectors:
    """A model of that text."""
    corpus = Corpus.build(text, min_count=1, cache=False)
    vectors = SkipGram(dim=32, sample=1e-3).fit(corpus, epochs=3, lr=0.05, threads=1)
    assert len(vectors) >= WORDS
    return vectors


@pytest.fixture(scope="module", params=["untrained", "trained"])
def model(request: pytest.FixtureRequest) -> Vectors:
    vectors: Vectors = request.getfixturevalue(request.param)
    return vectors


def small(vectors: Vectors, head: Any, **options: Any) -> Audit:
    """An audit with 12 predictions, each drawn 48 times."""
    chosen = {"samples": N, "predictions": 12, "replicates": 48} | options
    return audit(vectors, head, **chosen)


# --- the estimators ---


@pytest.fixture(scope="module")
def importance_sampling(model: Vectors) -> list[Estimate]:
    """More draws than elsewhere: the bias is small, and chi2 makes tails heavy."""
    return list(small(model, "importance", samples=[256, 1024, 4096], predictions=24, replicates=96).estimates)


def test_the_bias_of_importance_falls_as_one_over_n(importance_sampling: list[Estimate]) -> None:
    x = np.log([one.samples for one in importance_sampling])
    y = np.log([one.typical for one in importance_sampling])
    errors = [one.typical_error / one.typical for one in importance_sampling]
    (slope, _), covariance = np.polyfit(x, y, 1, w=np.full(3, 1 / np.mean(errors)), cov="unscaled")
    assert max(errors) < 0.25
    assert abs(slope + 1) < 4 * np.sqrt(covariance[0, 0])
    assert np.sqrt(covariance[0, 0]) < 0.1
    for one in importance_sampling[1:]:
        assert one.typical == pytest.approx(one.typical_predicted, rel=0.1, abs=4 * one.typical_error)
        assert one.explained


def test_effective_draws_follow_chi2(importance_sampling: list[Estimate]) -> None:
    errors = [abs(one.ess / one.ess_predicted - 1) for one in importance_sampling]
    assert errors[2] < 0.06
    assert errors[2] < errors[1] < errors[0]


def test_the_slope_is_that_of_least_squares() -> None:
    found = small(random_vectors(300), "importance", samples=[16, 64, 256], proposals=["uniform"])
    points = np.array([(one.samples, one.bias) for one in found.estimates])
    assert found.slope("uniform")[0] == pytest.approx(np.polyfit(*np.log(points.T), 1)[0])
    assert np.isnan(found.slope("uniform", least=100)).all()


def test_effective_draws_of_normal_scores_are_known(untrained: Vectors) -> None:
    """With scores of variance v over draws from q, 1 + chi2(p, q) is exp(v)."""
    found = small(untrained, "importance", bias="unigram", samples=[4096], predictions=8, replicates=32)
    assert 4096 / found.estimates[0].ess == pytest.approx(np.exp(0.7**2), rel=0.25)


@pytest.mark.parametrize("target", ["included", "drawn"])
def test_sampled_meets_the_softmax(model: Vectors, target: Any) -> None:
    found = small(model, heads.Sampled(target=target))
    estimates = found.of("unigram")
    slope, error = found.slope("unigram", typical=True)
    assert slope + 3 * error < -0.5
    assert estimates[-1].typical < 0.02
    assert estimates[-1].explained


@pytest.mark.parametrize("head", ["importance", "sampled", "nce", "negative"])
def test_noise_falls_with_the_root_of_n(untrained: Vectors, head: str) -> None:
    noise = [one.noise for one in small(untrained, head).estimates]
    slope = np.polyfit(np.log(N), np.log(noise), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)  # 12 x 48 draws of it, about 1 % each


@pytest.mark.parametrize("head", ["nce", "negative"])
def test_the_mean_of_noise_contrasts_is_their_own_objective(model: Vectors, head: str) -> None:
    found = small(model, head)
    assert found.kind == "own"
    for one in found.estimates:
        assert one.bias < 1e-6
        assert abs(one.loss_bias) < 4 * one.loss_bias_error
        assert one.explained


@pytest.mark.parametrize("head", ["hierarchical", "adaptive"])
def test_heads_that_draw_nothing_are_exact(untrained: Vectors, head: str) -> None:
    found = audit(untrained, head, predictions=8)
    assert found.kind == "exact"
    assert found.sum_error < 1e-12
    assert found.gradient_error < 1e-6
    assert not found.estimates


def test_draws_from_the_softmax_itself_have_no_bias(model: Vectors) -> None:
    for one in small(model, "importance", proposals=["softmax"], samples=[8, 64]).estimates:
        assert one.bias < 1e-6
        assert one.ess == pytest.approx(one.samples)
        assert one.ess_predicted == pytest.approx(one.samples)


def test_words_that_are_summed_exactly_take_bias_away(model: Vectors) -> None:
    none, some = (small(model, heads.Importance(exact=exact), samples=[256]).estimates[0] for exact in (0, 1024))
    assert some.explained
    assert some.typical < none.typical
    assert some.noise < none.noise


def test_the_bias_is_that_of_all_possible_draws() -> None:
    """At V = 6 and N = 3 there are 216 draws, and their mean is no estimate."""
    vectors = random_vectors(6, dim=4, spread=1.5)
    for head in (heads.Importance(), heads.Sampled(), heads.Sampled(target="drawn")):
        definition = head.define(vectors.vocab.counts)
        model, output = model_of(vectors, definition, "auto"), 2
        scores = model.scores(model.hidden(np.array([1])))
        p, _ = softmax(scores)
        same = drawing_from(definition, definition.q)
        [target] = softmax_targets(model, [same], np.array([output]), scores, model.mean(p))
        mean = np.zeros(4)
        for ids in product(range(6), repeat=3):
            draws, own = np.array(ids), np.array([output])
            answer = definition.answer(own, np.ones(1), draws, scores[0][own], scores[0][draws])
            gradient = answer.own @ model.rows(own) + answer.drawn @ model.rows(draws)
            mean += np.prod(definition.q[draws]) * gradient
        exact = np.linalg.norm(mean - target.gradient) / np.linalg.norm(target.gradient)
        draws = draw(definition.q, 8_000, 3, np.random.default_rng(1))
        found = measure(model, same, output, scores[0], target, draws)
        bias, error, _ = relative_bias([found], group_sizes(8_000))
        assert abs(bias - exact) < 4 * error
        assert error < 0.1 * exact


def test_draws_follow_their_distribution() -> None:
    q = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    found = np.bincount(draw(q, 100, 1000, np.random.default_rng(1)).ravel(), minlength=5)
    assert found[1] == 0
    assert chisquare(found[q > 0], 100_000 * q[q > 0]).pvalue > 1e-4


def test_the_squared_bias_of_pure_noise_is_zero_in_the_mean() -> None:
    """The mean of 200 estimates of a bias that is not there, each from 64 draws in 16 groups of 4."""
    noise = np.random.default_rng(1).normal(size=(200, 64, 3))
    squares = [
        squared_bias([one.reshape(16, 4, 3).sum(axis=1)], [(one**2).sum(axis=1).reshape(16, 4).sum(axis=1)], sizes)
        for sizes in [group_sizes(64)]
        for one in noise
    ]
    assert abs(np.mean(squares)) < 4 * np.std(squares) / np.sqrt(200)
    biased = [noise[0] + 1.0]
    [square] = [
        squared_bias(
            [one.reshape(16, 4, 3).sum(axis=1)], [(one**2).sum(axis=1).reshape(16, 4).sum(axis=1)], group_sizes(64)
        )
        for one in biased
    ]
    assert square == pytest.approx(3.0, rel=0.3)


def test_what_draws_do_not_reach_is_a_bound_of_the_bias() -> None:
    """No word gets more in the mean than the chance that it is drawn: the bias of residuals is at least the rest."""
    p, q = np.array([0.6, 0.1, 0.3]), np.array([0.1, 0.8, 0.1])
    definition = importance.Definition(q, 0, np.zeros(3))
    mean = np.zeros(3)
    for draws in product(range(3), repeat=2):
        ids = np.array(draws)
        found = definition.answer(np.array([1]), np.ones(1), ids, np.log(p[[1]]), np.log(p[ids]))
        np.add.at(mean, ids, q[ids].prod() * found.drawn)
    lost = unreached(p, q, 2)
    assert lost == pytest.approx(0.6 - 0.19 + 0.3 - 0.19)
    assert np.maximum(0, p - mean).sum() >= lost
    assert unreached(p, q, 2000) == 0


def test_a_model_that_diverged_is_said_to_have() -> None:
    vectors = random_vectors(3000, spread=30.0)
    found = small(vectors, "importance", proposals=["unigram"], samples=[64])
    assert found.estimates[0].unreached > 0.5
    assert found.estimates[0].explained
    assert any("diverged" in sentence for sentence in sentences(found))


# --- wrong heads ---


class WrongImportance(importance.Definition):
    """The sign of log q is wrong, or log q is forgotten."""

    sign = 0.0

    def answer(self, outputs: Any, weights: Any, draws: Any, own: Any, drawn: Any) -> Any:
        # what the right one subtracts is added first, once or twice
        wrong = drawn + (1 - self.sign) * np.log(len(draws) * self.q[draws])
        return super().answer(outputs, weights, draws, own, wrong)


class MaskedNce(nce.Definition):
    """A noise word that is the context is left out, as is right for negative sampling."""

    def answer(self, outputs: Any, weights: Any, draws: Any, own: Any, drawn: Any) -> Any:
        answer = super().answer(outputs, weights, draws, own, drawn)
        return answer._replace(drawn=np.where(np.isin(draws, outputs), 0.0, answer.drawn))


class CrookedTree(heads.hierarchical.Definition):
    """One residual in a hundred is off by a tenth of itself."""

    def answer(self, *arguments: Any) -> Any:
        answer = super().answer(*arguments)
        return answer._replace(own=answer.own * np.where(np.arange(len(answer.own)) == 0, 1.1, 1.0))


@dataclass(frozen=True)
class Wrong:
    """A head whose definition is of another class."""

    right: Any
    kind: Any
    sign: float = 0.0
    name: str = "wrong"

    def define(self, counts: Any) -> Any:
        definition = self.right.define(counts)
        definition.__class__ = self.kind
        definition.sign = self.sign
        return definition

    def draws(self, contexts: float) -> int:
        return 0

    def block(self, contexts: float) -> int:
        return 8


@pytest.mark.parametrize("sign", [-1.0, 0.0], ids=["flipped", "forgotten"])
def test_a_wrong_correction_is_caught(model: Vectors, sign: float) -> None:
    found = small(model, Wrong(heads.Importance(), WrongImportance, sign), proposals=["unigram", "softmax"])
    for name in ("unigram", "softmax"):
        last = found.of(name)[-1]
        assert not last.explained
        assert last.typical > 10 * last.typical_predicted + 3 * last.typical_error
    assert sum("correction for the proposal is wrong" in sentence for sentence in sentences(found)) == 2


def test_the_right_correction_is_not(model: Vectors) -> None:
    found = small(model, Wrong(heads.Importance(), WrongImportance, sign=1.0), proposals=["unigram", "softmax"])
    assert all(one.explained for one in found.estimates)


def test_masking_under_nce_is_caught(model: Vectors) -> None:
    found = small(model, Wrong(heads.Nce(), MaskedNce))
    last = found.estimates[-1]
    assert not last.explained
    assert last.bias > 4 * last.bias_error
    assert any("left out" in sentence for sentence in sentences(found))


def test_a_gradient_that_is_not_of_the_loss_is_caught(untrained: Vectors) -> None:
    found = audit(untrained, Wrong(heads.Hierarchical(), CrookedTree), predictions=8)
    assert found.gradient_error > 1e-3
    assert any("and is not" in sentence for sentence in sentences(found))


# --- proposals ---


def test_neighbors_of_a_text_are_a_better_proposal(trained: Vectors, text: Path) -> None:
    found = small(trained, "importance", proposals=["unigram", "bigram"], samples=[256], text=text)
    unigram, bigram = found.estimates
    assert bigram.bias + 4 * bigram.bias_error < unigram.bias / 2
    assert bigram.noise < unigram.noise
    assert "in the text" in found.probe


def test_the_adaptive_proposal_finds_the_model(untrained: Vectors) -> None:
    """Without a bias the softmax is nearly uniform over words, and far from the unigram."""
    options = {"proposals": ["unigram", "adaptive"], "samples": [256], "bias": "none", "mixture": 0.2}
    unigram, adaptive = small(untrained, "importance", **options).estimates
    assert adaptive.ess_predicted > 2 * unigram.ess_predicted
    assert adaptive.explained


@pytest.mark.parametrize("name", ["uniform", "log-uniform", "unigram^0.75", "thinned"])
def test_every_proposal_meets_the_softmax(untrained: Vectors, name: str) -> None:
    found = small(untrained, "importance", proposals=[name], samples=[4096], predictions=4)
    assert found.proposals == [name]
    assert found.estimates[0].explained


def test_neighbors_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(1)
    ids = np.where(random.random(500) < 0.1, -1, random.integers(0, 9, 500)).astype(np.int32)
    text, keep = Text(ids, window=3), random.random(9)
    expected = np.zeros((9, 9))
    for i, c in enumerate(ids):
        for step in (1, -1):
            for d in range(1, 4):
                j = i + step * d
                if c < 0 or not 0 <= j < len(ids) or ids[j] < 0:
                    break
                expected[c, ids[j]] += (1 - (d - 1) / 3) * keep[ids[j]]
    np.testing.assert_allclose(text.neighbors(np.array([4, 0, 4]), keep), expected[[4, 0, 4]])
    contexts, outputs = text.pairs(4000, keep, random)
    pairs = expected * keep[:, None]
    frequent = pairs > 5 / 4000 * pairs.sum()
    seen = np.bincount(contexts * 9 + outputs, minlength=81).reshape(9, 9)
    chances = np.append(pairs[frequent], pairs[~frequent].sum()) / pairs.sum()
    assert chisquare(np.append(seen[frequent], seen[~frequent].sum()), 4000 * chances).pvalue > 1e-4


def test_a_corpus_with_ids_of_its_own_is_put_in_order() -> None:
    corpus = Corpus.build([["c", "c", "b", "x"], ["a"]], min_count=1)
    vectors = Vectors(Vocab.from_counts({"a": 3, "b": 2, "c": 1}), np.ones((3, 2)))
    assert Text.read(corpus, vectors).ids.tolist() == [2, 2, 1, -1, 0, -1]


# --- normalisation ---


def at_optimum(shift: Callable[[Any], Any]) -> Vectors:
    """A model of 40 words whose scores are log P and a shift of the words."""
    random = np.random.default_rng(1)
    vocab = zipf(40)
    share = vocab.counts / vocab.counts.sum()
    log_p = np.log(share) + random.normal(size=(40, 40)) / 2
    log_p -= np.logaddexp.reduce(log_p, axis=1)[:, None]
    return Vectors(vocab, log_p + shift(share), np.eye(40))


def test_scores_at_the_optimum_of_negative_sampling_are_normalised() -> None:
    vectors = at_optimum(lambda share: -np.log(5 * share**0.75 / (share**0.75).sum()))
    found = small(vectors, "negative", samples=[64])
    assert abs(found.log_z) < 1e-5
    assert found.log_z_drift < 1e-5
    assert any("nearly normalised" in sentence for sentence in sentences(found))


def test_nce_comes_nearer_to_the_softmax_with_more_noise() -> None:
    vectors = at_optimum(lambda share: 0)
    gaps = [small(vectors, heads.Nce(negatives=k), samples=[64], bias="none").softmax_gap for k in (1, 8, 64)]
    assert gaps[0] > gaps[1] > gaps[2]
    shifted = small(vectors, heads.Nce(log_z=2.0), samples=[64], bias="none")
    assert shifted.log_z == pytest.approx(-2.0, abs=1e-5)
    assert any("not normalised" in sentence for sentence in sentences(shifted))


# --- what it says ---


def test_too_few_draws_are_said_to_be(untrained: Vectors) -> None:
    found = small(untrained, "importance", samples=[4])
    assert any("too few" in sentence for sentence in sentences(found))
    assert any(" or more suit this model" in sentence for sentence in sentences(small(untrained, "importance")))


def test_results_survive_json(untrained: Vectors) -> None:
    for head in ("importance", "nce", "adaptive"):
        found = small(untrained, head, samples=[64], predictions=4)
        again = Audit.from_dict(json.loads(json.dumps(found.to_dict())))
        assert sentences(again) == sentences(found)
        assert repr(again) == repr(found)


def test_the_same_seed_gives_the_same_audit(untrained: Vectors) -> None:
    one, same, other = (small(untrained, "importance", samples=[64], seed=seed) for seed in (1, 1, 2))
    assert (one.estimates[0].bias, one.loss) == (same.estimates[0].bias, same.loss)
    assert one.estimates[0].bias != other.estimates[0].bias


def test_the_picture_is_svg(untrained: Vectors) -> None:
    found = small(untrained, "importance", proposals=["unigram", "uniform"])
    root = ElementTree.fromstring(picture(found))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"unigram", "uniform", "512", "draws, N"} <= set(texts)
    assert len([element for element in root.iter() if element.tag.endswith("polyline")]) == 8
    nothing = replace(found, estimates=())
    with pytest.raises(ValueError, match="draws nothing"):
        picture(nothing)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"head": "softmaxx"}, "there are negative"),
        ({"proposals": ["trigram"]}, "there are unigram"),
        ({"proposals": ["unigram^"]}, "unigram\\^0.75"),
        ({"proposals": ["bigram"]}, "--text"),
        ({"head": "nce", "proposals": ["uniform"]}, "part of its objective"),
        ({"samples": [1]}, "from 2 to"),
        ({"samples": []}, "from 2 to"),
        ({"replicates": GROUPS}, "at least 32"),
        ({"mixture": 0.0}, "above 0"),
        ({"bias": "some"}, "'auto', 'unigram' or 'none'"),
        ({"text": [["w1"], ["w2"]]}, "too few pairs"),
    ],
)
def test_mistakes_are_sentences(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        audit(random_vectors(20), **options)


def test_vectors_without_a_trained_output_table_are_refused() -> None:
    vectors = random_vectors(20)
    with pytest.raises(ValueError, match="no output table"):
        audit(Vectors(vectors.vocab, vectors.input))
    with pytest.raises(ValueError, match="all zeros"):
        audit(Vectors(vectors.vocab, vectors.input, np.zeros_like(vectors.input)))


def test_the_page_says_what_the_records_say() -> None:
    records = script.read(script.RECORDS)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(records)
    drawn = picture(Audit.from_dict(records["importance"]["audit"]))
    assert script.PICTURE.read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize("encoder", [SkipGram, CBOW])
@pytest.mark.parametrize("head", [heads.Sampled(), heads.Nce(), heads.Hierarchical(), heads.Negative()])
def test_models_of_every_head_can_be_audited(encoder: Any, head: Any) -> None:
    random = np.random.default_rng(1)
    corpus = Corpus.build([[f"w{i}" for i in row] for row in random.geometric(0.05, (400, 12))], min_count=1)
    vectors = encoder(dim=8, sample=0, head=head).fit(corpus, epochs=2, threads=1)
    found = small(vectors, head, samples=[64], text=corpus)
    assert ("own bias" in found.scores) == (head.name in ("sampled", "nce"))
    assert ("CBOW" in found.scores) == (encoder is CBOW)
    assert all(one.explained for one in found.estimates)
    if head.name == "hierarchical":
        assert found.sum_error < 1e-9
        with pytest.raises(ValueError, match="nodes of a tree"):
            small(vectors, "sampled")


def test_rows_and_biases_of_clusters_are_the_models_own() -> None:
    vectors, random = random_vectors(60, dim=4), np.random.default_rng(2)
    definition = heads.Adaptive(cutoffs=(10, 30)).define(vectors.vocab.counts)
    clusters, bias = random.normal(size=(2, 5)), random.normal(size=(60, 1))
    own = Vectors(vectors.vocab, vectors.input, vectors.output, bias=bias, clusters=clusters)
    model = model_of(own, definition, "auto")
    np.testing.assert_allclose(model.table[60:], clusters[:, :4], rtol=1e-6)
    np.testing.assert_allclose(model.bias, np.append(bias, clusters[:, 4]), rtol=1e-6)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    random_vectors(200).save("a.vectors")
    assert (
        cli.main(["audit", "a.vectors", "--samples", "8,64", "--proposal", "unigram,uniform", "--picture", "a.svg"])
        == 0
    )
    out, err = capsys.readouterr()
    table = [line.split("\t") for line in out.splitlines()]
    assert [row[:2] for row in table[1:]] == [[name, n] for name in ("unigram", "uniform") for n in ("8", "64")]
    assert len({len(row) for row in table}) == 1
    assert "estimates the gradient of the exact softmax" in err
    ElementTree.parse("a.svg")
    assert cli.main(["audit", "a.vectors", "--head", "nce", "--negatives", "3", "--samples", "8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["head"], facts["options"]["negatives"], facts["kind"]) == ("nce", 3, "own")
    assert facts["says"]
    for line, says in (("--head nce --exact 8", "--head importance"), ("--samples 8,x", "8,32,128")):
        assert cli.main(["audit", "a.vectors", *line.split()]) == 2
        assert says in capsys.readouterr().err
