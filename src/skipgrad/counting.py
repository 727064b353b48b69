"""One pass over a text: worker threads turn chunks into ids, which wait in a file until the vocabulary is known."""

from __future__ import annotations

import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipgrad import _native
from skipgrad.text import Chunk, TextOptions
from skipgrad.text.chunks import tokenized
from skipgrad.text.tokenizers import native_classes

Ids = npt.NDArray[np.int32]
_CALLBACK_SECONDS = 0.1


@dataclass(frozen=True)
class TextProgress:
    """How far reading has come."""

    read: int  # bytes of the files, as they lie on the disk
    total: int | None  # of so many; None: not known
    words: int


@dataclass
class _Worker:
    """A counter, and the ids that it gave up when it forgot words: renumbered[g] turns generation g into g + 1."""

    counter: Any
    renumbered: list[Path] = field(default_factory=list)


class Counting:
    """The words of a text and their provisional ids.

    A chunk's ids are those of the worker that counted it, and of the generation: each time that a worker forgets rare
    words, the rest is renumbered. `mappings` composes all that, so nothing that was written is read twice.
    """

    def __init__(self, folder: Path, text: TextOptions, threads: int, memory: int, given: Any = None) -> None:
        self._folder = folder
        self._text = text
        # The counters, and what merging them adds. Given words are all kept.
        self._share = memory // (threads + 1) if given is None else sys.maxsize
        self._parts: list[tuple[int, int, int]] = []  # worker, generation, ids of each chunk, in the order of the text
        self._workers = [_Worker(_native.Counter(native_classes(text.tokenizer))) for _ in range(threads)]
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for i, worker in enumerate(self._workers):
            self._free.put(i)
            if given is not None:
                restrict(worker.counter, given)

    def run(
        self, chunks: Iterator[Chunk], total: int | None, callback: Callable[[TextProgress], object] | None
    ) -> None:
        """Counts all chunks; the calling thread reads them, so an iterable is used by its own thread only."""
        pending: deque[tuple[int, Future[tuple[int, int, Ids]]]] = deque()
        due = 0.0
        with ThreadPoolExecutor(len(self._workers)) as pool, (self._folder / "scratch.i32").open("wb", 0) as file:
            try:
                for chunk in chunks:
                    pending.append((chunk.read, pool.submit(self._count, chunk)))
                    while len(pending) > len(self._workers) + 1:
                        read = self._take(pending, file)
                        if callback and time.monotonic() >= due:
                            due = time.monotonic() + _CALLBACK_SECONDS
                            callback(TextProgress(read, total, self.tokens))
                while pending:
                    read = self._take(pending, file)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        if callback:
            callback(TextProgress(read if self._parts else 0, total, self.tokens))

    def _take(self, pending: deque[tuple[int, Future[tuple[int, int, Ids]]]], file: IO[bytes]) -> int:
        read, future = pending.popleft()
        worker, generation, ids = future.result()
        write_all(file, ids)
        self._parts.append((worker, generation, len(ids)))
        return read

    def _count(self, chunk: Chunk) -> tuple[int, int, Ids]:
        """In a worker thread: worker, generation, ids."""
        chunk = chunk.checked(self._text.errors)
        if callable(self._text.tokenizer) and chunk.words is None:
            chunk = tokenized(chunk, self._text.tokenizer)
        index = self._free.get()
        worker = self._workers[index]
        generation = len(worker.renumbered)
        try:
            if chunk.words is None:
                ids = worker.counter.feed(chunk.data, chunk.ends, chunk.inside)
            else:
                ids = worker.counter.feed_tokens(chunk.data, chunk.words, chunk.sentences)
                ids = ids if chunk.ends else ids[:-1]  # the last sentence goes on in the next chunk
            if worker.counter.memory > self._share:
                path = self._folder / f"renumbered-{index}-{generation}.npy"
                np.save(path, worker.counter.prune())
                worker.renumbered.append(path)
        finally:
            self._free.put(index)
        return index, generation, ids

    @property
    def tokens(self) -> int:
        """Words read so far."""
        return sum(int(worker.counter.tokens) for worker in self._workers)

    def merge(self) -> tuple[Any, list[Ids]]:
        """One counter of all words, and for each worker what its ids became there."""
        first = self._workers[0].counter
        mappings = [np.arange(len(first), dtype=np.int32)]
        for worker in self._workers[1:]:
            mappings.append(first.merge(worker.counter))
            worker.counter = None
        return first, mappings

    def mappings(self, merged: list[Ids], final: Ids) -> dict[tuple[int, int], Ids]:
        """For each worker and generation the final ids of its ids; negative: no id."""
        found: dict[tuple[int, int], Ids] = {}
        for index, worker in enumerate(self._workers):
            last = final[merged[index]]
            found[index, len(worker.renumbered)] = last
            for generation in reversed(range(len(worker.renumbered))):
                path = worker.renumbered[generation]
                ids = np.load(path)
                last = np.where(ids >= 0, last[ids], np.int32(-1)) if len(last) else np.full_like(ids, -1)
                np.save(path, last)
                found[index, generation] = np.load(path, mmap_mode="r")
        return found

    def ids(self) -> Iterator[tuple[tuple[int, int], Ids]]:
        """The chunks' ids in the order of the text, each with its worker and generation."""
        with (self._folder / "scratch.i32").open("rb", 0) as file:
            for worker, generation, count in self._parts:
                yield (worker, generation), np.fromfile(file, np.int32, count)


def write_all(file: IO[bytes], array: npt.NDArray[Any]) -> None:
    """Writes an array to an unbuffered file, which may take it in parts."""
    view = memoryview(array.view(np.uint8).data)
    while view:
        view = view[file.write(view) :]


def restrict(counter: Any, words: Any) -> None:
    """Gives these words ids in their order, and no other word any."""
    ends = np.frombuffer(words.buffers()[1], np.int64)[words.offset : words.offset + len(words) + 1]
    data = np.frombuffer(words.buffers()[2], np.uint8) if ends[-1] else np.zeros(0, np.uint8)
    counter.restrict(data, ends)


def all_words(counter: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """A counter's words and counts, in the order of its ids."""
    counts, offsets, data = counter.words()
    return pa.LargeStringArray.from_buffers(len(counts), pa.py_buffer(offsets), pa.py_buffer(data)), counts
