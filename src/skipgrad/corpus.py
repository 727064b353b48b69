"""A text as ids on disk: built once, found again by its fingerprint, memory-mapped."""

from __future__ import annotations

import difflib
import json
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipgrad._native import LONGEST_WORD
from skipgrad.building import FORMAT, Facts, build_folder, fingerprint_of, new_folder, user_cache
from skipgrad.counting import TextProgress
from skipgrad.text import TextOptions, find_source
from skipgrad.vocab import Vocab, VocabOptions, given_words

_MOST_THREADS = 8  # one reader feeds no more


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(VocabOptions, TextOptions):
    """What decides which ids a text becomes.

    >>> CorpusOptions(min_count=2, column="body").max_sentence
    10000
    """

    max_sentence: int = 10_000
    """Longer sentences are split into pieces of at most this many words; the summary says how many were."""

    def __post_init__(self) -> None:
        TextOptions.__post_init__(self)
        VocabOptions.__post_init__(self)
        if self.max_sentence < 1:
            raise ValueError(f"max_sentence must be 1 or more, not {self.max_sentence}.")


class Corpus:
    """Sentences as ids on disk.

    >>> corpus = Corpus.build([["to", "be"], ["or", "not", "to", "be"]], min_count=2)
    >>> list(corpus.vocab), corpus.ids.tolist(), corpus.words
    (['be', 'to'], [1, 0, -1, 1, 0, -1], 6)
    """

    def __init__(self, folder: Path, temporary: bool = False) -> None:
        """Opens a folder that `build` made; a temporary one goes with the object."""
        self.folder = folder
        self._facts = Facts(**json.loads((folder / "corpus.json").read_text()))
        if self._facts.format != FORMAT:
            raise ValueError(f"{folder} has format {self._facts.format}; this version reads {FORMAT}.")
        self.vocab = Vocab.read(folder / "vocab.parquet")
        self.blocks: npt.NDArray[np.int64] = np.load(folder / "blocks.npy")
        with (folder / "ids.i32").open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.ids: npt.NDArray[np.int32] = np.frombuffer(self._map, np.int32)
        if len(self.ids) != self.blocks[-1]:
            raise ValueError(f"{folder / 'ids.i32'} holds {len(self.ids):,} ids, not {self.blocks[-1]:,}.")
        self.words = self._facts.words
        self.sentences = self._facts.sentences
        self.split = self._facts.split
        self.fingerprint = self._facts.fingerprint
        if temporary:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @classmethod
    def build(
        cls,
        source: Any,
        *,
        vocab: Any = None,
        threads: int | None = None,
        cache: str | Path | bool = True,
        callback: Callable[[TextProgress], object] | None = None,
        **options: Any,
    ) -> Corpus:
        """The corpus of a text: read now, or found in the cache.

        `source`: a path, a glob pattern, a folder (all text files in it), "-" for standard input, an Arrow table or
        reader, or an iterable: of Paths (files), of strings (a text each), or of lists of words (a sentence each;
        taken as they are, save that empty words are left out).
        `vocab`: the words to use, with or without counts: a Vocab, words, an Arrow table or a Parquet file; min_count
        and max_size then do not matter.
        `threads`: that count; None: as many as there are cores. The corpus is the same for any number, unless words had
        to be forgotten to stay within max_memory.
        `cache`: a folder; True: the user's own ($SKIPGRAD_CACHE, or skipgrad in the user's cache folder); False: build
        anew, and drop the files with the object, as is done for what can be read only once, and for Python tokenizers.
        `callback`: called with a `TextProgress` about ten times a second.
        `options`: the fields of `CorpusOptions`.
        """
        chosen = _options(options)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be 1 or more, or None, not {threads}.")
        found = find_source(source)
        given = None if vocab is None else given_words(vocab)
        lasting = found.lasting and not callable(chosen.tokenizer)
        fingerprint = fingerprint_of(found, chosen, given) if lasting else None
        workers = threads or min(cores(), _MOST_THREADS)

        def fill(folder: Path) -> None:
            build_folder(folder, found, chosen, given, workers, callback, fingerprint)

        if cache is False or fingerprint is None:
            return cls._temporary(Path(tempfile.gettempdir() if isinstance(cache, bool) else cache), fill)
        return cls._cached((user_cache() if cache is True else Path(cache)) / f"{found.stem}-{fingerprint[:16]}", fill)

    @classmethod
    def _temporary(cls, parent: Path, fill: Callable[[Path], None]) -> Corpus:
        with new_folder(parent) as folder:
            fill(folder)
            return cls(folder.rename(folder.with_name(f"skipgrad-{folder.name.strip('.')}")), temporary=True)

    @classmethod
    def _cached(cls, place: Path, fill: Callable[[Path], None]) -> Corpus:
        if (corpus := cls._found(place)) is not None:
            return corpus
        with new_folder(place.parent) as folder:
            fill(folder)
            shutil.rmtree(place, ignore_errors=True)  # half-written, damaged or of another version
            try:
                folder.rename(place)
            except OSError:  # another process was faster
                if (corpus := cls._found(place)) is not None:
                    return corpus
                raise
        return cls(place)

    @classmethod
    def _found(cls, place: Path) -> Corpus | None:
        """The corpus of a folder; None where it is not there, not whole, or of another version."""
        try:
            return cls(place)
        except (OSError, EOFError, ValueError, TypeError, KeyError, pa.ArrowException):
            return None

    def forget(self, begin: int, end: int) -> None:
        """Takes ids[begin:end] out of the process's memory; they are read from disk again when they are needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            page = begin * self.ids.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, page, end * self.ids.itemsize - page)

    def __repr__(self) -> str:
        return f"Corpus({self.words:,} words, {len(self.vocab):,} different, {self.sentences:,} sentences)"

    def summary(self) -> str:
        """What was read, and what was left out, in a few sentences."""
        facts = self._facts
        kept = len(self.ids) - self.sentences
        lines = [
            f"{self.words:,} words in {self.sentences:,} sentences; vocabulary of {len(self.vocab):,} words, "
            f"which are {kept / self.words:.1%} of the text."
        ]
        if facts.split:
            lines.append(f"{facts.split:,} sentences were longer than max_sentence and were split.")
        if facts.too_long:
            lines.append(f"{facts.too_long:,} words of more than {LONGEST_WORD:,} bytes were left out.")
        if facts.pruned_words:
            lines.append(
                f"{facts.pruned_words:,} rare words ({facts.pruned_tokens:,} occurrences) were forgotten "
                "to stay within max_memory."
            )
        if facts.left_out:
            lines.append(f"{facts.left_out:,} files that are not text were left out.")
        return "\n".join(lines)


def _options(given: dict[str, Any]) -> CorpusOptions:
    names = list(CorpusOptions.__dataclass_fields__)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}=?" if near else f"there are {', '.join(names)}."
            raise ValueError(f"Corpus.build has no option {name}=; {hint}")
    return CorpusOptions(**given)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
