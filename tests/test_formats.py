"""What every file format keeps to: it passes by being in FORMATS."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import struct
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from skipgrad.formats import FORMATS
from skipgrad.formats.format import Format
from skipgrad.formats.npy import words_path
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab

every_format = pytest.mark.parametrize("format", FORMATS.values(), ids=list(FORMATS))
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


def make(words: list[str], table: Any) -> Vectors:
    return Vectors(Vocab(pa.array(words, pa.large_string()), np.zeros(len(words), np.int64)), table)


def small() -> Vectors:
    return make(["the", "été", "#1"], np.array([[0.5, -1.25e-7], [3, 1e10], [-0.0, 1 / 3]], np.float32))


def words_of(vectors: Vectors) -> list[str]:
    words: list[str] = vectors.vocab.words.to_pylist()
    return words


def same(a: Vectors, b: Vectors) -> bool:
    return words_of(a) == words_of(b) and a.input.tobytes() == b.input.tobytes()


def all_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@st.composite
def any_vectors(draw: st.DrawFn, separators: str) -> Vectors:
    characters = st.characters(exclude_categories=["Cs"], exclude_characters=re.sub(r"[\[\]]", "", separators))
    words = draw(st.lists(st.text(characters, min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(1, 5)))
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    return make(words, draw(st_numpy.arrays(np.float32, shape, elements=floats)))


# --- what was written is what is read ---


@every_format
@same_folder
@given(data=st.data())
def test_any_words_and_any_float32_survive_a_round_trip(format: Format, data: st.DataObject, tmp_path: Path) -> None:
    separators = format.separators.encode().decode("unicode_escape")
    vectors = data.draw(any_vectors(separators))
    path = tmp_path / f"x{format.extension}"
    vectors.export(path, overwrite=True)
    assert same(vectors, Vectors.read(path, format.name))
    assert not [name for name in all_files(tmp_path) if name.startswith(".")]


@every_format
@pytest.mark.parametrize("word", ['"', "'", ",", "\\", "nan", "NULL", "\ufeffx", "5", "#", "\u00a0", "\u2028", "🐋"])
def test_awkward_words_survive(format: Format, word: str, tmp_path: Path) -> None:
    for words in ([word, "other"], ["other", word]):
        vectors = make(words, np.array([[1, 2], [3, 4]]))
        vectors.export(tmp_path / f"x{format.extension}", overwrite=True)
        assert same(vectors, Vectors.read(tmp_path / f"x{format.extension}", format.name))


@every_format
def test_the_format_is_found_from_the_file(format: Format, tmp_path: Path) -> None:
    small().export(tmp_path / f"x{format.extension}")
    assert Vectors.read(tmp_path / f"x{format.extension}").metadata["format"] == format.name
    if format.name == "npy":  # its words are found by its name
        return
    (tmp_path / f"x{format.extension}").rename(tmp_path / "x.txt")
    found = Vectors.read(tmp_path / "x.txt").metadata["format"]
    assert found == {"fasttext-vec": "word2vec-text"}.get(format.name, format.name)


@every_format
def test_rows_of_a_padded_table_are_written_without_their_padding(format: Format, tmp_path: Path) -> None:
    padded = np.arange(48, dtype=np.float32).reshape(3, 16)
    vectors = make(["a", "b", "c"], padded[:, :5])
    vectors.export(tmp_path / f"x{format.extension}")
    assert np.array_equal(Vectors.read(tmp_path / f"x{format.extension}").input, padded[:, :5])


@every_format
def test_many_rows_cross_the_blocks_of_reader_and_writer(
    format: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("text_rows.BLOCK", 1000), ("text_rows.FORMATTED", 500), ("word2vec_binary.ROWS", 7)):
        monkeypatch.setattr(f"skipgrad.formats.{name}", value)
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(300)]
    words[150] = "\ufeffmark"
    vectors = make(words, random.standard_normal((300, 7)))
    vectors.export(tmp_path / f"x{format.extension}")
    assert same(vectors, Vectors.read(tmp_path / f"x{format.extension}"))


# --- what cannot be kept is refused ---


BROKEN_WORDS = ["new york", "a\nb", "a\tb", "a\rb", "\x0b", "end "]
REFUSED = [(format, word) for format in FORMATS.values() for word in BROKEN_WORDS if re.search(format.separators, word)]


@pytest.mark.parametrize(("format", "bad"), REFUSED, ids=[f"{format.name}-{word!r}" for format, word in REFUSED])
def test_words_that_would_fall_apart_are_refused(format: Format, bad: str, tmp_path: Path) -> None:
    vectors = make(["good", bad, "also bad"], np.ones((3, 2)))
    with pytest.raises(ValueError, match=re.escape(f"{bad!r} (row 2)") + ".*replace_spaces"):
        vectors.export(tmp_path / f"x{format.extension}")
    assert not all_files(tmp_path)


@every_format
def test_an_empty_word_is_refused_by_writer_and_reader(format: Format, tmp_path: Path) -> None:
    vectors, path = make(["a", "", "b"], np.ones((3, 2), np.float32)), tmp_path / f"x{format.extension}"
    with pytest.raises(ValueError, match="row 2 is empty"):
        vectors.export(path)
    format.write(path, vectors.vocab.words, vectors.input, False)
    with pytest.raises(ValueError, match=r"x\..* is empty"):
        Vectors.read(path, format.name)


@every_format
def test_spaces_are_replaced_when_asked(format: Format, tmp_path: Path) -> None:
    make(["new york", "a\tb\nc"], np.ones((2, 2))).export(tmp_path / f"x{format.extension}", replace_spaces="_")
    assert words_of(Vectors.read(tmp_path / f"x{format.extension}")) == ["new_york", "a_b_c"]


@pytest.mark.parametrize("by", ["", " ", "a\tb"])
def test_a_replacement_that_is_a_space_is_refused(by: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="replace_spaces"):
        small().export(tmp_path / "x.bin", replace_spaces=by)


def test_a_replacement_that_makes_two_words_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two words 'a_b'"):
        make(["a_b", "a b"], np.ones((2, 2))).export(tmp_path / "x.bin", replace_spaces="_")


@every_format
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_is_refused_by_writer_and_reader_and_the_row_is_named(
    format: Format, bad: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.ones((3, 2), np.float32)
    table[1, 1] = bad
    vectors, path = make(["a", "b", "c"], table), tmp_path / f"x{format.extension}"
    with pytest.raises(ValueError, match="row 2, the word 'b'"):
        vectors.export(path)
    format.write(path, vectors.vocab.words, table, False)
    with pytest.raises(ValueError, match=r"x\..*row 2, the word 'b'.*NaN"):
        Vectors.read(path)


@every_format
def test_an_existing_file_is_refused_and_says_what_to_type(format: Format, tmp_path: Path) -> None:
    path = tmp_path / f"x{format.extension}"
    small().export(path)
    before = all_files(tmp_path)
    with pytest.raises(FileExistsError, match=r"overwrite=True \(--overwrite\)"):
        make(["x"], [[1]]).export(path)
    assert all_files(tmp_path) == before
    make(["x"], [[1]]).export(path, overwrite=True)
    assert len(Vectors.read(path)) == 1


@every_format
@pytest.mark.parametrize("broken", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    format: Format, broken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"x{format.extension}"
    small().export(path)
    before = all_files(tmp_path)

    def fsync(_: int) -> None:
        raise OSError(broken, os.strerror(broken))

    monkeypatch.setattr(os, "fsync", fsync)
    why = "the disk is full; free some space" if broken == errno.ENOSPC else os.strerror(broken)
    with pytest.raises(OSError, match=rf"x\..* was not written: {why}"):
        make(["x"], [[1]]).export(path, overwrite=True)
    assert all_files(tmp_path) == before


# --- broken files ---


@every_format
def test_a_file_cut_at_any_byte_is_never_read_as_another_table(format: Format, tmp_path: Path) -> None:
    path, vectors = tmp_path / f"x{format.extension}", small()
    vectors.export(path)
    for part in [path, words_path(path)] if format.name == "npy" else [path]:
        whole = part.read_bytes()
        refused = 0
        for length in range(len(whole)):
            part.write_bytes(whole[:length])
            try:
                read = Vectors.read(path, format.name)
            except ValueError as error:
                refused += bool(re.fullmatch(r"(?s).*x\..*[.]", str(error)))
            else:  # a missing newline at the end of binary harms nothing; GloVe has no header to miss a row by
                rows = len(read) if format.name == "glove" else len(vectors)
                assert same(read, make(words_of(vectors)[:rows], vectors.input[:rows]))
        assert refused >= len(whole) - 3
        part.write_bytes(whole)


@every_format
@same_folder
@given(data=st.data())
def test_a_file_with_any_bytes_is_read_or_refused_with_a_sentence(
    format: Format, data: st.DataObject, tmp_path: Path
) -> None:
    path = tmp_path / f"x{format.extension}"
    small().export(path, overwrite=True)
    part = words_path(path) if format.name == "npy" and data.draw(st.booleans()) else path
    whole = part.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(len(whole), start + 20)))
    part.write_bytes(whole[:start] + data.draw(st.binary(max_size=20)) + whole[stop:])
    for name in (None, format.name):
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")
            read = Vectors.read(path, name)
            assert np.isfinite(read.input).all()
            assert len(set(words_of(read))) == len(read)


LIES = {
    "a count of 10^12": b"1000000000000 100",
    "a count beyond 64 bits": b"100000000000000000000000 100",
    "a dimension of 10^12": b"3 1000000000000",
    "both large": b"999999999999999999 999999999999999999",
    "a negative dimension": b"3 -2",
    "a negative count": b"-3 2",
    "no words": b"0 2",
    "no dimensions": b"3 0",
    "more words than there are": b"4 2",
    "fewer words than there are": b"2 2",
    "more dimensions than there are": b"3 3",
    "fewer dimensions than there are": b"3 1",
    "one number": b"3",
    "three numbers": b"3 2 1",
    "a fraction": b"3.0 2",
}


@pytest.mark.parametrize("name", ["word2vec-binary", "word2vec-text", "fasttext-vec"])
@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_a_lying_header_is_refused_without_memory_for_it(name: str, lie: bytes, tmp_path: Path) -> None:
    format = FORMATS[name]
    path = tmp_path / f"x{format.extension}"
    small().export(path)
    body = path.read_bytes().split(b"\n", 1)[1]
    path.write_bytes(lie + b"\n" + body)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"x\..*(header|first line|expected|UTF-8|more than 1 numbers)"):
            Vectors.read(path, name)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [("(1000000000000, 100)", "<f4"), ("(-3, 2)", "<f4"), ("(3, 2, 1)", "<f4"), ("(3,)", "<f4"), ("(3, 2)", "<i4"),
     ("(3, 2)", "|O"), ("(0, 2)", "<f4"), ("(2, 2)", "<f4"), ("(3, 3)", "<f4")],
)  # fmt: skip
def test_a_lying_npy_header_is_refused(shape: str, dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    small().export(path)
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + small().input.tobytes())
    with pytest.raises(ValueError, match=r"x\.npy"):
        Vectors.read(path)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_npy_table_of_floats_is_read(dtype: str, order: Any, tmp_path: Path) -> None:
    table = np.array([[1, 2.5, -3], [0, 0.125, 8]], dtype, order=order)
    np.save(tmp_path / "x.npy", table)
    (tmp_path / "x.words.txt").write_bytes(b"a\r\nnew york\r\n")
    read = Vectors.read(tmp_path / "x.npy")
    assert words_of(read) == ["a", "new york"]
    assert read.input.dtype == np.float32
    assert np.array_equal(read.input, table)


# --- what other programs write ---


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["rows without newline", "rows with newline"])
def test_both_kinds_of_word2vec_binary_are_read(end: bytes, tmp_path: Path) -> None:
    rows = [b"a " + np.float32([1, 2]).tobytes() + end, b"b " + np.float32([3, 4]).tobytes() + end]
    (tmp_path / "x.bin").write_bytes(b"2 2\n" + b"".join(rows))
    assert same(Vectors.read(tmp_path / "x.bin"), make(["a", "b"], np.array([[1, 2], [3, 4]])))


@pytest.mark.parametrize(
    "text",
    [
        b"2 2 \na 1 2 \nb 3 4 \n",
        b"2 2\r\na 1 2\r\nb 3 4\r\n",
        b"2 2\na +1 2.\nb 3e0 40E-1\n",
        b"2\t2\na\t1\t2\nb 3 4 \n",
    ],
    ids=["trailing spaces", "CRLF", "other ways to write numbers", "tabs"],
)
def test_variants_of_text_are_read(text: bytes, tmp_path: Path) -> None:
    expected = make(["a", "b"], np.array([[1, 2], [3, 4]]))
    (tmp_path / "x.txt").write_bytes(text)
    assert same(Vectors.read(tmp_path / "x.txt"), expected)
    (tmp_path / "headless.txt").write_bytes(text.split(b"\n", 1)[1])
    if not text.startswith(b"2\t"):
        assert same(Vectors.read(tmp_path / "headless.txt"), expected)


def test_a_glove_word_may_hold_spaces_as_its_published_files_do(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"the 1 2\n. . . 3 4\nat name@example.org 5 6\n")
    assert words_of(Vectors.read(tmp_path / "x.txt")) == ["the", ". . .", "at name@example.org"]


@pytest.mark.parametrize(
    ("row", "message"),
    [(b"b 3", "line 3 has 1 numbers, expected 2"), (b"b 3 x", "line 3 should be a word and 2 numbers"),
     (b"b 3 4 5", "line 3 has more than 2 numbers"), (b"", "line 3 has 0 numbers"), (b"b 3 ", "line 3 has 1 numbers")],
)  # fmt: skip
def test_a_bad_row_of_text_is_named(row: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"3 2\na 1 2\n" + row + b"\nc 5 6\n")
    with pytest.raises(ValueError, match=message):
        Vectors.read(tmp_path / "x.txt")


@every_format
def test_of_a_repeated_word_the_first_row_is_kept_and_the_rest_reported(format: Format, tmp_path: Path) -> None:
    path = tmp_path / f"x{format.extension}"
    words = pa.array(["a", "b", "a", "c", "b", "a"], pa.large_string())
    format.write(path, words, np.arange(12, dtype=np.float32).reshape(6, 2), False)
    with pytest.warns(UserWarning, match="3 rows of repeated words"):
        read = Vectors.read(path)
    assert same(read, make(["a", "b", "c"], np.array([[0, 1], [2, 3], [6, 7]])))
    assert read.metadata["repeated"] == 3


@every_format
def test_words_that_are_not_utf8_are_refused_with_the_byte_or_replaced(format: Format, tmp_path: Path) -> None:
    path = tmp_path / f"x{format.extension}"
    make(["good", "b!d", "last"], np.ones((3, 2))).export(path)
    part = words_path(path) if format.name == "npy" else path
    part.write_bytes(part.read_bytes().replace(b"b!d", b"b\xffd"))
    byte = part.read_bytes().index(b"\xff")
    with pytest.raises(ValueError, match=rf"row 2\).*not valid UTF-8 at byte {byte}.*errors='replace'"):
        Vectors.read(path)
    assert words_of(Vectors.read(path, errors="replace")) == ["good", "b\ufffdd", "last"]


@every_format
def test_counts_of_a_format_without_counts_are_zero(format: Format, tmp_path: Path) -> None:
    small().export(tmp_path / f"x{format.extension}")
    assert Vectors.read(tmp_path / f"x{format.extension}").vocab.counts.tolist() == [0, 0, 0]


# --- files that are something else ---


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("x.txt", b"", "is empty"), ("x.bin", b"", "is empty"), ("x.vec", b"", "is empty"), ("x.glove", b"", "first line"),
     ("x.txt", b"\x1f\x8b\x08", "packed with gzip: unpack"), ("x.txt", b"PK\x03\x04", "packed with zip"),
     ("x.txt", b"Call me Ishmael.\n", "which is none of word2vec-binary"),
     ("x.bin", struct.pack("<i", 793712314) + b"\x0c", "is a fastText model"),
     ("x.bin", b"\xff" * 200, "no header")],
)  # fmt: skip
def test_another_file_is_refused_with_a_sentence(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Vectors.read(tmp_path / name)


def test_a_missing_file_an_unknown_format_and_an_unknown_extension_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"x\.bin is not there"):
        Vectors.read(tmp_path / "x.bin")
    with pytest.raises(ValueError, match="format='word3vec' is not known; expected one of word2vec-binary"):
        small().export(tmp_path / "x.bin", "word3vec")
    with pytest.raises(ValueError, match=r"extension.*\.bin \(word2vec-binary\)"):
        small().export(tmp_path / "x.xyz")
    with pytest.raises(FileNotFoundError, match=r"folder .* is not there"):
        small().export(tmp_path / "missing" / "x.bin")
    np.save(tmp_path / "x.npy", small().input)
    with pytest.raises(FileNotFoundError, match=r"expected .*x\.words\.txt"):
        Vectors.read(tmp_path / "x.npy")
    (tmp_path / "x.npy").rename(tmp_path / "x.txt")
    with pytest.raises(ValueError, match=r"x\.txt is a NumPy table: rename it to \.npy"):
        Vectors.read(tmp_path / "x.txt")


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.bin").mkdir()
    with pytest.raises(FileExistsError, match="is a folder"):
        small().export(tmp_path / "x.bin", overwrite=True)
