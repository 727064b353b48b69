"""Reading: all formats give the same sentences, tokenizers do what their definition says, bad input is named."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipgrad import _native
from skipgrad.counting import all_words
from skipgrad.text import TextOptions, find_source
from skipgrad.text.tokenizers import native_classes, word_classes, words

SENTENCES = [
    ["the", "whale", "is", "no", "fish"],
    ["한국어", "naïve", "𝔘nicode", "\ufeffmark"],
    [],
    ["a", "word-of-more-than-sixteen-bytes", "12345678", "1234567890123456"],
    ["the", "the", "end"],
]


def read(source: Any, size: int = 1 << 22, **options: Any) -> list[list[str]]:
    """The sentences of a source, empty ones left out; a word without id is None."""
    chosen = TextOptions(**options)
    counter = _native.Counter(native_classes(chosen.tokenizer))
    ids: list[int] = []
    for chunk in find_source(source).chunks(chosen, size):
        good = chunk.checked(chosen.errors)
        if good.words is None:
            ids += counter.feed(good.data, good.ends, good.inside).tolist()
        else:
            ids += counter.feed_tokens(good.data, good.words, good.sentences).tolist()
    return sentences_of(ids, all_words(counter)[0].to_pylist())


def sentences_of(ids: list[int], names: list[str]) -> list[list[str]]:
    found: list[list[Any]] = [[]]
    for i in ids:
        if i == -1:
            found.append([])
        else:
            found[-1].append(names[i] if i >= 0 else None)
    assert found[-1] == []
    return [sentence for sentence in found if sentence]


# ---------------------------------------------------------------- one contract for all formats


def _lines(path: Path, sentences: list[list[str]]) -> None:
    path.write_text("\n".join(" ".join(s) for s in sentences) + "\n", encoding="utf-8")


def _lines_of_windows(path: Path, sentences: list[list[str]]) -> None:
    path.write_text("\ufeff" + "\r\n".join("\t ".join(s) for s in sentences), encoding="utf-8", newline="")


def _json(path: Path, sentences: list[list[str]]) -> None:
    path.write_text("".join(json.dumps({"n": i, "body": " ".join(s)}) + "\n" for i, s in enumerate(sentences)))


def _json_lists(path: Path, sentences: list[list[str]]) -> None:
    path.write_text("".join(json.dumps({"body": s, "n": None}, ensure_ascii=False) + "\n" for s in sentences), "utf-8")


def _csv(path: Path, sentences: list[list[str]]) -> None:
    table = pa.table({"n": range(len(sentences)), "body": [" ".join(s) for s in sentences]})
    delimiter = "\t" if ".tsv" in path.name else ","
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=delimiter))


def _parquet(path: Path, sentences: list[list[str]]) -> None:
    pa.parquet.write_table(pa.table({"n": range(len(sentences)), "body": [" ".join(s) for s in sentences]}), path)


def _parquet_lists(path: Path, sentences: list[list[str]]) -> None:
    pa.parquet.write_table(pa.table({"body": sentences, "n": range(len(sentences))}), path, row_group_size=2)


FORMATS: list[tuple[str, Callable[[Path, list[list[str]]], None], dict[str, Any]]] = [
    ("a.txt", _lines, {}),
    ("no-suffix", _lines, {}),
    ("windows.txt", _lines_of_windows, {}),
    ("a.jsonl", _json, {"column": "body"}),
    ("lists.ndjson", _json_lists, {"column": "body"}),
    ("a.csv", _csv, {"column": "body"}),
    ("a.tsv", _csv, {"column": "body"}),
    ("odd-name", _json, {"column": "body", "format": "jsonl"}),
    ("a.parquet", _parquet, {"column": "body"}),
    ("lists.parquet", _parquet_lists, {"column": "body"}),
]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": _zstd,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
CASES = [
    pytest.param(name, write, options, compression, id=name + compression)
    for name, write, options in FORMATS
    for compression in COMPRESSIONS
    if not (compression and name.endswith(".parquet"))
]


@pytest.mark.parametrize(("name", "write", "options", "compression"), CASES)
@pytest.mark.parametrize("size", [7, 1 << 22])
def test_all_formats_give_the_same_sentences(tmp_path, name, write, options, compression, size):
    plain = tmp_path / name
    write(plain, SENTENCES)
    path = tmp_path / (name + compression)
    path.write_bytes(COMPRESSIONS[compression](plain.read_bytes()))
    assert read(path, size, **options) == [s for s in SENTENCES if s]


TABLE = pa.table({"n": range(len(SENTENCES)), "body": SENTENCES})
ROWS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "lists": (lambda: SENTENCES, {}),
    "tuples": (lambda: (tuple(s) for s in SENTENCES), {}),
    "strings": (lambda: [" ".join(s) for s in SENTENCES], {}),
    "generator": (lambda: (" ".join(s) for s in SENTENCES), {}),
    "table": (lambda: TABLE, {"column": "body"}),
    "sliced table": (lambda: pa.concat_tables([TABLE, TABLE]).combine_chunks().slice(5), {"column": "body"}),
    "reader": (TABLE.to_reader, {"column": "body"}),
    "table of text": (lambda: pa.table({"body": [" ".join(s) for s in SENTENCES]}), {}),
    "dictionary": (lambda: pa.table({"t": pa.array([" ".join(s) for s in SENTENCES]).dictionary_encode()}), {}),
    "views": (lambda: pa.table({"t": pa.array([" ".join(s) for s in SENTENCES], pa.string_view())}), {}),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("size", [7, 1 << 22])
def test_rows_give_the_same_sentences(kind, size):
    make, options = ROWS[kind]
    assert read(make(), size, **options) == [s for s in SENTENCES if s]


def test_numbers_are_words_and_nulls_are_empty():
    assert read([[3, 14], [159]]) == [["3", "14"], ["159"]]
    assert read(pa.table({"t": [[3, None, 14], None, [15]]})) == [["3", "14"], ["15"]]
    assert read(pa.table({"t": ["a b", None, "c"]})) == [["a", "b"], ["c"]]


def test_globs_folders_and_path_lists_read_files_in_order(tmp_path):
    (tmp_path / "b" / ".hidden").mkdir(parents=True)
    (tmp_path / "b" / "one.txt").write_text("b one")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a"))
    (tmp_path / "b" / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "b" / ".hidden" / "c.txt").write_text("no")
    assert read(tmp_path) == [["a"], ["b", "one"]]
    assert find_source(str(tmp_path)).left_out == 1
    assert read(str(tmp_path / "**" / "*.txt")) == [["b", "one"]]
    assert read([tmp_path / "b" / "one.txt", tmp_path / "a.txt.gz"]) == [["b", "one"], ["a"]]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"to be\nor not")))
    assert read("-") == [["to", "be"], ["or", "not"]]


def test_a_document_keeps_its_line_breaks_inside():
    rows = pa.table({"t": ["to be\nor not", "to\nbe"]})
    assert read(rows) == [["to", "be"], ["or", "not"], ["to"], ["be"]]
    assert read(rows, lines="document") == [["to", "be", "or", "not"], ["to", "be"]]


# ---------------------------------------------------------------- tokenizers

# Characters that are near the edges of the definitions.
ODD = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u200b\u2028\u202f\u205f\u3000"
ODD += "'’_\u200dİIıßẞÀéΑΣσς\u0301e1²Ⅷ한\U0001d518"
TEXT = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_characters="\0", exclude_categories=["Cs"])))


@given(TEXT)
def test_the_native_split_is_that_of_python(text):
    assert read([text]) == [s for line in text.split("\n") if (s := line.split())]


@given(TEXT)
def test_the_native_words_are_those_of_the_definition(text):
    text = text.replace("Σ", "")
    assert read([text], tokenizer="words") == [s for line in text.split("\n") if (s := words(line))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't  'quote' __init__ snake_case", ["don't", "quote", "init", "snake_case"]),
        ("İstanbul ΟΔΥΣΣΕΥΣ ΣΑΣ Σ", ["i̇stanbul", "οδυσσευς", "σας", "σ"]),
        ("e\u0301te\u0301 l’été 3.14 a-b", ["e\u0301te\u0301", "l’été", "3", "14", "a", "b"]),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", ["abcdefghijklmnopqrstuvwxyz"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected
    assert read([text], tokenizer="words") == [expected]


def test_lower_case_is_that_of_python_for_every_character():
    classes = word_classes()
    for code in range(0x110000):
        character = chr(code)
        if classes[code] & 1 and character != "İ":
            assert chr(classes[code] >> 2) == character.lower()


@pytest.mark.parametrize("tokenizer", ["whitespace", "words"])
@pytest.mark.parametrize("size", [1, 3, 64])
def test_long_lines_are_cut_between_words_only(tmp_path, tokenizer, size):
    text = "Grüße\u3000an die ganze Welt und noch viel mehr 한국어 x" * 20 + "\nEnd"
    path = tmp_path / "long.txt"
    path.write_text(text)
    expected = [line.split() if tokenizer == "whitespace" else words(line) for line in text.split("\n")]
    assert read(path, size, tokenizer=tokenizer) == expected


@pytest.mark.parametrize("size", [1000, 70_000, 1 << 22])
@pytest.mark.parametrize("letter", ["x", "é", "한"])
def test_a_word_that_is_too_long_is_no_word(tmp_path, size, letter):
    path = tmp_path / "long.txt"
    longest = "y" * 65_535
    path.write_text(f"to {letter * 300_000} be {longest} {longest}y\nor not")
    assert read(path, size) == [["to", None, "be", longest, None], ["or", "not"]]


# ---------------------------------------------------------------- bad input


@given(st.binary(max_size=200))
def test_invalid_utf8_is_found_where_python_finds_it(data):
    try:
        data.decode()
        first = len(data)
    except UnicodeDecodeError as error:
        first = error.start
    zero = data.find(b"\0")
    expected = min(first, zero if zero >= 0 else len(data))
    assert _native.invalid_utf8(data) == (expected if expected < len(data) else -1)


@given(st.binary(max_size=100).map(lambda data: data.replace(b"\0", b"")))
@settings(max_examples=50)
def test_replacing_is_that_of_python(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("replace") / "a.txt"
    path.write_bytes(data)
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    assert read(path, 8, errors="replace") == [s for line in text.split("\n") if (s := line.split())]


@pytest.mark.parametrize("size", [16, 1 << 22])
def test_invalid_bytes_are_named_with_their_place(tmp_path, size):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"some words\n" * 10 + b"caf\xe9 au lait\n")
    with pytest.raises(ValueError, match=r"latin\.txt, byte 116: not valid UTF-8 \(0xe9\); .*errors='replace'"):
        read(path, size)
    path.write_bytes(b"some words\n" * 10 + b"a\0b\n")
    with pytest.raises(ValueError, match=r"latin\.txt, byte 111: a NUL byte, .*iconv"):
        read(path, size)
    assert read(path, size, errors="replace")[-1] == ["a\ufffdb"]


@pytest.mark.parametrize("value", [b"caf\xe9", [b"a", b"caf\xe9"]])
def test_invalid_bytes_in_a_table_are_named_by_row(value):
    rows = [[b"ok", b"fine"], value] if isinstance(value, list) else [b"ok fine", value]
    with pytest.raises(ValueError, match=r"the table, row 2, byte [34]: not valid UTF-8"):
        read(pa.table({"t": rows}))
    assert read(pa.table({"t": rows}), errors="replace")[-1][-1] == "caf\ufffd"


@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c])
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_a_truncated_file_is_named(tmp_path, compression, name):
    rows = [[f"word{i}", str(i * i)] for i in range(20_000)]
    write, options = {n: (w, o) for n, w, o in FORMATS}[name]
    write(tmp_path / name, rows)
    path = tmp_path / (name + compression)
    data = COMPRESSIONS[compression]((tmp_path / name).read_bytes())
    for cut in (len(data) // 2, len(data) - 3):
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"is cut off: its \w+ data stops in the middle"):
            read(path, **options)
    path.write_bytes(b"not compressed at all")
    with pytest.raises(ValueError, match=r"is not valid \w+ data"):
        read(path, **options)


def test_a_missing_file_suggests_near_ones(tmp_path):
    (tmp_path / "corpus.txt").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"did you mean .*corpus\.txt\?"):
        read(tmp_path / "corpsu.txt")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read(str(tmp_path / "*.zip"))


def test_a_folder_without_text(tmp_path):
    (tmp_path / "image.png").write_bytes(b"\0\1\2")
    with pytest.raises(ValueError, match="of its 1 files none is UTF-8 text"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_missing_columns_list_those_there_are(tmp_path, name):
    write = {n: w for n, w, _ in FORMATS}[name]
    write(tmp_path / name, SENTENCES)
    with pytest.raises(ValueError, match=r"has no column 'text'; there are: n, body"):
        read(tmp_path / name, column="text")
    with pytest.raises(ValueError, match=r"say which column holds the text with column=...; there are: n, body"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1.5], "double"), ([True], "bool"), ([[1.5]], "double"), ([{"a": 1}], "struct"), ([[["a"]]], "list")],
)
def test_columns_that_hold_no_text(values, kind):
    with pytest.raises(ValueError, match=rf"the table: the column holds {kind}.*; what is needed is text, or lists"):
        read(pa.table({"n": values}))


def test_a_damaged_parquet_file_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    _parquet(path, [[f"word{i}"] for i in range(10_000)])
    data = bytearray(path.read_bytes())
    data[4 : len(data) * 3 // 4] = bytes(len(data) * 3 // 4 - 4)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.parquet is damaged, in the rows from 1 on"):
        read(path, column="body")


def test_a_column_of_plain_text(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match="is plain text without columns"):
        read(tmp_path / "a.txt", column="body")


@pytest.mark.parametrize("source", [3, None, b"text", {"a": 1}, ""])
def test_what_is_no_source(source):
    with pytest.raises(ValueError, match="give a path, a glob pattern, a folder"):
        read(source)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a", ["b"]], r"row 2: expected a string as in the first row, not \['b'\]"),
        ([["a"], "b"], r"row 2: expected a list of strings as in the first row, not 'b'"),
        ([["a", 2.5]], "row 1: expected a list of strings"),
        (["a", "lone \ud800"], "row 2: expected a string"),
        ([{"a": 1}], "row 1: expected a list of strings"),
    ],
)
def test_rows_of_the_wrong_kind(rows, message):
    with pytest.raises(ValueError, match=message):
        read(rows)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "{broken", "is not readable as JSON lines"),
        ("a.jsonl", '"text"\n', "a line must be an object"),
        ("a.jsonl", '{"t": "a"}\n{"t": 3}\n', "not JSON lines with large_string in 't'"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "is not readable as CSV"),
        ("a.parquet", "no parquet", "is not a whole Parquet file"),
    ],
)
def test_damaged_tables(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / name, column="t" if name == "a.jsonl" else "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "doc"}, "format is one of None, 'text', 'jsonl'"),
        ({"tokenizer": "bpe"}, "tokenizer is one of 'whitespace', 'words', not 'bpe'"),
        ({"lines": "page"}, "lines is one of 'sentence', 'document'"),
        ({"errors": "ignore"}, "errors is one of 'strict', 'replace'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        TextOptions(**options)


def test_an_unreadable_file_is_an_os_error(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user reads everything")
    with pytest.raises(PermissionError):
        read(path)


def test_arrays_are_taken_without_conversion():
    with pytest.raises(TypeError):
        _native.invalid_utf8(np.zeros(3, np.float64))
