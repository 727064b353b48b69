"""Vocabularies: order, bounds, files, and helpful errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipgrad.vocab import Vocab, VocabOptions

COUNTS = {"the": 9, "whale": 2, "Whale": 2, "élan": 2, "sea": 5}
ORDERED = ["the", "sea", "Whale", "whale", "élan"]


def table_of(counts: dict[str, int]) -> pa.Table:
    return pa.table({"count": pa.array(list(counts.values()), pa.int32()), "word": list(counts)})


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(0, 5)))
def test_order_is_by_count_then_by_bytes(counts):
    vocab = Vocab.from_counts(counts, min_count=2)
    kept = sorted((-n, word.encode()) for word, n in counts.items() if n >= 2)
    assert [word.encode() for word in vocab] == [word for _, word in kept]
    assert vocab.counts.tolist() == [-n for n, _ in kept]


@pytest.mark.parametrize("kind", ["mapping", "table", "parquet"])
def test_counts_from_anywhere(tmp_path, kind):
    source = COUNTS if kind == "mapping" else table_of(COUNTS)
    if kind == "parquet":
        source = tmp_path / "counts.parquet"
        pa.parquet.write_table(table_of(COUNTS), source)
    assert list(Vocab.from_counts(source)) == ORDERED
    assert list(Vocab.from_counts(source, min_count=3)) == ["the", "sea"]
    assert list(Vocab.from_counts(source, max_size=3)) == ["the", "sea", "Whale"]


def test_a_vocabulary_is_what_was_written(tmp_path):
    vocab = Vocab.from_counts(COUNTS)
    vocab.write(tmp_path / "vocab.parquet")
    again = Vocab.read(tmp_path / "vocab.parquet")
    assert list(again) == ORDERED
    assert again.counts.dtype == np.int64
    assert again.counts.tolist() == [9, 5, 2, 2, 2]
    assert again.words.type == pa.large_string()
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.parquet"]


def test_words_are_found():
    vocab = Vocab.from_counts(COUNTS)
    assert len(vocab) == 5
    assert [vocab[i] for i in range(5)] == ORDERED
    assert [vocab.index(word) for word in ORDERED] == [0, 1, 2, 3, 4]
    assert "sea" in vocab
    assert "see" not in vocab


def test_a_missing_word_suggests_near_ones():
    vocab = Vocab.from_counts(COUNTS)
    with pytest.raises(KeyError, match=r"'whales' is not among the 5 words of the vocabulary; did you mean 'whale'"):
        vocab.index("whales")
    with pytest.raises(KeyError, match="of the vocabulary"):
        vocab.index("")
    assert vocab.near("WHALE") == ["Whale", "whale"]
    assert vocab.near("xyz") == []
    assert vocab.near("") == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"token": ["a"]}), "has no column 'word'; there are: token"),
        (pa.table({"word": ["a"]}), "has no column 'count'"),
        (pa.table({"word": ["a", None], "count": [1, 1]}), "has empty words"),
        (pa.table({"word": ["a", ""], "count": [1, 1]}), "has empty words"),
        (pa.table({"word": ["a", "a"], "count": [1, 1]}), "has 1 words twice"),
        (pa.table({"word": ["a", "b"], "count": [1, -1]}), "counts that are missing or negative"),
        (pa.table({"word": ["a", "b"], "count": [1, None]}), "counts that are missing or negative"),
        (pa.table({"word": ["a"], "count": ["many"]}), "column 'count' must hold whole numbers, not string"),
        (pa.table({"word": [1.5], "count": [1]}), "column 'word' must hold strings, not double"),
    ],
)
def test_tables_that_are_no_counts(table, message):
    with pytest.raises(ValueError, match=message):
        Vocab.from_counts(table)


def test_files_that_are_no_counts(tmp_path):
    (tmp_path / "counts.parquet").write_text("word,count")
    with pytest.raises(ValueError, match="is not a whole Parquet file"):
        Vocab.read(tmp_path / "counts.parquet")
    with pytest.raises(FileNotFoundError):
        Vocab.read(tmp_path / "missing.parquet")


@pytest.mark.parametrize(
    ("given", "expected"), [(10**7, 10**7), ("500MB", 5 * 10**8), ("1.5 gb", 15 * 10**8), ("2000000", 2 * 10**6)]
)
def test_memory_in_words(given, expected):
    assert VocabOptions(max_memory=given).memory == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count must be 1 or more, not 0"),
        ({"max_size": 0}, "max_size must be 1 or more, or None, not 0"),
        ({"max_memory": "lots"}, "max_memory is a number of bytes, or text such as '500MB', not 'lots'"),
        ({"max_memory": "1KB"}, "max_memory must be 1MB or more, not '1KB'"),
        ({"max_memory": -1}, "max_memory"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        VocabOptions(**options)
