"""NumPy and words (x.npy, x.words.txt): a table as NumPy saves it, and beside it one word a line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .files import replacing
from .format import Contents, Format, decode_words
from .safetensors import CHUNK, Table, row_blocks


def words_path(path: Path) -> Path:
    """Where the words of a table are: x.words.txt beside x.npy."""
    return path.with_name(path.name.removesuffix(".npy") + ".words.txt")


def read(path: Path, errors: str) -> Contents:
    """Memory-map the table, where it is float32, and read the words."""
    if not words_path(path).is_file():
        raise FileNotFoundError(f"{path} has no words: expected {words_path(path)} beside it, one word a line.")
    words = _read_words(words_path(path), errors)
    table = _map(path)
    if len(table) != len(words):
        raise ValueError(
            f"{path} has {len(table):,} rows and {words_path(path)} has {len(words):,} lines; they must be as many."
        )
    return words, table.astype(np.float32, order="C", copy=False)


def _read_words(path: Path, errors: str) -> pa.LargeStringArray:
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        raise ValueError(f"{path} is cut: its last line does not end with a newline; copy it again, or add one.")
    lines = text[:-1].split(b"\n")
    starts = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])]).tolist()
    return decode_words(path, [line.removesuffix(b"\r") for line in lines], starts, errors)


def _map(path: Path) -> npt.NDArray[np.floating]:
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except Exception as error:  # NumPy reads the header as Python, which can fail in many ways
            raise ValueError(f"{path} is not a whole .npy file: its header cannot be read.") from error
        offset = file.tell()
    if dtype.kind != "f" or len(shape) != 2 or min(shape) < 1:
        raise ValueError(f"{path} holds {dtype} of shape {shape}; expected floating-point rows and columns.")
    if offset + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(
            f"{path} is cut, or its header is wrong: {shape[0]:,} rows of {shape[1]:,} numbers end at byte "
            f"{offset + math.prod(shape) * dtype.itemsize:,}, and the file has {size:,}."
        )
    return np.asarray(np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C"))


def write(path: Path, words: pa.LargeStringArray, table: Table, overwrite: bool) -> None:
    """Write both files completely before either takes its name."""
    with replacing(words_path(path), overwrite) as names, replacing(path, overwrite) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": table.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for rows in row_blocks(table, CHUNK):
            file.write(np.ascontiguousarray(rows, "<f4").data)
        for start in range(0, len(words), 1 << 16):
            names.write("".join(f"{word}\n" for word in words[start : start + (1 << 16)].to_pylist()).encode())


FORMAT = Format("npy", ".npy", read, write, separators=r"[\n\r]")
