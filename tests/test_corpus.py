"""A corpus: the ids of a text, the same for any number of threads, kept and found again."""

from __future__ import annotations

import collections
import io
import itertools
import os
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipgrad import building
from skipgrad.corpus import Corpus, CorpusOptions
from skipgrad.text.tokenizers import words
from skipgrad.vocab import Vocab

WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
SENTENCES = st.lists(st.lists(WORD)).filter(any)


def sentences_of(corpus: Corpus) -> list[list[str]]:
    words = list(corpus.vocab)
    ids = corpus.ids.tolist()
    assert ids[-1] == -1
    groups = (list(group) for end, group in itertools.groupby(ids, lambda i: i == -1) if not end)
    return [[words[i] for i in group] for group in groups]


def natural_text(words: int, seed: int = 1) -> str:
    """Text of which few words are frequent and most are rare."""
    rng = random.Random(seed)
    ranks = (int(1 / (rng.random() + 1e-5)) for _ in range(words))
    return "".join(f"w{rank}" + ("\n" if rng.random() < 0.1 else " ") for rank in ranks)


@given(SENTENCES)
def test_what_goes_in_comes_out(sentences):
    corpus = Corpus.build(sentences, min_count=1)
    assert sentences_of(corpus) == [s for s in sentences if s]
    assert dict(zip(corpus.vocab, corpus.vocab.counts.tolist(), strict=True)) == collections.Counter(
        itertools.chain(*sentences)
    )
    assert corpus.words == sum(map(len, sentences))
    assert corpus.sentences == sum(map(bool, sentences))


def test_rare_words_and_empty_sentences_are_left_out():
    corpus = Corpus.build(["a b a", "c", "", "b d b a"], min_count=2)
    assert sentences_of(corpus) == [["a", "b", "a"], ["b", "b", "a"]]
    assert (corpus.words, corpus.sentences, list(corpus.vocab), corpus.vocab.counts.tolist()) == (
        8,
        2,
        ["a", "b"],
        [3, 3],
    )
    assert list(Corpus.build(["a b a"], min_count=1, max_size=1).vocab) == ["a"]


def test_ids_are_read_only_and_blocks_hold_whole_sentences(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(natural_text(400_000))
    corpus = Corpus.build(path, min_count=1)
    ids, blocks = corpus.ids, corpus.blocks
    assert (ids.dtype, blocks.dtype, ids.flags.writeable) == (np.int32, np.int64, False)
    assert (blocks[0], blocks[-1]) == (0, len(ids))
    assert (ids[blocks[1:] - 1] == -1).all()
    assert len(blocks) > 5
    assert (abs(np.diff(blocks)[:-1] - 65_536) < 1000).all()


@pytest.mark.parametrize("tokenizer", ["whitespace", "words", str.split])
@pytest.mark.parametrize("size", [1000, 1 << 22])
def test_any_number_of_threads_gives_the_same_files(tmp_path, monkeypatch, tokenizer, size):
    path = tmp_path / "a.txt"
    path.write_text(natural_text(60_000))
    monkeypatch.setattr(building, "CHUNK_BYTES", size)
    monkeypatch.setattr(building, "_PYTHON_CHUNK_BYTES", size)
    built = [
        Corpus.build(path, tokenizer=tokenizer, threads=threads, cache=tmp_path / f"{threads}") for threads in (1, 2, 7)
    ]
    contents = [{f.name: f.read_bytes() for f in corpus.folder.iterdir()} for corpus in built]
    assert set(contents[0]) == {"ids.i32", "blocks.npy", "vocab.parquet", "corpus.json"}
    assert contents[0] == contents[1] == contents[2]
    expected = [s for line in path.read_text().split("\n") if (s := line.split())]
    if size == 1000:
        assert sentences_of(Corpus.build(path, tokenizer=tokenizer, min_count=1)) == expected


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 7), st.integers(1, 20))
def test_long_sentences_are_split_and_counted(kinds, longest, size):
    sentences = [["w"] * (kind * 5) for kind in kinds]
    if not any(sentences):
        return
    pieces = [s[i : i + longest] for s in sentences for i in range(0, len(s), longest)]
    corpus = Corpus.build(sentences, min_count=1, max_sentence=longest)
    assert sentences_of(corpus) == pieces
    assert corpus.split == sum(len(s) > longest for s in sentences)
    assert (f"{corpus.split:,} sentences were longer" in corpus.summary()) == (corpus.split > 0)


def test_forgetting_rare_words_keeps_the_frequent_ones(tmp_path, monkeypatch):
    text = natural_text(300_000)
    rare = (f" rare{i}" for i in range(100_000))
    path = tmp_path / "a.txt"
    path.write_text("".join(line + next(rare, "") * (i % 2) + "\n" for i, line in enumerate(text.split("\n"))))
    monkeypatch.setattr(building, "CHUNK_BYTES", 20_000)
    counts = collections.Counter(path.read_text().split())
    for threads in (1, 3):
        corpus = Corpus.build(path, threads=threads, max_memory="1MB", cache=False)
        found = dict(zip(corpus.vocab, corpus.vocab.counts.tolist(), strict=True))
        assert np.array_equal(np.bincount(corpus.ids[corpus.ids >= 0], minlength=len(found)), corpus.vocab.counts)
        assert all(found[word] == n for word, n in counts.items() if n > 2000)
        assert all(n <= counts[word] for word, n in found.items())
        assert corpus.words == counts.total()
        kept = [[word for word in line.split() if word in found] for line in path.read_text().split("\n")]
        assert len(kept) >= corpus.sentences
        assert "were forgotten to stay within max_memory" in corpus.summary()
    assert "forgotten" not in Corpus.build(path).summary()


# ---------------------------------------------------------------- words given

TEXT = ["a b a c", "d a e", "x y z"]


@pytest.mark.parametrize("threads", [1, 3])
def test_given_words_are_counted(tmp_path, threads):
    corpus = Corpus.build(TEXT, vocab=["c", "missing", "b", "a"], threads=threads)
    assert list(corpus.vocab) == ["a", "b", "c", "missing"]
    assert corpus.vocab.counts.tolist() == [3, 1, 1, 0]
    assert sentences_of(corpus) == [["a", "b", "a", "c"], ["a"]]
    assert corpus.words == 10


@pytest.mark.parametrize("kind", ["vocab", "table", "path"])
def test_given_counts_are_kept(tmp_path, kind):
    counts = {"a": 1, "c": 70, "b": 50}
    vocab: Any = Vocab.from_counts(counts)
    if kind == "table":
        vocab = pa.table({"word": list(counts), "count": list(counts.values())})
    elif kind == "path":
        vocab.write(tmp_path / "vocab.parquet")
        vocab = tmp_path / "vocab.parquet"
    corpus = Corpus.build(TEXT, vocab=vocab)
    assert list(corpus.vocab) == ["c", "b", "a"]
    assert corpus.vocab.counts.tolist() == [70, 50, 1]
    assert sentences_of(corpus) == [["a", "b", "a", "c"], ["a"]]


def test_given_words_that_do_not_occur():
    with pytest.raises(ValueError, match=r"none of the 1 words of vocab= occurs in the iterable \(10 words\)"):
        Corpus.build(TEXT, vocab=["no"])
    with pytest.raises(ValueError, match="vocab= takes a Vocab, words"):
        Corpus.build(TEXT, vocab=3)


# ---------------------------------------------------------------- kept and found again


def test_a_corpus_is_built_once(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("a b a b")
    calls: list[object] = []
    first = Corpus.build(path, min_count=1, cache=tmp_path / "cache", callback=calls.append)
    built = len(calls)
    again = Corpus.build(path, min_count=1, cache=tmp_path / "cache", callback=calls.append)
    assert built == len(calls) > 0
    assert (again.folder, again.fingerprint) == (first.folder, first.fingerprint)
    assert (again.ids == first.ids).all()

    changed = [
        Corpus.build(path, min_count=2, cache=tmp_path / "cache"),
        Corpus.build(path, min_count=1, vocab=["a"], cache=tmp_path / "cache"),
        Corpus.build(path, min_count=1, vocab=["b"], cache=tmp_path / "cache"),
    ]
    path.write_text("a b a c")
    changed.append(Corpus.build(path, min_count=1, cache=tmp_path / "cache"))
    assert len({first.folder, *(corpus.folder for corpus in changed)}) == 5
    monkeypatch.setenv("SKIPGRAD_CACHE", str(tmp_path / "own"))
    assert Corpus.build(path, min_count=1).folder.parent == tmp_path / "own"
    monkeypatch.delenv("SKIPGRAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Corpus.build(path, min_count=1).folder.parent == tmp_path / "xdg" / "skipgrad"


@pytest.mark.parametrize("name", ["ids.i32", "blocks.npy", "vocab.parquet", "corpus.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "half"])
def test_a_damaged_cache_is_built_anew(tmp_path, name, damage):
    path = tmp_path / "a.txt"
    path.write_text("a b a b\n" * 10)
    first = Corpus.build(path, min_count=1, cache=tmp_path / "cache")
    expected = first.ids.tolist()
    file = first.folder / name
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(content[: len(content) // 2] if damage == "half" else b"")
    again = Corpus.build(path, min_count=1, cache=tmp_path / "cache")
    assert again.ids.tolist() == expected
    assert file.read_bytes() == content
    assert list((tmp_path / "cache").iterdir()) == [first.folder]


def test_what_is_read_once_lives_as_long_as_the_corpus():
    corpus = Corpus.build(iter(["a b"]), min_count=1)
    folder = corpus.folder
    assert folder.is_dir()
    same = Corpus.build(["a b"], min_count=1)
    other = Corpus.build(["b a a"], min_count=1)
    assert corpus.fingerprint == same.fingerprint != other.fingerprint
    del corpus
    assert not folder.exists()


def test_progress_tells_bytes_and_words(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "CHUNK_BYTES", 1000)
    path = tmp_path / "a.txt"
    path.write_text("some words here\n" * 1000)
    seen = []
    Corpus.build(path, callback=seen.append, cache=False)
    assert (seen[-1].read, seen[-1].total, seen[-1].words) == (16_000, 16_000, 3000)
    assert [p.read for p in seen] == sorted(p.read for p in seen)
    Corpus.build(["a"], min_count=1, callback=seen.append)
    assert (seen[-1].total, seen[-1].words) == (None, 1)


# ---------------------------------------------------------------- bad input


def test_no_words():
    with pytest.raises(ValueError, match="the iterable is empty: it has no words"):
        Corpus.build([])
    with pytest.raises(ValueError, match="the iterable is empty: it has no words"):
        Corpus.build([" ", "\n"])


def test_an_empty_file_leaves_nothing_behind(tmp_path):
    path = tmp_path / "empty.txt"
    path.touch()
    with pytest.raises(ValueError, match=r"empty\.txt is empty: it has no words"):
        Corpus.build(path, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_no_word_is_frequent_enough():
    with pytest.raises(
        ValueError, match=r"occurs min_count=5 times: the most frequent of its 2 different words \(3 in all\) occurs 2 "
    ):
        Corpus.build(["a b a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_sentence": 0}, "max_sentence must be 1 or more, not 0"),
        ({"min_count": 0}, "min_count must be 1 or more"),
        ({"threads": 0}, "threads must be 1 or more, or None, not 0"),
        ({"tokenizer": "bpe"}, "tokenizer is one of"),
        ({"mincount": 3}, "Corpus.build has no option mincount=; did you mean min_count="),
        ({"xyz": 3}, "there are format, column"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        Corpus.build(["a"], **options)


def test_a_disk_that_is_full(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b " * 100_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        with pytest.raises(OSError, match=r"no room for the corpus in .*cache .*make room, or choose another folder"):
            Corpus.build(path, cache=tmp_path / "cache")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_made(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b")
    with pytest.raises(OSError, match=r"cannot write to .*a\.txt.*; choose another folder with cache="):
        Corpus.build(path, cache=path / "cache")


def test_an_error_in_a_chunk_stops_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "CHUNK_BYTES", 1000)
    path = tmp_path / "a.txt"
    path.write_bytes(b"good words\n" * 10_000 + b"\xff\n" + b"more words\n" * 10_000)
    before = threading.active_count()
    with pytest.raises(ValueError, match="byte 110000: not valid UTF-8"):
        Corpus.build(path, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    assert threading.active_count() == before


def test_a_tokenizer_that_returns_no_words():
    with pytest.raises(ValueError, match="the tokenizer must return a list of strings"):
        Corpus.build(["a"], tokenizer=lambda line: [1.5])


def test_an_exception_of_the_iterable_comes_through():
    def broken():
        yield "a"
        raise LookupError("my own")

    with pytest.raises(LookupError, match="my own"):
        Corpus.build(broken())


def test_ctrl_c_stops_within_a_second(tmp_path):
    code = (
        "import itertools, sys; from skipgrad.corpus import Corpus\n"
        "print('go', flush=True)\n"
        "Corpus.build(('some words ' * 1000 for _ in itertools.count()))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(2)
        start = time.monotonic()
        _, error = process.communicate()
    assert b"KeyboardInterrupt" in error
    assert time.monotonic() - start < 1


@pytest.mark.slow
def test_a_line_of_300_megabytes_takes_bounded_memory(tmp_path):
    path = tmp_path / "line.txt"
    with path.open("w") as file:
        for _ in range(300):
            file.write("some words of a line that does not end " * 25_641)
    code = (
        "import resource, sys; from skipgrad.corpus import Corpus\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"corpus = Corpus.build({str(path)!r}, cache=False)\n"
        "print(corpus.words, corpus.split, len(corpus.vocab),"
        " (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words, split, vocab, megabytes = map(int, done.stdout.split())
    assert (words, split, vocab) == (300 * 25_641 * 9, 1, 9)
    assert megabytes < 150


def test_the_benchmark_text(shared_data: Path):
    corpus = Corpus.build(shared_data / "enwiki2015_text8.txt.zst")
    assert (corpus.words, len(corpus.vocab), corpus.sentences) == (16_941_437, 67_867, 16_942)
    assert Corpus.build(shared_data / "enwiki2015_text8.txt.zst").ids[:2].tolist() == corpus.ids[:2].tolist()


def test_each_option_is_a_flag_with_its_documentation(capsys):
    app = cyclopts.App(result_action="return_value")

    @app.default
    def build(*, options: Annotated[CorpusOptions, cyclopts.Parameter(name="*")] = CorpusOptions()) -> CorpusOptions:
        return options

    assert app(["--min-count", "3", "--tokenizer", "words", "--max-memory", "1GB", "--column", "body"]) == (
        CorpusOptions(min_count=3, tokenizer="words", max_memory="1GB", column="body")
    )
    app(["--help"])
    shown = capsys.readouterr().out
    for name in CorpusOptions.__dataclass_fields__:
        assert "--" + name.replace("_", "-") in shown
    for part in ("Words that occur less often", "Longer sentences are split", "lower-cased", "U+FFFD"):
        assert part in shown


@pytest.mark.parametrize("tokenizer", ["whitespace", "words"])
def test_korean_is_split_as_python_splits_it(shared_data: Path, tokenizer):
    path = shared_data / "korean_wikipedia.txt.zst"
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        text = stream.read().decode()
    expected = collections.Counter(text.split() if tokenizer == "whitespace" else words(text))
    vocab = Corpus.build(path, min_count=1, tokenizer=tokenizer).vocab
    assert dict(zip(vocab, vocab.counts.tolist(), strict=True)) == expected


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"to be\nor not to be\n")))
    corpus = Corpus.build("-", min_count=2)
    assert sentences_of(corpus) == [["to", "be"], ["to", "be"]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(ValueError, match="standard input is empty"):
        Corpus.build("-")


def test_a_vocabulary_of_one_word_is_a_corpus():
    assert sentences_of(Corpus.build(["a a", "a"], min_count=1)) == [["a", "a"], ["a"]]


def test_what_killed_builds_left_is_swept(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b")
    old, new = tmp_path / "cache" / ".building-old", tmp_path / "cache" / ".building-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    Corpus.build(path, min_count=1, cache=tmp_path / "cache")
    assert (old.exists(), new.exists()) == (False, True)


def test_words_that_are_too_long_are_reported(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a " + "x" * 70_000)
    corpus = Corpus.build(path, min_count=1)
    assert (corpus.words, list(corpus.vocab)) == (2, ["a"])
    assert "1 words of more than 65,535 bytes were left out" in corpus.summary()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what is mapped")
def test_ids_that_were_used_can_leave_memory(tmp_path):
    def mapped() -> int:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssFile"))

    (tmp_path / "text.txt").write_text("a b c d e f g\n" * 1_000_000)
    corpus = Corpus.build(tmp_path / "text.txt")
    before = corpus.ids.sum()
    full = mapped()
    corpus.forget(0, len(corpus.ids))
    assert mapped() < full - 0.9 * corpus.ids.nbytes
    assert corpus.ids.sum() == before
