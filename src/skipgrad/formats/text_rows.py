"""Rows of text, `word number number ...`, parsed and formatted by Arrow in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from .format import Contents, decode_words
from .safetensors import Table, row_blocks

BLOCK = 16 << 20  # bytes parsed at a time; the columns of a block are converted on all cores
FORMATTED = 1 << 20  # bytes of float32 formatted at a time
BOM = b"\xef\xbb\xbf"


def count_rows(path: Path) -> int:
    """Lines in a file; the last must end with a newline, or a number may be cut without anybody noticing."""
    rows, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            rows += block.count(b"\n")
            last = block[-1:]
    if last != b"\n":
        raise ValueError(
            f"{path} is cut: its last line, {rows + 1:,}, does not end with a newline. "
            "Copy the file again; if you know that it is whole, add a newline at its end."
        )
    return rows


def read_rows(path: Path, skip: int, count: int, dim: int, errors: str) -> Contents:
    """Read `count` rows of `dim` numbers after `skip` lines."""
    table = np.empty((count, dim), np.float32)
    words = []
    row = 0
    with path.open("rb") as file:
        for _ in range(skip):
            file.readline()
        offset = file.tell()
        for block in _blocks(file):
            here = _parse_fast(block, dim)
            if here is None:
                here = _parse_lines(path, block, dim, errors, row + skip, offset)
            words.append(here[0])
            table[row : row + len(here[0])] = here[1]
            row += len(here[0])
            offset += len(block)
    return pa.concat_arrays(words), table


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at a time."""
    while block := file.read(BLOCK):
        yield block + file.readline()


def _parse_fast(block: bytes, dim: int) -> Contents | None:
    """Let Arrow parse rows that are as they should be; None where one is not."""
    if block.startswith(BOM):  # Arrow would take it for a mark of the encoding, and it is part of a word
        return None
    tail = 1 if block[: block.find(b"\n")].rstrip(b"\r").endswith(b" ") else 0  # a space at the end of each row
    numbers = [str(i) for i in range(dim)]
    try:
        rows = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(block_size=len(block) + 1, column_names=["word", *numbers, *["tail"] * tail]),
            csv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types={"word": pa.large_string(), **dict.fromkeys(numbers, pa.float32())},
                include_columns=["word", *numbers],
                null_values=[],
            ),
        )
        if len(rows) != block.count(b"\n"):
            return None
    except pa.ArrowInvalid:
        return None
    table = np.empty((len(rows), dim), np.float32)
    for i in range(dim):
        table[:, i] = rows.column(i + 1).to_numpy()
    return rows.column(0).combine_chunks(), table


def _parse_lines(path: Path, block: bytes, dim: int, errors: str, line: int, offset: int) -> Contents:
    """Parse rows one by one: words with spaces in them, and the message that names the line that is wrong."""
    words, offsets, numbers = [], [], []
    for text in block.split(b"\n")[:-1]:
        line += 1
        fields = text.rstrip(b" \t\r").replace(b"\t", b" ").rsplit(b" ", dim)
        if len(fields) != dim + 1:
            raise ValueError(f"{path}: line {line:,} has {len(fields) - 1:,} numbers, expected {dim:,}: {text[:60]!r}.")
        try:
            numbers.append(np.array(fields[1:]).astype(np.float32))
        except ValueError:
            raise ValueError(
                f"{path}: line {line:,} should be a word and {dim:,} numbers, separated by spaces: {text[:60]!r}."
            ) from None
        if b" " in fields[0] and _is_number(fields[0].rsplit(b" ", 1)[1]):
            raise ValueError(f"{path}: line {line:,} has more than {dim:,} numbers: {text[:60]!r}.")
        words.append(fields[0])
        offsets.append(offset)
        offset += len(text) + 1
    return decode_words(path, words, offsets, errors), np.array(numbers)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_rows(file: BinaryIO, words: pa.LargeStringArray, table: Table) -> None:
    """Write each number with as many digits as give back the same float32."""
    start = 0
    for rows in row_blocks(table, FORMATTED):
        numbers = _joined(pc.cast(pa.array(rows.ravel()), pa.string()), rows.shape[1], " ")
        lines = pc.binary_join_element_wise(words[start : start + len(rows)].cast(pa.string()), numbers, " ")
        file.write(_joined(lines, len(lines), "\n")[0].as_buffer())
        file.write(b"\n")
        start += len(rows)


def _joined(texts: pa.StringArray, width: int, separator: str) -> pa.StringArray:
    """Join every `width` texts to one."""
    ends = np.arange(0, len(texts) + 1, width, dtype=np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), texts), separator)
