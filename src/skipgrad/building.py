"""How a corpus comes to be: counted, cut to a vocabulary, written to a new folder, named by a fingerprint."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipgrad import _native
from skipgrad.counting import Counting, TextProgress, all_words, write_all
from skipgrad.text import Source
from skipgrad.text.chunks import CHUNK_BYTES
from skipgrad.vocab import Vocab, count_order

if TYPE_CHECKING:
    from skipgrad.corpus import CorpusOptions

FORMAT = 1  # of the folder; a change builds all corpora anew
_BLOCK = 65_536  # ids
_PYTHON_CHUNK_BYTES = 1 << 18  # for tokenizers in Python: a chunk takes a fraction of a second, so Ctrl-C does
_BUILDING = ".building-"
_STALE_SECONDS = 7 * 24 * 3600  # no build takes a week
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Given = tuple[Any, npt.NDArray[np.int64] | None]


@dataclass(frozen=True)
class Facts:
    """What `corpus.json` holds."""

    words: int
    sentences: int
    split: int
    fingerprint: str
    too_long: int  # words that are longer than a word can be
    pruned_words: int  # forgotten to stay within max_memory
    pruned_tokens: int
    left_out: int  # files that are not text
    format: int = FORMAT


def user_cache() -> Path:
    """Where corpora are kept: $SKIPGRAD_CACHE, or skipgrad in the user's cache folder."""
    if own := os.environ.get("SKIPGRAD_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skipgrad"


def fingerprint_of(source: Source, options: CorpusOptions, given: Given | None) -> str:
    """What tells two corpora apart without reading them: paths, sizes and times of the files, options, given words."""
    files = [(str(path.resolve()), stat.st_size, stat.st_mtime_ns) for path in source.paths for stat in [path.stat()]]
    facts = hashlib.sha256(json.dumps([FORMAT, files, dataclasses.asdict(options)], sort_keys=True).encode())
    if given is not None:
        words, counts = given
        for part in (words, pa.array([], pa.int64()) if counts is None else pa.array(counts)):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, pa.schema([("part", part.type)])) as stream:
                stream.write_batch(pa.record_batch({"part": part}))
            facts.update(sink.getvalue())
    return facts.hexdigest()


@contextlib.contextmanager
def new_folder(parent: Path) -> Iterator[Path]:
    """A hidden folder to be renamed when it is complete; otherwise it is gone afterwards."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=parent))
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot write to {parent} ({error.strerror}); choose another folder with cache= or SKIPGRAD_CACHE",
        ) from None
    try:
        yield folder
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"no room for the corpus in {parent} ({error.strerror}): it takes about 8 bytes a word while it "
            "is built; make room, or choose another folder with cache= or SKIPGRAD_CACHE",
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Removes what builds left that were killed."""
    for folder in parent.glob(f"{_BUILDING}*"):
        with contextlib.suppress(OSError):  # another process may be sweeping too
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def build_folder(
    folder: Path,
    source: Source,
    options: CorpusOptions,
    given: Given | None,
    threads: int,
    callback: Callable[[TextProgress], object] | None,
    fingerprint: str | None,
) -> None:
    """Reads the text once and fills the folder; without a fingerprint, that of the ids is taken."""
    size = _PYTHON_CHUNK_BYTES if callable(options.tokenizer) else CHUNK_BYTES
    scratch = folder / "scratch"
    scratch.mkdir()
    words = None if given is None else given[0]
    counting = Counting(scratch, options, threads, options.memory, words)
    counting.run(source.chunks(options, size), source.total, callback)
    counter, merged = counting.merge()
    vocab, final = _cut(counter, source.name, options, given)
    vocab.write(folder / "vocab.parquet")
    encoder = _native.Encoder(options.max_sentence, _BLOCK)
    digest = hashlib.sha256() if fingerprint is None else None
    mappings = counting.mappings(merged, final)
    with (folder / "ids.i32").open("wb", 0) as file:
        for key, provisional in counting.ids():
            ids = encoder.feed(provisional, mappings[key])
            write_all(file, ids)
            if digest is not None:
                digest.update(ids.data)
        blocks = np.unique(np.array([*encoder.blocks, file.tell() // 4], np.int64))
    np.save(folder / "blocks.npy", blocks)
    facts = Facts(
        counter.tokens, encoder.sentences, encoder.split,
        fingerprint or digest.hexdigest(),  # type: ignore[union-attr]
        counter.too_long, counter.pruned_words, counter.pruned_tokens, source.left_out,
    )  # fmt: skip
    shutil.rmtree(scratch)
    (folder / "corpus.json").write_text(json.dumps(dataclasses.asdict(facts), indent=1))


def _cut(counter: Any, name: str, options: CorpusOptions, given: Given | None) -> tuple[Vocab, npt.NDArray[np.int32]]:
    """The vocabulary of all words, and for each word its id there, or -1."""
    words, counts = all_words(counter)
    if counter.tokens == 0:
        raise ValueError(f"{name} is empty: it has no words.")
    if given is None:
        order = count_order(words, counts, options.min_count, options.max_size)
    elif given[1] is None:
        order = count_order(words, counts, 0, None)
    else:
        order = np.arange(len(words))
    if given is not None and counts.sum() == 0:
        raise ValueError(f"none of the {len(words):,} words of vocab= occurs in {name} ({counter.tokens:,} words).")
    if len(order) == 0:
        raise ValueError(
            f"no word of {name} occurs min_count={options.min_count} times: the most frequent of its {len(words):,} "
            f"different words ({counter.tokens:,} in all) occurs {counts.max():,} times; lower min_count."
        )
    final = np.full(len(words), -1, np.int32)
    final[order] = np.arange(len(order), dtype=np.int32)
    kept = counts[order] if given is None or given[1] is None else given[1]
    return Vocab(words.take(pa.array(order)), kept), final
