"""A chunk of text, as it goes from a reader to a counter; it knows where it came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skipgrad import _native

Offsets = npt.NDArray[np.int64]
CHUNK_BYTES = 4 << 20  # large against the cost of a call, small against memory


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some megabytes of UTF-8 from one place, or words that are already apart."""

    data: bytes | npt.NDArray[np.uint8]
    name: str  # of the file or table
    start: int  # byte in the decompressed file, or row of the table, where the chunk starts
    read: int = 0  # bytes of the source that were read when the chunk was made
    ends: bool = True  # the last sentence of the text ends here
    inside: bool = False  # the text starts inside a word that is too long to be one
    rows: Offsets | None = None  # end of each row in `data`; None: not a table
    words: Offsets | None = None  # (n + 1,) offsets of the words in `data`; None: still to be split
    sentences: Offsets | None = None  # (m + 1,) offsets of the sentences in `words`

    def checked(self, errors: str) -> Chunk:
        """The chunk, if it is valid UTF-8 without NUL bytes; otherwise ValueError, or the chunk repaired."""
        position = _native.invalid_utf8(np.frombuffer(self.data, np.uint8))
        if position < 0:
            return self
        if errors == "strict":
            raise ValueError(self._complaint(position))
        if self.words is not None and self.sentences is not None:
            data = bytes(self.data)
            return joined_words(
                (_repaired(data[a:b]) for a, b in zip(self.words[:-1], self.words[1:], strict=True)), self
            )
        return replace(self, data=_repaired(bytes(self.data)))

    def _complaint(self, position: int) -> str:
        if self.rows is None:
            place = f"{self.name}, byte {self.start + position}"
        else:
            row = int(np.searchsorted(self.rows, position, side="right"))
            place = f"{self.name}, row {self.start + row + 1}, byte {position - (self.rows[row - 1] if row else 0)}"
        if self.data[position] == 0:
            return (
                f"{place}: a NUL byte, so this is no UTF-8 text; convert it (UTF-16: iconv -f UTF-16 -t UTF-8), "
                "leave the file out, or read on with errors='replace'."
            )
        return (
            f"{place}: not valid UTF-8 (0x{self.data[position]:02x}); convert the text to UTF-8 "
            "(for instance iconv -f LATIN1 -t UTF-8), or read on with errors='replace'."
        )


def _repaired(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd").encode()


def joined_words(words: Iterable[bytes], like: Chunk) -> Chunk:
    """A chunk of these words, in the sentences of another one."""
    data, offsets = _parts(pa.array(list(words), pa.large_binary()))
    return replace(like, data=data, words=offsets)


def tokenized(chunk: Chunk, tokenizer: Callable[[str], list[str]]) -> Chunk:
    """The chunk, split into words by a Python function, which is called with each line."""
    text = bytes(chunk.data).decode()
    if chunk.inside:
        gap = re.search(r"\s", text)
        text = text[gap.start() :] if gap else ""
    sentences = [tokenizer(line) for line in text.split("\n")]
    lengths = [len(words) for words in sentences]
    try:
        words = pa.array([word for words in sentences for word in words], pa.large_string()).cast(pa.large_binary())
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ValueError(f"{chunk.name}: the tokenizer must return a list of strings ({error}).") from None
    data, offsets = _parts(words)
    return replace(chunk, data=data, words=offsets, sentences=_ends(np.array(lengths, np.int64)), rows=None)


def row_chunks(values: Any, name: str, start: int, read: int, document: bool) -> Iterator[Chunk]:
    """Chunks of an Arrow array of strings (a text each) or of lists of strings (a sentence each)."""
    step = max(1, len(values) * CHUNK_BYTES // max(values.nbytes, 1))
    for at in range(0, len(values), step):
        part = values.slice(at, step)
        if pa.types.is_dictionary(part.type):
            part = part.dictionary_decode()
        make = _words_chunk if _is_list(part.type) else _text_chunk
        yield make(part, Chunk(b"", name, start + at, read), document)


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _text_chunk(cells: Any, empty: Chunk, document: bool) -> Chunk:
    cells = _binary(cells, empty.name)
    if document:
        cells = pc.replace_substring(cells, b"\n", b" ")
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(cells)], pa.int64()), cells)
    text = pc.binary_join(whole, pa.scalar(b"\n", pa.large_binary()))[0].as_buffer()
    rows = np.cumsum(np.diff(_parts(cells)[1]) + 1)
    return replace(empty, data=np.frombuffer(text, np.uint8), rows=rows)


def _words_chunk(lists: Any, empty: Chunk, document: bool) -> Chunk:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    words = lists.flatten()
    if pa.types.is_dictionary(words.type):
        words = words.dictionary_decode()
    if pa.types.is_integer(words.type):  # baskets and sessions of numbered items
        words = words.cast(pa.large_string())
    data, offsets = _parts(_binary(words, empty.name))
    sentences = _ends(lengths)
    return replace(empty, data=data, words=offsets, sentences=sentences, rows=offsets[sentences[1:]])


def _binary(values: Any, name: str) -> Any:
    kind = values.type
    if pa.types.is_null(kind):
        return pa.array([b""] * len(values), pa.large_binary())
    if not any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
                                         pa.types.is_binary, pa.types.is_large_binary)):  # fmt: skip
        raise ValueError(f"{name}: the column holds {kind}; what is needed is text, or lists of words.")
    return pc.fill_null(values.cast(pa.large_binary()), b"")


def _parts(values: Any) -> tuple[npt.NDArray[np.uint8], Offsets]:
    """The bytes of a large_binary array, and (n + 1,) offsets into them."""
    _, offsets, data = values.buffers()
    if len(values) == 0 or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data, np.uint8, ends[-1])[ends[0] :], ends - ends[0]


def _ends(lengths: Offsets) -> Offsets:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
