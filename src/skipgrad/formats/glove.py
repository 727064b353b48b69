"""GloVe text (.glove, or .txt without a header): a line `word number number ...` for each word."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from .files import replacing
from .format import Contents, Format
from .safetensors import Table
from .text_rows import count_rows, read_rows, write_rows

LONGEST = 1 << 20  # bytes of a first line


def read(path: Path, errors: str) -> Contents:
    """Read words and vectors; the first line says how many numbers every line has."""
    with path.open("rb") as file:
        first = file.readline(LONGEST)
    dim = len(first.split(b" ")) - 1 - first.rstrip(b"\r\n").endswith(b" ")
    if dim < 1:
        raise ValueError(f"{path}: the first line is {first[:60]!r}; expected a word and numbers, separated by spaces.")
    return read_rows(path, 0, count_rows(path), dim, errors)


def write(path: Path, words: pa.LargeStringArray, table: Table, overwrite: bool) -> None:
    """Write a line for each word."""
    with replacing(path, overwrite) as file:
        write_rows(file, words, table)


FORMAT = Format("glove", ".glove", read, write)
