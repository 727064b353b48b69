"""The folder `name.vectors/`: vectors.safetensors, vocab.parquet and model.json."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..vocab import Vocab
from .files import refuse_existing, sync_folder, written
from .safetensors import Table, map_tables, write_tables

TABLES, VOCAB, MODEL = FILES = ("vectors.safetensors", "vocab.parquet", "model.json")
VOCAB_SCHEMA = pa.schema({"word": pa.large_string(), "count": pa.int64()})
FORMAT_VERSION = 1
CLUSTERS = "clusters"  # of the adaptive head: the one table whose rows are not the words


def save(path: Path, vocab: Vocab, tables: Mapping[str, Table], metadata: Mapping[str, Any], overwrite: bool) -> None:
    """Write a whole folder beside the target, then rename it; a crash at any moment leaves one whole model.

    An old folder steps aside to `.name.old` only when the new one is complete, and is removed last.
    """
    model = _json(metadata)
    check_target(path, overwrite)
    with written(path):
        new = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        try:
            new.chmod(path.parent.stat().st_mode & 0o777)  # mkdtemp makes folders that only their owner can read
            with (new / TABLES).open("wb") as file:
                write_tables(file, tables)
            # as it lies in memory, so that it is mapped and not decoded when the folder is opened
            words = pa.table([vocab.words, pa.array(vocab.counts)], VOCAB_SCHEMA)
            pq.write_table(words, new / VOCAB, compression="none", use_dictionary=False)
            (new / MODEL).write_bytes(model)
            for name in FILES:
                _sync(new / name)
            sync_folder(new)
            _swap(new, path)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise


def _swap(new: Path, path: Path) -> None:
    old = _old(path)
    replaces = path.exists()
    if replaces:
        if old.exists():  # left by a save that was interrupted after its own swap
            shutil.rmtree(old)
        os.rename(path, old)
    try:
        os.rename(new, path)
    except BaseException:
        if replaces:
            os.rename(old, path)
        raise
    sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def load(path: Path) -> tuple[Vocab, dict[str, Table], dict[str, Any]]:
    """Memory-map the tables, read the words and the metadata."""
    _find(path)
    try:
        model = json.loads((path / MODEL).read_bytes())
        version = int(model.pop("format_version"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path / MODEL} is not the metadata of a model ({error!r}).") from error
    if version > FORMAT_VERSION:
        raise ValueError(f"{path} has format version {version}; this skipgrad reads {FORMAT_VERSION}: upgrade it.")
    tables = map_tables(path / TABLES)
    if "input" not in tables:
        raise ValueError(f"{path / TABLES} has no table 'input'; it has {', '.join(tables) or 'none'}.")
    vocab = _read_vocab(path / VOCAB)
    for name, table in tables.items():
        if len(table) != len(vocab) and name != CLUSTERS:
            raise ValueError(f"{path}: table {name!r} has {len(table):,} rows, and there are {len(vocab):,} words.")
    return vocab, tables, model


def _read_vocab(path: Path) -> Vocab:
    """Words and counts as `save` left them; a million take some 30 ms."""
    try:
        table = pq.read_table(path, schema=VOCAB_SCHEMA, memory_map=True).combine_chunks()
        words, counts = (table[name].chunk(0) for name in VOCAB_SCHEMA.names)
        if words.null_count or counts.null_count:
            raise pa.ArrowInvalid("a word or a count is missing")
        return Vocab(words, counts.to_numpy())
    except (pa.ArrowException, OSError, IndexError) as error:
        raise ValueError(f"{path} is not a whole Parquet file with the columns word and count: {error}.") from error


def _find(path: Path) -> None:
    missing = [name for name in FILES if not (path / name).is_file()]
    if not missing:
        return
    if path.is_dir():
        raise FileNotFoundError(f"{path} is not a folder of vectors: {', '.join(missing)} not found in it.")
    if path.exists():
        raise ValueError(f"{path} is a file, not a folder of vectors: read it with Vectors.read.")
    rescue = f"; the model that was there is whole in {_old(path)}: rename it" if _old(path).is_dir() else ""
    raise FileNotFoundError(f"{path} is not there{rescue}.")


def check_target(path: Path, overwrite: bool) -> None:
    """Say why a folder cannot be saved there; replacing removes what is there, so that must be a model and no more."""
    refuse_existing(path, overwrite)
    if not path.exists():
        return
    strange = sorted({item.name for item in path.iterdir()} - set(FILES)) if path.is_dir() else [path.name]
    if strange:
        raise FileExistsError(f"{path} is not replaced: it holds other things ({strange[0]}); choose another name.")


def _json(metadata: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(_plain({"format_version": FORMAT_VERSION, **metadata}), indent=2, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must fit into JSON: {error}.") from error
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """JSON has no NaN and knows no NumPy; neither may stop a model from being saved."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
