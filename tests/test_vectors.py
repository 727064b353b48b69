"""Vectors: what is found, what is kept on disk, and what a crash leaves."""

from __future__ import annotations

import contextlib
import doctest
import errno
import json
import os
import re
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import skipgrad.search
import skipgrad.vectors
from skipgrad import search
from skipgrad.formats import folder
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab


def make(table: Any, words: list[str] | None = None, **rest: Any) -> Vectors:
    words = words or [f"w{i}" for i in range(len(table))]
    return Vectors(Vocab(pa.array(words, pa.large_string()), np.arange(len(words), 0, -1)), table, **rest)


def clustered(rows: int = 500, dim: int = 24, seed: int = 0) -> Vectors:
    """Rows in a padded table, as the trainer leaves them."""
    padded = np.random.default_rng(seed).standard_normal((rows, dim + 8)).astype(np.float32)
    return make(padded[:, :dim])


def slow_cosines(vectors: Vectors, query: Any) -> Any:
    rows = vectors.input.astype(np.float64)
    return rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)


@pytest.fixture(params=[None, 100], ids=["one block", "many blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(search, "SCORES", request.param)
        monkeypatch.setattr(search, "BATCH", 3)


@pytest.mark.parametrize("module", [skipgrad.vectors, skipgrad.search])
def test_examples_in_the_documentation_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# --- nearest, similarity, analogy ---


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("n", [1, 3, 10, 499, 1000])
def test_nearest_are_the_largest_cosines_of_all(n: int) -> None:
    vectors = clustered()
    cosines = slow_cosines(vectors, vectors["w7"].astype(np.float64))
    cosines[7] = -np.inf
    expected = np.argsort(-cosines, kind="stable")[: min(n, 499)]
    found = vectors.nearest("w7", n)
    assert [word for word, _ in found] == [f"w{i}" for i in expected]
    assert np.allclose([score for _, score in found], cosines[expected], atol=1e-6)


@pytest.mark.usefixtures("blocks")
def test_a_batch_gives_what_single_queries_give() -> None:
    vectors = clustered()
    words = [f"w{i}" for i in range(11)]

    def names(answers: Any) -> Any:
        return [[word for word, _ in answer] for answer in answers]

    assert names(vectors.nearest(words, 5)) == names([vectors.nearest(word, 5) for word in words])
    rows = np.stack([vectors[word] for word in words])
    assert names(vectors.nearest(rows, 5)) == names([vectors.nearest(row, 5) for row in rows])
    assert vectors.nearest(rows, 1)[3][0][0] == "w3"  # a vector excludes no word
    assert names(vectors.nearest(["w3"], 5)) == names([vectors.nearest("w3", 5)])


def test_restrict_and_exclude_leave_words_out() -> None:
    vectors = clustered()
    first, second = (word for word, _ in vectors.nearest("w0", 2))
    assert vectors.nearest("w0", 1, exclude=first)[0][0] == second
    assert vectors.nearest("w0", 1, exclude=[first, second])[0][0] not in (first, second)
    assert {word for word, _ in vectors.nearest("w400", 100, restrict=5)} == {"w0", "w1", "w2", "w3", "w4"}
    assert len(vectors.nearest("w0", 100, restrict=5)) == 4


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_of_equals_the_lower_id_comes_first(n: int) -> None:
    vectors = make(np.tile(np.float32([[1, 2], [2, 4], [-3, 1]]), (100, 1)))
    expected = [i for i in range(300) if i % 3 != 2][: n + 1]
    expected.remove(4) if 4 in expected else expected.pop()
    assert [word for word, _ in vectors.nearest("w4", n)] == [f"w{i}" for i in expected]


def test_a_vector_of_zeros_has_similarity_zero() -> None:
    vectors = make([[0, 0], [1, 1], [-1, 0]])
    assert vectors.similarity("w0", "w1") == 0
    assert vectors.nearest("w0", 2) == [("w1", 0.0), ("w2", 0.0)]
    assert vectors.nearest("w1", 2)[0] == ("w0", 0.0)


@pytest.mark.parametrize("scale", [1e-25, 1e-10, 1e10, 1e18])
def test_cosines_do_not_depend_on_the_length_of_vectors(scale: float) -> None:
    vectors = clustered(50)
    scaled = make(vectors.input * np.float32(scale))
    assert [word for word, _ in scaled.nearest("w1")] == [word for word, _ in vectors.nearest("w1")]
    assert scaled.similarity("w1", "w2") == pytest.approx(vectors.similarity("w1", "w2"), abs=1e-6)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 45), st.integers(0, 2**32), st.sampled_from([1, 3, 1000]))
def test_search_agrees_with_sorting_everything(rows: int, dim: int, n: int, seed: int, block: int) -> None:
    random = np.random.default_rng(seed)
    table = random.integers(-2, 3, (rows, dim)).astype(np.float32)  # many equal cosines
    query = random.integers(-2, 3, (4, dim)).astype(np.float32)
    excluded = random.integers(-1, rows, (4, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SCORES", block * len(query))
        inverse = search.inverse_norms(table)
        ids, scores = search.top(table, inverse, lambda t, i: query @ t.T, n, excluded)
    exact = query @ table.T
    for found, score, row, out in zip(ids, scores, exact, excluded, strict=True):
        order = [i for i in np.argsort(-row, kind="stable") if i not in out][:n]
        assert found.tolist() == order + [-1] * (n - len(order))
        assert score[: len(order)].tolist() == row[order].tolist()


def test_similarity_of_words_vectors_and_lists() -> None:
    vectors = clustered()
    expected = slow_cosines(vectors, vectors["w1"].astype(np.float64))
    assert vectors.similarity("w1", "w2") == pytest.approx(expected[2], abs=1e-6)
    assert vectors.similarity(vectors["w1"], "w2") == pytest.approx(expected[2], abs=1e-6)
    assert vectors.similarity("w1", "w1") == pytest.approx(1)
    assert np.allclose(vectors.similarity(["w1", "w1"], ["w2", "w3"]), expected[2:4])
    assert np.allclose(vectors.similarity("w1", vectors.input[2:5]), expected[2:5])
    with pytest.raises(ValueError, match="2 and 3 queries"):
        vectors.similarity(["w1", "w1"], ["w2", "w3", "w4"])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_analogy_maximizes_its_formula(method: Any) -> None:
    vectors = clustered()
    unit = vectors.input / np.linalg.norm(vectors.input, axis=1, keepdims=True)
    cosines = unit @ unit.T
    if method == "3cosadd":
        scores = cosines[1] + cosines[3] + cosines[4] - cosines[2]
    else:
        shifted = (1 + cosines) / 2
        scores = shifted[1] * shifted[3] * shifted[4] / (shifted[2] + 1e-3)
    scores[[1, 2, 3, 4]] = -np.inf
    found = vectors.analogy("w1", minus="w2", plus=["w3", "w4"], n=5, method=method)
    assert [word for word, _ in found] == [f"w{i}" for i in np.argsort(-scores)[:5]]
    if method == "3cosmul":
        assert np.allclose([score for _, score in found], np.sort(scores)[:-6:-1], rtol=1e-5)


def test_analogy_takes_any_number_of_words() -> None:
    vectors = clustered()
    assert vectors.analogy("w1", n=3) == [(word, pytest.approx(score)) for word, score in vectors.nearest("w1", 3)]
    assert vectors.analogy(["w1", "w2"], minus=["w3", "w4"], method="3cosmul", restrict=6, n=9)[1:] != []
    assert len(vectors.analogy(["w1", "w2"], minus=["w3", "w4"], method="3cosmul", restrict=6, n=9)) == 2


def test_many_analogies_at_once_give_what_one_by_one_gives() -> None:
    vectors = clustered()
    ids = np.random.default_rng(1).integers(0, 500, (20, 3))
    found, _ = vectors.analogies(ids[:, :2], ids[:, 2:], n=2)
    for (a, b, c), row in zip(ids, found, strict=True):
        answers = vectors.analogy([f"w{a}", f"w{b}"], minus=f"w{c}", n=2)
        assert [word for word, _ in answers] == [f"w{i}" for i in row]


def test_the_table_is_not_copied_by_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = make(np.ones((60_000, 64), np.float32))  # 15 MB
    vectors.nearest("w0")
    tracemalloc.start()
    vectors.nearest("w0")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < vectors.input.nbytes / 4


# --- errors ---


def test_an_unknown_word_is_named_with_its_neighbors() -> None:
    vectors = make(np.eye(2), ["whale", "ship"])
    for ask in (vectors.nearest, vectors.__getitem__, vectors.analogy):
        with pytest.raises(KeyError, match=r"'whalee'.*whale"):
            ask("whalee")
    assert "whale" in vectors
    assert "whalee" not in vectors


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda v: v.nearest("w0", 0), "n=0 should be 1 or more"),
        (lambda v: v.nearest("w0", restrict=0), "restrict=0 should be 1 or more"),
        (lambda v: v.nearest(np.ones(3)), re.escape("a query has shape (3,); expected 24 numbers")),
        (lambda v: v.nearest(np.ones((1, 1, 24))), "a query has shape"),
        (lambda v: v.nearest([]), "an empty query"),
        (lambda v: v.nearest(["w0", 5]), "5 among words is not a word"),
        (lambda v: v.nearest(np.full(24, np.nan)), "NaN"),
        (lambda v: v.analogy("w0", method="4cos"), "method='4cos' is not known; expected '3cosadd' or '3cosmul'"),
        (lambda v: v.analogy([]), "no words"),
        (lambda v: v.export("x.bin", which="output"), "which='output' is not here; expected one of input"),
    ],
)
def test_bad_questions_get_a_sentence(ask: Callable[[Vectors], Any], message: str) -> None:
    with pytest.raises((ValueError, KeyError), match=message):
        ask(clustered())


def test_tables_that_do_not_fit_the_vocabulary_are_refused() -> None:
    for table, output in ((np.ones((3, 2)), None), (np.ones(2), None), (np.ones((2, 2)), np.ones((2, 3)))):
        with pytest.raises(ValueError, match="expected a row for each of 2 words"):
            make(table, ["a", "b"], output=output)


def test_nan_in_a_table_is_found_before_anything_is_compared() -> None:
    vectors = make([[1, 0], [np.nan, 1]])
    with pytest.raises(ValueError, match=r"row 2 .*NaN"):
        vectors.nearest("w0")


# --- saved and opened ---


def with_output() -> Vectors:
    padded = np.arange(96, dtype=np.float32).reshape(6, 16)
    metadata = {"dim": 5, "seed": 1, "losses": [2.5, float("nan")], "finished": True, "rate": np.float32(0.5)}
    words = ["the", "new york", " ", "a\nb", "été", "🐋"]
    return make(padded[:, :5], words, output=padded[:, 5:10], metadata=metadata)


def same(a: Vectors, b: Vectors) -> bool:
    return (
        a.vocab.words.equals(b.vocab.words)
        and a.vocab.counts.tolist() == b.vocab.counts.tolist()
        and all(np.array_equal(a.tables[name], b.tables[name]) for name in a.tables | b.tables)
    )


def test_a_saved_model_is_opened_as_it_was_with_any_words(tmp_path: Path) -> None:
    vectors = with_output()
    vectors.save(tmp_path / "x.vectors")
    for opened in (Vectors.load(tmp_path / "x.vectors"), Vectors.read(tmp_path / "x.vectors")):
        assert same(opened, vectors)
        assert opened.metadata == {**vectors.metadata, "losses": [2.5, None], "rate": 0.5}
    assert sorted(os.listdir(tmp_path)) == ["x.vectors"]
    assert sorted(os.listdir(tmp_path / "x.vectors")) == ["model.json", "vectors.safetensors", "vocab.parquet"]
    assert json.loads((tmp_path / "x.vectors/model.json").read_text())["format_version"] == 1


def test_the_tables_can_be_read_by_the_safetensors_library_and_are_aligned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skipgrad.formats.safetensors.CHUNK", 50)
    with_output().save(tmp_path / "x.vectors")
    tables = load_file(tmp_path / "x.vectors/vectors.safetensors")
    assert set(tables) == {"input", "output"}
    assert all(np.array_equal(tables[name], table) for name, table in with_output().tables.items())
    header = struct.unpack("<Q", (tmp_path / "x.vectors/vectors.safetensors").read_bytes()[:8])[0]
    assert (8 + header) % 64 == 0


def test_tables_written_by_the_safetensors_library_are_read(tmp_path: Path) -> None:
    vectors = with_output()
    vectors.save(tmp_path / "x.vectors")
    tables = {name: np.ascontiguousarray(table) for name, table in vectors.tables.items()}
    save_file(tables, tmp_path / "x.vectors/vectors.safetensors", metadata={"by": "another"})
    assert same(Vectors.load(tmp_path / "x.vectors"), vectors)


def test_opened_tables_are_memory_mapped_and_cannot_be_written_to(tmp_path: Path) -> None:
    with_output().save(tmp_path / "x.vectors")
    opened = Vectors.load(tmp_path / "x.vectors")
    with pytest.raises(ValueError, match="read-only"):
        opened.input[0, 0] = 1
    base = opened.input
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert type(base).__name__ == "mmap"
    row = opened["the"]
    assert np.shares_memory(row, opened.input)


def test_an_opened_model_outlives_its_replacement(tmp_path: Path) -> None:
    old = with_output()
    old.save(tmp_path / "x.vectors")
    opened = Vectors.load(tmp_path / "x.vectors")
    clustered().save(tmp_path / "x.vectors", overwrite=True)
    assert same(opened, old)
    assert same(Vectors.load(tmp_path / "x.vectors"), clustered())


def test_an_existing_model_is_refused_and_says_what_to_type(tmp_path: Path) -> None:
    with_output().save(tmp_path / "x.vectors")
    with pytest.raises(FileExistsError, match=r"overwrite=True \(--overwrite\)"):
        clustered().save(tmp_path / "x.vectors")
    assert same(Vectors.load(tmp_path / "x.vectors"), with_output())


def test_only_a_model_is_ever_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for name, strange in (("home", "thesis.tex"), ("file", "file")):
        with pytest.raises(FileExistsError, match=strange):
            clustered().save(tmp_path / name, overwrite=True)
    assert (tmp_path / "home/thesis.tex").read_text() == "years of work"


def test_metadata_that_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="metadata must fit into JSON"):
        make(np.eye(2), metadata={"head": object()}).save(tmp_path / "x.vectors")
    assert not os.listdir(tmp_path)


class Crashed(BaseException):
    """Not an Exception: nothing in a library should catch it."""


class Disk:
    """Fails at the n-th call of the functions that change the disk, once or from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: BaseException, dead: bool) -> None:
        self.calls, self.fail_at, self.error, self.dead = 0, fail_at, error, dead
        monkeypatch.setattr(folder.tempfile, "mkdtemp", self.guard(folder.tempfile.mkdtemp))
        monkeypatch.setattr(folder, "write_tables", self.guard(folder.write_tables))
        monkeypatch.setattr(folder.pq, "write_table", self.guard(folder.pq.write_table))
        monkeypatch.setattr(Path, "write_bytes", self.guard(Path.write_bytes))
        monkeypatch.setattr(shutil, "rmtree", self.guard(shutil.rmtree))
        for name in ("fsync", "rename"):
            monkeypatch.setattr(os, name, self.guard(getattr(os, name)))

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.fail_at or (self.dead and self.calls > self.fail_at):
                if kwargs.get("ignore_errors") and isinstance(self.error, OSError):
                    return None
                raise self.error
            return function(*args, **kwargs)

        return guarded


def whole_models(tmp_path: Path) -> list[Vectors]:
    models = []
    for path in tmp_path.iterdir():
        try:
            models.append(Vectors.load(path))
        except (ValueError, FileNotFoundError):
            continue
    return models


@pytest.mark.parametrize("exists", [False, True], ids=["new", "replaced"])
def test_a_save_that_fails_at_any_step_leaves_what_was_there(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = with_output(), clustered()
    refused = 0
    for step in range(1, 100):
        path = tmp_path / str(step) / "x.vectors"
        path.parent.mkdir()
        if exists:
            old.save(path)
        with monkeypatch.context() as patch:
            disk = Disk(patch, step, OSError(errno.ENOSPC, "No space left on device"), dead=False)
            try:
                new.save(path, overwrite=True)
            except OSError as error:
                message = str(error)
            else:
                message = ""  # what failed came after the new model was in place
        if message:
            refused += 1
            assert re.search(r"x\.vectors was not written: the disk is full; free some space", message)
            assert os.listdir(path.parent) == ["x.vectors"] * exists
        if not message or exists:
            assert same(Vectors.load(path), old if message else new)
        if disk.calls < step:
            break
    assert refused > 7
    assert step < 99


def test_a_crash_at_any_step_leaves_one_whole_model_and_the_next_save_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = with_output(), clustered()
    rescued = 0
    for step in range(1, 100):
        path = tmp_path / str(step) / "x.vectors"
        path.parent.mkdir()
        old.save(path)
        with monkeypatch.context() as patch:
            disk = Disk(patch, step, Crashed(), dead=True)
            with contextlib.suppress(Crashed):
                new.save(path, overwrite=True)
        if disk.calls < step:
            break
        assert any(same(model, old) or same(model, new) for model in whole_models(path.parent))
        if not path.exists():
            rescued += 1
            with pytest.raises(FileNotFoundError, match=r"the model that was there is whole in .*\.x\.vectors\.old"):
                Vectors.load(path)
            assert same(Vectors.load(path.parent / ".x.vectors.old"), old)
        new.save(path, overwrite=True)
        assert same(Vectors.load(path), new)
        assert not path.with_name(".x.vectors.old").exists()
    assert rescued
    assert 9 < step < 99


# --- broken folders ---


def damaged_header(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda header: {**header, "input": {**header["input"], **changes}}


@pytest.mark.parametrize(
    "damage",
    [
        damaged_header(shape=[10**12, 100]),
        damaged_header(shape=[-6, -5]),
        damaged_header(shape=[6, 5, 1]),
        damaged_header(shape=[10**12, 100], data_offsets=[0, 4 * 10**14]),
        damaged_header(data_offsets=[-120, 0]),
        damaged_header(data_offsets=[0]),
        damaged_header(data_offsets="xy"),
        damaged_header(shape=[6.0, 5]),
        damaged_header(dtype="F16"),
        damaged_header(shape=[5, 6]),
        lambda header: {"other": header["input"]},
        lambda header: [],
        lambda header: {"input": 5},
    ],
)
def test_a_lying_safetensors_header_is_refused(damage: Callable[[Any], Any], tmp_path: Path) -> None:
    with_output().save(tmp_path / "x.vectors")
    path = tmp_path / "x.vectors/vectors.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.dumps(damage(json.loads(data[8 : 8 + length]))).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :])
    with pytest.raises(ValueError, match=r"x\.vectors"):
        Vectors.load(tmp_path / "x.vectors")


@pytest.mark.parametrize("name", folder.FILES)
def test_a_file_of_a_model_cut_at_any_byte_is_refused(name: str, tmp_path: Path) -> None:
    make(np.eye(2), ["a", "b"]).save(tmp_path / "x.vectors")
    path = tmp_path / "x.vectors" / name
    whole = path.read_bytes()
    needed = len(whole) - (name == "model.json")  # which ends with a newline
    for length in range(needed):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=rf"x\.vectors.{name}"):
            Vectors.load(tmp_path / "x.vectors")


@pytest.mark.parametrize("name", folder.FILES)
def test_a_missing_file_of_a_model_is_named(name: str, tmp_path: Path) -> None:
    make(np.eye(2)).save(tmp_path / "x.vectors")
    (tmp_path / "x.vectors" / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        Vectors.load(tmp_path / "x.vectors")


def test_what_is_no_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"x\.vectors is not there"):
        Vectors.load(tmp_path / "x.vectors")
    (tmp_path / "x.txt").write_text("x 1\n")
    with pytest.raises(ValueError, match=r"Vectors\.read"):
        Vectors.load(tmp_path / "x.txt")
    make(np.eye(2)).save(tmp_path / "x.vectors")
    model = tmp_path / "x.vectors/model.json"
    model.write_text(model.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(ValueError, match=r"format version 99.*upgrade"):
        Vectors.load(tmp_path / "x.vectors")


@pytest.mark.parametrize(
    "columns",
    [
        {"word": ["a", "b"]},
        {"word": ["a", "b"], "count": ["x", "y"]},
        {"word": ["a", "b"], "count": [1, None]},
        {"count": [2, 1]},
    ],
    ids=["no count", "counts that are words", "a missing count", "no word"],
)
def test_a_strange_vocabulary_is_refused(columns: dict[str, Any], tmp_path: Path) -> None:
    make(np.eye(2)).save(tmp_path / "x.vectors")
    folder.pq.write_table(pa.table(columns), tmp_path / "x.vectors/vocab.parquet")
    with pytest.raises(ValueError, match=r"vocab\.parquet is not a whole Parquet file with the columns word and count"):
        Vectors.load(tmp_path / "x.vectors")


def test_a_vocabulary_of_another_model_is_refused(tmp_path: Path) -> None:
    make(np.eye(2)).save(tmp_path / "x.vectors")
    make(np.eye(3)).save(tmp_path / "y.vectors")
    shutil.copy(tmp_path / "y.vectors/vocab.parquet", tmp_path / "x.vectors/vocab.parquet")
    with pytest.raises(ValueError, match="2 rows, and there are 3 words"):
        Vectors.load(tmp_path / "x.vectors")
