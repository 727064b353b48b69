"""word2vec binary (.bin): a line `count dimension`, then for each word `word`, a space and float32 numbers.

The original program ends each row with a newline and others do not; both are read, the first is written.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pyarrow as pa

from .files import replacing
from .format import Contents, Format, decode_words, parse_header
from .safetensors import Table

FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
ROWS = 4096  # rows that are written at a time


def read(path: Path, errors: str) -> Contents:
    """Read words and vectors; every row is checked to be inside the file."""
    size = path.stat().st_size
    if not size:
        raise ValueError(f"{path} is empty; expected a line 'count dimension' and rows.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] == FASTTEXT_MAGIC:
            raise ValueError(f"{path} is a fastText model, not word2vec binary: read its .vec file.")
        end = data.find(b"\n", 0, 100)
        if end < 0:
            raise ValueError(f"{path}: no header 'count dimension' in the first 100 bytes {data[:40]!r}.")
        count, dim = parse_header(path, data[:end], size, 4)
        table = np.empty((count, dim), np.float32)
        words, starts = _rows(path, data, end + 1, table)
        return decode_words(path, words, starts, errors), table


def _rows(path: Path, data: mmap.mmap, place: int, table: Table) -> tuple[list[bytes], list[int]]:
    """Fill the table; give the words and where each starts."""
    count, dim = table.shape
    words: list[bytes] = []
    starts: list[int] = []
    width = 4 * dim
    # slices of flat byte views: a row costs one find and one copy, about a microsecond
    target = table.data.cast("B")
    with memoryview(data) as source:
        for start in range(0, count * width, width):
            space = data.find(b" ", place)
            stop = space + 1 + width
            if space < 0 or stop > len(source):
                raise ValueError(
                    f"{path} is cut, or its header is wrong: it says {count:,} words of {dim:,} dimensions, "
                    f"and the file ends in row {len(words) + 1:,}, at byte {len(source):,}."
                )
            if data[place] == 10:
                place += 1
            words.append(data[place:space])
            starts.append(place)
            target[start : start + width] = source[space + 1 : stop]
            place = stop
    if len(data) - place > 1 or data[place:].strip():
        raise ValueError(
            f"{path}: the header says {count:,} words of {dim:,} dimensions, but the file goes on for "
            f"{len(data) - place:,} bytes after them; correct the header."
        )
    return words, starts


def write(path: Path, words: pa.LargeStringArray, table: Table, overwrite: bool) -> None:
    """Write a row for each word."""
    with replacing(path, overwrite) as file:
        file.write(b"%d %d\n" % table.shape)
        for start in range(0, len(table), ROWS):
            rows = np.ascontiguousarray(table[start : start + ROWS], "<f4").view("u1")
            names = words[start : start + ROWS].cast(pa.large_binary()).to_pylist()
            file.write(b"".join(b"%b %b\n" % (name, row.tobytes()) for name, row in zip(names, rows, strict=True)))


FORMAT = Format("word2vec-binary", ".bin", read, write)
