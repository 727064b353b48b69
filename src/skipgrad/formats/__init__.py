"""The file formats that vectors are read from and written to; a new one is a file here and a name in the list."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import fasttext_vec, glove, npy, word2vec_binary, word2vec_text
from .format import Contents, Format, check_finite, check_not_empty, check_words, repeated
from .safetensors import Table

MODULES = (word2vec_binary, word2vec_text, fasttext_vec, glove, npy)
FORMATS: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in MODULES}

PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstandard", b"BZh": "bzip2"}


def read(path: Path, format: str | None, errors: str) -> tuple[Contents, Format, int]:
    """Words and table of a file, its format, and how many repeated words were left out (the first stays)."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there, or is not a file.")
    if errors not in ("strict", "replace"):
        raise ValueError(f"errors={errors!r} should be 'strict' or 'replace'.")
    chosen = named(format) if format else detect(path)
    words, table = chosen.read(path, errors)
    check_not_empty(str(path), words)
    check_finite(str(path), words, table)
    twice = repeated(words)
    dropped = pc.sum(twice).as_py()
    if dropped:
        words, table = words.filter(pc.invert(twice)), table[~np.asarray(twice)]
    return (words, table), chosen, dropped


def write(path: Path, format: str | None, words: pa.LargeStringArray, table: Table, overwrite: bool) -> None:
    """Write words and table, after a check that the format can hold them."""
    chosen = named(format) if format else by_extension(path)
    check_words(chosen, words)
    check_finite("the vectors cannot be exported", words, table)
    chosen.write(path, words, table, overwrite)


def named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise ValueError(f"format={name!r} is not known; expected one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def by_extension(path: Path) -> Format:
    """The format that a file's extension stands for."""
    for format in FORMATS.values():
        if path.suffix == format.extension:
            return format
    known = ", ".join(f"{format.extension} ({format.name})" for format in FORMATS.values())
    raise ValueError(f"{path} has no extension that names a format; expected one of {known}, or give format=.")


def detect(path: Path) -> Format:
    """The format of a file, by its first bytes; by its extension only where these leave a choice.

    Text with a line of two numbers at the top is word2vec's, text without is GloVe's.
    """
    with path.open("rb") as file:
        start = file.read(1 << 16)
    for magic, packer in PACKED.items():
        if start.startswith(magic):
            raise ValueError(f"{path} is packed with {packer}: unpack it first.")
    if start.startswith(b"\x93NUMPY"):
        if path.suffix != npy.FORMAT.extension:
            raise ValueError(f"{path} is a NumPy table: rename it to .npy, with its words beside it in .words.txt.")
        return npy.FORMAT
    if start.startswith(word2vec_binary.FASTTEXT_MAGIC) or path.suffix == word2vec_binary.FORMAT.extension:
        return word2vec_binary.FORMAT
    if path.suffix in (npy.FORMAT.extension, glove.FORMAT.extension, fasttext_vec.FORMAT.extension):
        return by_extension(path)
    first, _, rest = start.partition(b"\n")
    if re.fullmatch(rb"\s*[+-]?\d+\s+[+-]?\d+\s*", first):
        return word2vec_text.FORMAT if _is_row(rest) else word2vec_binary.FORMAT
    if _is_row(start):
        return glove.FORMAT
    if not start:
        raise ValueError(f"{path} is empty; expected vectors.")
    raise ValueError(
        f"{path} starts with {start[:40]!r}, which is none of {', '.join(FORMATS)}; if it is one, give format=."
    )


def _is_row(text: bytes) -> bool:
    """Whether the first line ends with a number that is written out."""
    line = text.partition(b"\n")[0].rstrip()
    return re.search(rb"\s[+-]?(\d+\.?\d*|\.\d+|nan|inf)(e[+-]?\d+)?$", line, re.IGNORECASE) is not None
