"""word2vec text (.txt): a line `count dimension`, then a line `word number number ...` for each word."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from .files import replacing
from .format import Contents, Format, parse_header
from .safetensors import Table
from .text_rows import count_rows, read_rows, write_rows


def read(path: Path, errors: str) -> Contents:
    """Read words and vectors."""
    size = path.stat().st_size
    if not size:
        raise ValueError(f"{path} is empty; expected a line 'count dimension' and rows.")
    with path.open("rb") as file:
        count, dim = parse_header(path, file.readline(100), size, 2)  # a number takes a space and a digit
    rows = count_rows(path) - 1
    if rows != count:
        raise ValueError(
            f"{path} is cut, or its header is wrong: it says {count:,} words, and {rows:,} lines follow; "
            "copy the file again, or correct its first line."
        )
    return read_rows(path, 1, count, dim, errors)


def write(path: Path, words: pa.LargeStringArray, table: Table, overwrite: bool) -> None:
    """Write the header, then a line for each word."""
    with replacing(path, overwrite) as file:
        file.write(b"%d %d\n" % table.shape)
        write_rows(file, words, table)


FORMAT = Format("word2vec-text", ".txt", read, write)
