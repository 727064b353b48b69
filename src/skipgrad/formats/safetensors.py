"""safetensors files of float32 and int32 tables, streamed out and mapped in: length of a JSON header, header, data."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]
TYPES = {"F32": "<f4", "I32": "<i4"}

ALIGN = 64  # bytes: a cache line, and the widest vector register
CHUNK = 1 << 22  # bytes copied at a time where rows are strided
MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors library too


def write_tables(file: BinaryIO, tables: Mapping[str, Table]) -> None:
    """Write tables one after the other, without a second copy of any."""
    header: dict[str, Any] = {}
    end = 0
    for name, table in tables.items():
        start, end = end, end + 4 * table.size
        header[name] = {"dtype": _type_of(table), "shape": list(table.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGN)
    file.write(struct.pack("<Q", len(text)) + text)
    for table in tables.values():
        for rows in row_blocks(table, CHUNK):
            file.write(np.ascontiguousarray(rows, TYPES[_type_of(table)]).data)


def _type_of(table: Table) -> str:
    return "I32" if table.dtype == np.int32 else "F32"


def row_blocks(table: Table, size: int) -> Iterator[Table]:
    """Views of whole rows, about `size` bytes each."""
    step = max(1, size // max(1, 4 * table.shape[1]))
    for start in range(0, len(table), step):
        yield table[start : start + step]


def map_tables(path: Path) -> dict[str, Table]:
    """Memory-map the tables of a file; every number in the header is checked against the size of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if len(first) < 8 or length > min(MAX_HEADER, size - 8):
            raise ValueError(
                f"{path} is not a whole safetensors file: its header should have {length:,} bytes, "
                f"and the file has {size:,}; copy it again."
            )
        text = file.read(length)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        entries = {str(name): _entry(entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a safetensors file: its header cannot be read ({error}).") from error
    return {name: _map(path, name, entry, 8 + length, size) for name, entry in entries.items()}


def _entry(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    start, end = entry["data_offsets"]
    numbers = [*entry["shape"], start, end]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"shape and offsets {numbers} should be whole numbers, zero or more")
    return str(entry["dtype"]), tuple(entry["shape"]), start, end


def _map(path: Path, name: str, entry: tuple[str, tuple[int, ...], int, int], offset: int, size: int) -> Table:
    dtype, shape, start, end = entry
    if dtype not in TYPES or len(shape) != 2:
        raise ValueError(f"{path}: {name!r} is {dtype} of shape {shape}; expected F32 or I32 with rows and columns.")
    if end - start != 4 * math.prod(shape):
        raise ValueError(f"{path}: the header of {name!r} contradicts itself: shape {shape}, {end - start:,} bytes.")
    if offset + end > size:
        raise ValueError(
            f"{path} is cut: {name!r} of shape {shape} should end at byte {offset + end:,}, "
            f"and the file has {size:,}; copy it again."
        )
    if start == end:
        return np.empty(shape, TYPES[dtype])
    return np.asarray(np.memmap(path, TYPES[dtype], "r", offset + start, shape))
