"""What a user may give as text: a file, a glob, a folder, standard input, a table, an iterable."""

from __future__ import annotations

import difflib
import glob
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from skipgrad.text.chunks import CHUNK_BYTES, Chunk
from skipgrad.text.files import STANDARD_INPUT, line_chunks, open_file, suffixes
from skipgrad.text.options import TextOptions
from skipgrad.text.tables import arrow_chunks, csv_chunks, iterable_chunks, json_chunks, parquet_chunks
from skipgrad.text.tokenizers import native_classes

_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv",
            ".parquet": "parquet"}  # fmt: skip
_SNIFFED = 4096  # bytes of a file in a folder that decide whether it is text


@dataclass(frozen=True)
class Source:
    """Text that can be read as chunks: files, or else rows, which can be read once."""

    paths: tuple[Path, ...] = ()
    left_out: int = 0  # files of a folder that are not text
    rows: Any = None  # a record batch reader or an iterable

    @property
    def name(self) -> str:
        """What messages call it."""
        if not self.paths:
            return "the table" if isinstance(self.rows, pa.RecordBatchReader) else "the iterable"
        if self.paths == (STANDARD_INPUT,):
            return "standard input"
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} other files"

    @property
    def stem(self) -> str:
        """A short name for folders."""
        return self.paths[0].name.split(".")[0][:40] if self.paths else "rows"

    @property
    def lasting(self) -> bool:
        """Whether the text is still there when it has been read."""
        return bool(self.paths) and STANDARD_INPUT not in self.paths

    @property
    def total(self) -> int | None:
        """Bytes to read, as they lie on the disk; None: not known."""
        return sum(path.stat().st_size for path in self.paths) if self.lasting else None

    def chunks(self, options: TextOptions, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """The text in order, about `size` bytes at a time."""
        if isinstance(self.rows, pa.RecordBatchReader):
            yield from arrow_chunks(self.rows, self.name, options)
        elif self.rows is not None:
            yield from iterable_chunks(self.rows, options, size)
        before = 0
        for path in self.paths:
            yield from _file_chunks(path, options, size, before)
            before += path.stat().st_size if self.lasting else 0


def find_source(source: Any) -> Source:
    """The text that a user means: see `Corpus.build`."""
    if isinstance(source, Path) or (isinstance(source, str) and source):
        return _path_source(source)
    if hasattr(source, "__arrow_c_stream__"):
        return Source(rows=pa.RecordBatchReader.from_stream(source))
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes, bytearray, Mapping)):
        raise ValueError(
            f"no text in {source!r:.60} ({type(source).__name__}): give a path, a glob pattern, a folder, "
            "'-' for standard input, an Arrow table, or an iterable of strings or of lists of words."
        )
    items = iter(source)
    first = next(items, None)
    if isinstance(first, Path):
        return Source(paths=tuple(_existing(Path(path)) for path in (first, *items)))
    return Source(rows=itertools.chain([] if first is None else [first], items))


def _path_source(source: str | Path) -> Source:
    path = Path(source)
    if path == STANDARD_INPUT:
        return Source(paths=(path,))
    if path.is_dir():
        return _folder(path)
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
        files = tuple(file for file in found if file.is_file())
        if not files:
            raise FileNotFoundError(f"no file matches {str(path)!r}.")
        return Source(paths=files)
    return Source(paths=(_existing(path),))


def _existing(path: Path) -> Path:
    if path.exists():
        return path
    names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=3)
    hint = f"; did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else "."
    raise FileNotFoundError(f"no file {str(path)!r}{hint}")


def _folder(folder: Path) -> Source:
    inside = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    files = [folder / path for path in sorted(inside) if not any(part.startswith(".") for part in path.parts)]
    texts = tuple(path for path in files if _is_text(path))
    if not texts:
        raise ValueError(f"no text in the folder {folder}: of its {len(files)} files none is UTF-8 text.")
    return Source(paths=texts, left_out=len(files) - len(texts))


def _is_text(path: Path) -> bool:
    if suffixes(path)[0] == ".parquet":
        return True
    try:
        with open_file(path) as file:
            start = file.stream.read(_SNIFFED)
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and b"\0" not in start
    except ValueError:
        return True  # damaged: reading it says how
    return b"\0" not in start


def _file_chunks(path: Path, options: TextOptions, size: int, before: int) -> Iterator[Chunk]:
    form = options.format or _FORMATS.get(suffixes(path)[0], "text")
    if form == "parquet":
        return parquet_chunks(path, options, size, before)
    if form == "jsonl":
        return json_chunks(path, options, size, before)
    if form in ("csv", "tsv"):
        return csv_chunks(path, options, size, before, "," if form == "csv" else "\t")
    if options.column is not None:
        raise ValueError(f"{path} is plain text without columns: leave out column=, or say which format= it has.")
    return _text_chunks(path, options, size, before)


def _text_chunks(path: Path, options: TextOptions, size: int, before: int) -> Iterator[Chunk]:
    with open_file(path) as file:
        yield from line_chunks(file, size, native_classes(options.tokenizer), before)
