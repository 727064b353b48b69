"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a temporary file beside the target that takes its name only when it is complete and on disk."""
    refuse_existing(path, overwrite)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder, not a file to replace: choose another name.")
    with written(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only their owner can read
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        sync_folder(path.parent)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Say what to type where the target exists, or the folder that should hold it does not."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists: choose another name, or replace it with overwrite=True (--overwrite).")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: the folder {path.parent} is not there, make it first.")


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a sentence about the file that was being written."""
    try:
        yield
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = "the disk is full; free some space, or choose a folder on another disk"
        else:
            why = error.strerror or str(error)
        raise OSError(f"{path} was not written: {why}.") from error


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut: the names in a folder are data of their own."""
    with suppress(OSError):  # some systems cannot open or sync a folder, and the files are whole without it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
