"""Tables as chunks: Parquet, CSV, JSON lines, Arrow, and Python iterables, which become Arrow a batch at a time."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from skipgrad.text.chunks import Chunk, row_chunks
from skipgrad.text.files import OpenFile, open_file, whole_lines
from skipgrad.text.options import TextOptions

_BATCH_ROWS = 16_384
_NOT_CONVERTIBLE = (pa.ArrowException, UnicodeEncodeError, TypeError)


def column_of(columns: Sequence[str], column: str | None, name: str) -> str:
    """The column to read: the one that was named, or the only one."""
    if column is None and len(columns) == 1:
        return columns[0]
    there = ", ".join(columns)
    if column is None:
        raise ValueError(f"{name}: say which column holds the text with column=...; there are: {there}.")
    if column not in columns:
        raise ValueError(f"{name} has no column {column!r}; there are: {there}.")
    return column


def arrow_chunks(reader: Any, name: str, options: TextOptions) -> Iterator[Chunk]:
    """Chunks of a record batch reader's column."""
    column = column_of(reader.schema.names, options.column, name)
    row = 0
    for batch in reader:
        yield from row_chunks(batch.column(column), name, row, 0, options.lines == "document")
        row += batch.num_rows


def parquet_chunks(path: Path, options: TextOptions, size: int, before: int) -> Iterator[Chunk]:
    """Chunks of a Parquet file's column."""
    try:
        file = pa.parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is not a whole Parquet file: {error}") from None
    with file:
        column = column_of(file.schema_arrow.names, options.column, str(path))
        bytes_a_row = path.stat().st_size / max(file.metadata.num_rows, 1)
        row = 0
        try:
            for batch in file.iter_batches(_BATCH_ROWS, columns=[column]):
                end = row + batch.num_rows
                read = before + int(end * bytes_a_row)
                yield from row_chunks(batch.column(0), str(path), row, read, options.lines == "document")
                row = end
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} is damaged, in the rows from {row + 1} on: {error}") from None


def csv_chunks(path: Path, options: TextOptions, size: int, before: int, delimiter: str) -> Iterator[Chunk]:
    """Chunks of the column of a CSV file with a header; quoted cells may hold line breaks."""
    with open_file(path) as file:
        header = io.TextIOWrapper(io.BufferedReader(_Reader(file)), "utf-8-sig", errors="replace", newline="")
        columns = next(csv.reader(header, delimiter=delimiter), [])
    if not columns:
        return
    column = column_of(columns, options.column, file.name)
    with open_file(path) as file:
        try:
            reader = pa.csv.open_csv(
                file.stream,
                pa.csv.ReadOptions(block_size=max(size, 1 << 20)),
                pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                pa.csv.ConvertOptions(include_columns=[column], column_types={column: pa.large_binary()}),
            )
            row = 0
            for batch in reader:
                read = before + file.tell()
                yield from row_chunks(batch.column(0), file.name, row, read, options.lines == "document")
                row += batch.num_rows
        except pa.ArrowInvalid as error:
            raise ValueError(f"{file.name} is not readable as CSV: {error}") from None


class _Reader(io.RawIOBase):
    """What `io` needs to read text from an open file."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def json_chunks(path: Path, options: TextOptions, size: int, before: int) -> Iterator[Chunk]:
    """Chunks of a field of JSON lines: strings, or lists of strings or whole numbers."""
    kind: Any = None
    column = ""
    row = 0
    with open_file(path) as file:
        for text, start in whole_lines(file, size):
            checked = Chunk(text, file.name, start).checked(options.errors)
            if kind is None:
                column, kind = _json_column(bytes(checked.data), options, file.name)
            try:
                table = pa.json.read_json(
                    pa.BufferReader(checked.data),
                    pa.json.ReadOptions(block_size=len(checked.data) + 1),
                    pa.json.ParseOptions(pa.schema([(column, kind)]), unexpected_field_behavior="ignore"),
                )
            except pa.ArrowInvalid as error:
                place = f"{file.name}, in the rows from {row + 1} on"
                raise ValueError(f"{place}: not JSON lines with {kind} in {column!r}: {error}") from None
            read = before + file.tell()
            for values in table.column(column).chunks:
                yield from row_chunks(values, file.name, row, read, options.lines == "document")
                row += len(values)


def _json_column(text: bytes, options: TextOptions, name: str) -> tuple[str, Any]:
    """The field to read, and its Arrow type, from the first rows that have it."""
    column, columns = options.column, []
    for line in itertools.islice(text.splitlines(), 1000):
        try:
            row = json.loads(line or b"{}")
        except ValueError as error:
            raise ValueError(f"{name} is not readable as JSON lines: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f'{name} is not JSON lines: a line must be an object, such as {{"text": "..."}}.')
        columns += [key for key in row if key not in columns]
        value = row.get(columns[0] if column is None and len(columns) == 1 else column)
        if isinstance(value, list) and value:
            return column_of(columns, column, name), pa.list_(
                pa.int64() if isinstance(value[0], int) else pa.large_string()
            )
        if value is not None and not isinstance(value, list):
            return column_of(columns, column, name), pa.large_string()
    return column_of(columns, column, name), pa.large_string()


def iterable_chunks(items: Iterable[Any], options: TextOptions, size: int) -> Iterator[Chunk]:
    """Chunks of an iterable of strings (a text each) or of lists of words (a sentence each)."""
    row = 0
    for batch in _batches(items, size):
        yield from row_chunks(_column(batch, row), "the iterable", row, 0, options.lines == "document")
        row += len(batch)


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    weight = 0
    for item in items:
        batch.append(item)
        # A word is taken to have 8 bytes; a row costs something too.
        weight += 16 + (len(item) if isinstance(item, str) else 8 * len(item) if hasattr(item, "__len__") else 0)
        if weight >= size:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _column(batch: list[Any], row: int) -> Any:
    text = isinstance(batch[0], str)
    kinds = [pa.large_string()] if text else [pa.large_list(pa.large_string()), pa.large_list(pa.int64())]
    if text or str not in set(map(type, batch)):  # Arrow takes a string for a list of its letters
        for kind in kinds:
            with contextlib.suppress(*_NOT_CONVERTIBLE):
                return pa.array(batch, kind)
    for i, item in enumerate(batch):  # which one it was
        if isinstance(item, str) != text or not any(_is_convertible(item, kind) for kind in kinds):
            expected = "a string" if text else "a list of strings"
            place = f"the iterable, row {row + i + 1}"
            raise ValueError(f"{place}: expected {expected} as in the first row, not {item!r:.60}.")
    raise ValueError(f"the iterable, rows from {row + 1} on: give lists of strings, or of whole numbers, not both.")


def _is_convertible(item: Any, kind: Any) -> bool:
    try:
        pa.array([item], kind)
    except _NOT_CONVERTIBLE:
        return False
    return True
