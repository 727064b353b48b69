"""What a file format is: a name, extensions, a reader, a writer, and the words it can hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .safetensors import Table, row_blocks

Contents = tuple[pa.LargeStringArray, Table]

SPACES = r"[ \t\n\v\f\r]"  # what C's isspace knows: a word with one of these falls apart in a file of columns


@dataclass(frozen=True)
class Format:
    """One file format: `read(path, errors)` and `write(path, words, table, overwrite)`."""

    name: str
    extension: str
    read: Callable[[Path, str], Contents]
    write: Callable[[Path, pa.LargeStringArray, Table, bool], None]
    separators: str = SPACES  # regular expression: characters that a word cannot hold


def check_words(format: Format, words: pa.LargeStringArray) -> None:
    """Refuse the first word that is empty or that the format would tear apart."""
    check_not_empty("the vectors cannot be exported", words)
    first = pc.index(pc.match_substring_regex(words, format.separators), True).as_py()
    if first >= 0:
        raise ValueError(
            f"{format.name} cannot hold the word {words[first].as_py()!r} (row {first + 1}): replace the spaces with "
            "replace_spaces='_' (--replace-spaces _), or save the vectors as a folder, which holds any word."
        )


def replace_spaces(words: pa.LargeStringArray, by: str) -> pa.LargeStringArray:
    """Replace every white space in the words; two words that become the same are refused."""
    if re.search(SPACES, by) or not by:
        raise ValueError(f"replace_spaces={by!r} would leave words that cannot be written: give for example '_'.")
    replaced = pc.replace_substring_regex(words, SPACES, by.replace("\\", r"\\"))
    twice = pc.filter(replaced, repeated(replaced))
    if len(twice):
        raise ValueError(f"replace_spaces={by!r} would make two words {twice[0].as_py()!r}: give another character.")
    return replaced


def repeated(words: pa.LargeStringArray) -> pa.BooleanArray:
    """True where the same word stands earlier in the list."""
    ids = words.dictionary_encode().indices.to_numpy()  # in the order of first appearance: a new one is the largest
    seen = np.maximum.accumulate(ids)
    new = np.empty(len(ids), bool)
    new[:1], new[1:] = True, seen[1:] > seen[:-1]
    return pa.array(~new)


def check_not_empty(what: str, words: pa.LargeStringArray) -> None:
    """Name the first word without characters: nobody can ask for it."""
    first = pc.index(pc.equal(pc.binary_length(words), 0), pa.scalar(True)).as_py()
    if first >= 0:
        raise ValueError(f"{what}: the word of row {first + 1} is empty; remove the row.")


def check_finite(what: str, words: pa.LargeStringArray, table: Table) -> None:
    """Name the first row with NaN or an infinite number."""
    start = 0
    for rows in row_blocks(table, 1 << 20):
        if not np.isfinite(rows).all():
            row = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise ValueError(
                f"{what}: row {row + 1}, the word {words[row].as_py()!r}, has NaN, an infinite number, or one too "
                "large for float32; such vectors cannot be compared: remove the row, or train again with a lower rate."
            )
        start += len(rows)


def decode_words(path: Path, words: list[bytes], offsets: list[int], errors: str) -> pa.LargeStringArray:
    """UTF-8 words as Arrow strings; `offsets` are their places in the file, for the message."""
    raw = pa.array(words, pa.large_binary())
    try:
        return raw.cast(pa.large_string())
    except pa.ArrowInvalid:
        pass
    if errors == "replace":
        return pa.array([word.decode("utf-8", "replace") for word in words], pa.large_string())
    for row, (word, offset) in enumerate(zip(words, offsets, strict=True)):
        try:
            word.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: the word {word[:40]!r} (row {row + 1}) is not valid UTF-8 at byte {offset + error.start:,}: "
                "is it another format? If not, read it with errors='replace' (--errors replace)."
            ) from None
    raise ValueError(f"{path}: the words are not valid UTF-8.")


def parse_header(path: Path, line: bytes, size: int, smallest: int) -> tuple[int, int]:
    """`count dimension` from the first line; `smallest` is the least number of bytes a number takes in the file."""
    match = re.fullmatch(rb"\s*([+-]?\d{1,18})\s+([+-]?\d{1,18})\s*", line)
    if not match:
        raise ValueError(f"{path}: the first line is {line[:60]!r}; expected two numbers, words and dimensions.")
    count, dim = int(match[1]), int(match[2])
    if count < 1 or dim < 1:
        raise ValueError(f"{path}: the header says {count:,} words of {dim:,} dimensions; both must be 1 or more.")
    if count * dim * smallest > size:
        raise ValueError(
            f"{path} is cut, or its header is wrong: it says {count:,} words of {dim:,} dimensions, which take at "
            f"least {count * dim * smallest:,} bytes, and the file has {size:,}."
        )
    return count, dim
