"""Files, compressed or not, as chunks of whole lines; a line that is too long for a chunk is cut at a space."""

from __future__ import annotations

import contextlib
import lzma
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipgrad import _native
from skipgrad.text.chunks import Chunk

STANDARD_INPUT = Path("-")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class OpenFile:
    """A file that is read decompressed."""

    name: str
    stream: Any  # has read(n)
    raw: Any  # has tell(): how much of the compressed file was read

    def tell(self) -> int:
        """Bytes of the file that were read, as it lies on the disk."""
        return 0 if self.raw is None else int(self.raw.tell())


def suffixes(path: Path) -> tuple[str, str]:
    """The suffix of the format and that of the compression: ('.jsonl', '.gz') of 'corpus.jsonl.gz'."""
    compression = path.suffix.lower()
    if compression not in COMPRESSIONS:
        return compression, ""
    return path.with_suffix("").suffix.lower(), compression


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[OpenFile]:
    """A file to be read decompressed; a damaged one is a ValueError that names it."""
    if path == STANDARD_INPUT:
        yield OpenFile("standard input", sys.stdin.buffer, None)
        return
    codec = COMPRESSIONS.get(suffixes(path)[1])
    try:
        if codec == "xz":  # the one that Arrow does not read
            with path.open("rb") as raw, lzma.open(raw) as stream:
                yield OpenFile(str(path), stream, raw)
        elif codec:
            with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, codec) as stream:
                yield OpenFile(str(path), stream, raw)
        else:
            with path.open("rb", buffering=0) as plain:
                yield OpenFile(str(path), plain, plain)
    except (EOFError, lzma.LZMAError, pa.ArrowInvalid, OSError) as error:
        if not codec or (isinstance(error, OSError) and error.errno is not None):
            raise
        if isinstance(error, EOFError) or "Truncated" in str(error):
            raise ValueError(f"{path} is cut off: its {codec} data stops in the middle; fetch it again.") from None
        raise ValueError(f"{path} is not valid {codec} data ({error}); fetch it again, or rename it.") from None


def pieces(file: OpenFile, size: int) -> Iterator[tuple[int, bytes]]:
    """The decompressed content, `size` bytes at a time, and where each piece starts."""
    piece: bytes = file.stream.read(size)
    start = 0
    if piece.startswith(_BYTE_ORDER_MARK):
        start = len(_BYTE_ORDER_MARK)
        piece = piece[start:]
    while piece:
        yield start, piece
        start += len(piece)
        piece = file.stream.read(size)


def line_chunks(file: OpenFile, size: int, classes: npt.NDArray[np.uint32] | None, before: int) -> Iterator[Chunk]:
    """Chunks of about `size` bytes that end at line ends, or inside a long line at a space.

    `before`: the bytes of the files that were read before this one.
    """
    held = b""  # what follows the last cut
    start = 0
    inside = False
    for position, piece in pieces(file, size):
        cut, forced = piece.rfind(b"\n") + 1, False
        start = position - len(held)
        if cut:
            text, held = b"".join((held, memoryview(piece)[:cut])), piece[cut:]
        else:
            held += piece
            cut, forced = _cut_inside(held, classes) if len(held) >= size else (0, False)
            if not cut:
                continue
            text, held = held[:cut], held[cut:]
        yield Chunk(text, file.name, start, before + file.tell(), ends=False, inside=inside)
        start += len(text)
        inside = forced
    yield Chunk(held, file.name, start, before + file.tell(), ends=True, inside=inside)


def _cut_inside(text: bytes, classes: npt.NDArray[np.uint32] | None) -> tuple[int, bool]:
    """Where to cut a part of a line (0: wait for more of it), and whether that is inside of a word."""
    cut = _native.last_break(np.frombuffer(text, np.uint8), classes)
    if cut or len(text) <= _native.LONGEST_WORD + 4:
        return cut, False
    cut = len(text)
    while cut > len(text) - 4 and text[cut - 1] & 0xC0 == 0x80:  # not inside of a character
        cut -= 1
    return cut - (text[cut - 1] >= 0xC0), True


def whole_lines(file: OpenFile, size: int) -> Iterator[tuple[bytes, int]]:
    """About `size` bytes of whole lines at a time, and the byte where they start."""
    held: list[bytes] = []
    start = 0
    for position, piece in pieces(file, size):
        cut = piece.rfind(b"\n") + 1
        if not held:
            start = position
        held.append(piece[:cut] if cut else piece)
        if cut:
            yield b"".join(held), start
            start = position + cut
            held = [piece[cut:]]
    if last := b"".join(held):
        yield last, start
