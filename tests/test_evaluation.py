"""Evaluation: agrees with SciPy and with a plain loop, and explains files that it cannot use."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from skipgrad.evaluation import Analogies, WordPairs, _Bootstrap, evaluate, spearman
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab


def make(words: list[str], table: Any) -> Vectors:
    return Vectors(Vocab(pa.array(words, pa.large_string()), np.zeros(len(words), np.int64)), table)


def random_vectors(rows: int = 60, dim: int = 8, seed: int = 0) -> Vectors:
    return make([f"w{i}" for i in range(rows)], np.random.default_rng(seed).standard_normal((rows, dim)))


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "x.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def word_pairs(vectors: Vectors, path: Path, **options: Any) -> WordPairs:
    result = evaluate(vectors, path, **options)
    assert isinstance(result, WordPairs)
    return result


def analogies(vectors: Vectors, path: Path, **options: Any) -> Analogies:
    result = evaluate(vectors, path, **options)
    assert isinstance(result, Analogies)
    return result


# --- Spearman's rho ---

few_values = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30)


@settings(deadline=None)
@given(few_values)
def test_spearman_is_scipys_with_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert float(spearman(x, y)) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


@settings(deadline=None)
@given(few_values, st.integers(0, 2**32))
def test_weights_count_as_repeated_pairs(pairs: list[tuple[int, int]], seed: int) -> None:
    x, y = np.array(pairs, float).T
    weights = np.random.default_rng(seed).multinomial(len(x), np.full(len(x), 1 / len(x)), 5)
    for rho, weight in zip(spearman(x, y, weights), weights, strict=True):
        repeated_x, repeated_y = np.repeat(x, weight), np.repeat(y, weight)
        if len(set(repeated_x)) > 1 and len(set(repeated_y)) > 1:
            expected = np.corrcoef(rankdata(repeated_x), rankdata(repeated_y))[0, 1]
            assert rho == pytest.approx(expected, abs=1e-12)
        else:
            assert np.isnan(rho)


# --- word pairs ---


def test_word_pairs_agree_with_a_plain_loop(tmp_path: Path) -> None:
    random, vectors = np.random.default_rng(1), random_vectors()
    lines, cosines, scores = [], [], []
    for a, b in random.integers(0, 80, (200, 2)):  # w60 to w79 are not in the vocabulary
        score = float(random.integers(0, 20)) / 2
        lines.append(f"w{a}\tW{b}\t{score}\n")
        if max(a, b) < 60:
            u, v = vectors[f"w{a}"].astype(float), vectors[f"w{b}"].astype(float)
            cosines.append(u @ v / np.sqrt(u @ u * (v @ v)))
            scores.append(score)
    result = word_pairs(vectors, write(tmp_path, "".join(lines)))
    assert result.rho == pytest.approx(spearmanr(np.float32(cosines), scores).statistic, abs=1e-4)
    assert (result.pairs, result.missing) == (len(scores), 200 - len(scores))
    assert result.low < result.rho < result.high


@pytest.mark.parametrize(
    "text",
    [
        "w0 w1 3\nw2 w3 5.5\nw4 w5 1e0\n",
        "w0\tw1\t3\nw2\tw3\t5.5\nw4\tw5\t1\n",
        "w0,w1,3\nw2,w3,5.5\nw4,w5,1\n",
        "Word 1,Word 2,Human (mean)\r\nw0,w1,3\r\nw2,w3,5.5\r\nw4,w5,1\r\n",
        "# comment\n# Word 1\tWord 2\n\nw0 w1 3\nw2 w3 5.5\n\nw4 w5 1",
        "word1\tword2\tPOS\tSimLex999\tconc(w1)\nw0\tw1\tA\t3\t2.5\nw2\tw3\tN\t5.5\t9\nw4\tw5\tV\t1\t7\n",
        "\ufeffw0;w1;3\nw2;w3;5.5\nw4;w5;1\n",
        "W0\tW1\t3\nW2\tw3\t5.5\nW4\tW5\t1\n",
    ],
    ids=["spaces", "tabs", "commas", "a heading", "comments", "SimLex-999", "semicolons and a mark", "upper case"],
)
def test_styles_of_word_pair_files_are_read_alike(text: str, tmp_path: Path) -> None:
    vectors = random_vectors()
    expected = word_pairs(vectors, write(tmp_path, "w0 w1 3\nw2 w3 5.5\nw4 w5 1\n"))
    assert word_pairs(vectors, write(tmp_path, text)) == expected
    assert expected.pairs == 3


def test_words_with_spaces_are_read_between_tabs(tmp_path: Path) -> None:
    vectors = make(["new york", "city", "cat"], np.eye(3))
    assert word_pairs(vectors, write(tmp_path, "new york\tcity\t9\ncity\tcat\t1\n")).pairs == 2


def test_a_word_is_looked_up_as_written_then_in_lower_case(tmp_path: Path) -> None:
    vectors = make(["Turkey", "turkey", "bird", "Land"], [[1, 0], [0, 1], [0.1, 1], [1, 0.1]])
    upper = word_pairs(vectors, write(tmp_path, "Turkey Land 9\nTurkey BIRD 1\n"))
    lower = word_pairs(vectors, write(tmp_path, "turkey Land 9\nturkey BIRD 1\n"))
    assert (upper.rho, lower.rho) == (1, -1)
    assert upper.missing == 0


def test_equal_cosines_have_no_correlation_and_json_gets_null(tmp_path: Path) -> None:
    result = word_pairs(make(["a", "b", "c"], np.zeros((3, 2))), write(tmp_path, "a b 1\nb c 2\n"))
    assert np.isnan(result.rho)
    assert result.to_dict()["rho"] is None


# --- analogies ---


def nouns_and_plurals(random: np.random.Generator) -> tuple[Vectors, dict[str, list[list[int]]]]:
    """60 words, an odd one near its neighbor plus a common vector, and questions about 70."""
    table = random.standard_normal((60, 6))
    table[1::2] = table[::2] + [2, 0, 0, 0, 0, 0] + random.standard_normal((30, 6)) * 0.7
    pairs = {name: 2 * random.integers(0, 35, (30, 2)) for name in ("cities", "gram1-x", "family", "gram2-y")}
    asked = {name: [[a, a + 1, b, b + 1] for a, b in section.tolist()] for name, section in pairs.items()}
    return make([f"w{i}" for i in range(60)], table), asked


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
@pytest.mark.parametrize("restrict", [40, 30000])
def test_analogies_agree_with_a_plain_loop(method: Any, restrict: int, tmp_path: Path) -> None:
    vectors, asked = nouns_and_plurals(np.random.default_rng(2))
    unit = vectors.input / np.linalg.norm(vectors.input, axis=1, keepdims=True)
    expected, rows = {}, min(60, restrict)
    for name, section in asked.items():
        right = total = 0
        for a, b, c, d in section:
            if max(a, b, c, d) >= rows:
                continue
            near = unit[:rows] @ unit[[a, b, c]].T
            if method == "3cosadd":
                scores = near[:, 1] - near[:, 0] + near[:, 2]
            else:
                scores = (1 + near[:, 1]) * (1 + near[:, 2]) / 4 / ((1 + near[:, 0]) / 2 + 0.001)
            scores[[a, b, c]] = -9
            total, right = total + 1, right + int(scores.argmax() == d)
        expected[name] = (right, total, 30 - total)
    text = "".join(f": {name}\n" + "".join("w{} W{} w{} w{}\n".format(*q) for q in asked[name]) for name in asked)
    result = analogies(vectors, write(tmp_path, text), restrict=restrict, method=method)
    assert {part.name: (part.correct, part.questions, part.missing) for part in result.sections} == expected
    for part, names in ((result.semantic, ("cities", "family")), (result.syntactic, ("gram1-x", "gram2-y"))):
        assert part.correct == sum(expected[name][0] for name in names)
        assert part.questions == sum(expected[name][1] for name in names)
    assert result.total.accuracy == result.total.correct / result.total.questions
    assert 3 < result.total.correct < result.total.questions
    assert result.total.low <= result.total.accuracy <= result.total.high


def test_a_section_without_known_words_has_no_accuracy(tmp_path: Path) -> None:
    text = ": gram-known\nw0 w1 w2 w3\n: unknown\nx y z w0\n: empty\n"
    result = analogies(random_vectors(), write(tmp_path, text))
    assert [part.missing for part in result.sections] == [0, 1, 0]
    assert np.isnan(result.semantic.accuracy)
    data = result.to_dict()
    assert data["semantic"]["accuracy"] is None
    assert json.loads(json.dumps(data, allow_nan=False)) == data


# --- confidence intervals ---


def test_intervals_depend_on_the_seed_alone_and_widen_with_confidence(tmp_path: Path) -> None:
    vectors = random_vectors()
    path = write(tmp_path, "".join(f"w{i} w{i + 1} {i % 7}\n" for i in range(59)))
    first, again, other = (word_pairs(vectors, path, seed=seed) for seed in (1, 1, 2))
    wide = word_pairs(vectors, path, confidence=0.999)
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)
    assert wide.low < first.low < first.high < wide.high


def test_the_interval_of_a_share_is_that_of_resampled_questions() -> None:
    bootstrap = _Bootstrap(np.random.default_rng(0), 20_000, 0.9)
    low, high = bootstrap.share(30, 100)
    answers = np.repeat([1, 0], [30, 70])
    shares = np.random.default_rng(1).choice(answers, (20_000, 100)).mean(axis=1)
    assert (low, high) == pytest.approx(np.quantile(shares, [0.05, 0.95]), abs=0.011)


def test_the_interval_covers_the_true_correlation_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    true = 6 / np.pi * np.arcsin(0.5 / 2)  # Spearman's rho of normal pairs with Pearson's 0.5
    covered = 0
    for _ in range(200):
        x = random.standard_normal(100)
        y = 0.5 * x + np.sqrt(0.75) * random.standard_normal(100)
        low, high = _Bootstrap(random, 200, 0.9).spearman(x, y)
        covered += low <= true <= high
    assert 160 <= covered <= 196  # 180 expected, standard deviation 4


# --- files that cannot be used ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x\.txt is empty"),
        ("\n# only a comment\n", "is empty"),
        ("w0 w1 3\nw2 w3\nw4 w5 1\n", r"line 2 is 'w2 w3'; expected two words and a score"),
        ("w0 w1 3\n\nw2 w3 high\n", r"line 3 is 'w2 w3 high'"),
        ("w0 w1 nan\nw0 w1 inf\n", "line 2"),
        ("Call me Ishmael.\nSome years ago\n", "line 2 .*expected two words and a score"),
        ("a single line\n", "line 1"),
        ("x y 3\ny z 2\n", r"0 of 2 pairs are in the vocabulary"),
        ("w0 w1 3\ny z 2\n", r"1 of 2 pairs are in the vocabulary"),
        (": capital\nw0 w1 w2\n", r"line 2 is 'w0 w1 w2'; expected four words"),
        (": capital\n", "no questions"),
        (": capital\nw0 w1 w2 x\n", r"none of 1 questions"),
        (b"w0 w1 3\nw\xff w1 3\n", "not valid UTF-8 at byte 9"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(random_vectors(), write(tmp_path, text))


def test_bad_options_and_a_missing_file_are_explained(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.txt is not there"):
        evaluate(random_vectors(), tmp_path / "missing.txt")
    path = write(tmp_path, "w0 w1 3\nw2 w3 4\n")
    for options in ({"restrict": 0}, {"resamples": 0}, {"confidence": 1.0}):
        with pytest.raises(ValueError, match="expected 1 or more"):
            evaluate(random_vectors(), path, **options)  # type: ignore[arg-type]


# --- the files that everybody uses ---


@pytest.mark.parametrize(("name", "size"), [("wordsim353.tsv", 353), ("simlex999.txt", 999)])
def test_published_word_pairs_are_read_whole(name: str, size: int, shared_data: Path) -> None:
    lines = (shared_data / "eval" / name).read_text().lower().splitlines()
    words = sorted({word for line in lines if line[0] != "#" for word in line.split("\t")[:2]})
    vectors = make(words, np.random.default_rng(0).standard_normal((len(words), 10)))
    start = time.perf_counter()
    result = word_pairs(vectors, shared_data / "eval" / name)
    assert time.perf_counter() - start < 5  # 1,000 resamples take about 0.1 s
    assert (result.pairs, result.missing) == (size, 0)


def test_published_analogies_are_read_whole(shared_data: Path) -> None:
    path = shared_data / "eval" / "questions-words.txt"
    words = sorted({word for line in path.read_text().splitlines() if line[0] != ":" for word in line.split()})
    vectors = make(words, np.random.default_rng(0).standard_normal((len(words), 10)))
    result = analogies(vectors, path)
    assert (result.total.questions, result.total.missing) == (19544, 0)
    assert (result.semantic.questions, result.syntactic.questions, len(result.sections)) == (8869, 10675, 14)
