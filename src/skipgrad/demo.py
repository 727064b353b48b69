"""A text that every machine with Python has: the documentation and comments of its Python library."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

SUFFIXES = (".py", ".pyi", ".pyx", ".pxi", ".pxd")

# Triple-quoted strings and comments are what is wanted; other strings are matched so that a quote or # in them is not.
_TEXT = re.compile(
    r'"""(?P<double>.*?)"""'
    r"|'''(?P<single>.*?)'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|\#(?P<comment>[^\n]*)",
    re.DOTALL,
)
_PARAGRAPHS = re.compile(r"\n\s*\n")
_WORDS = re.compile(r"[^\W\d_]\w*")

# Shown after training, where both sides of the sum are in the vocabulary.
NEIGHBOURS = ("list", "file", "exception", "socket", "integer", "matrix", "thread", "january")
ANALOGIES = (
    ("minimum", "min", "max"),
    ("reading", "read", "write"),
    ("upper", "lower", "left"),
    ("axes", "axis", "index"),
    ("stdin", "input", "output"),
    ("removed", "remove", "add"),
    ("float64", "float32", "int32"),
    ("uppercase", "upper", "lower"),
)


def paragraphs(source: str) -> Iterator[str]:
    r"""The paragraphs of a program's triple-quoted strings, and its blocks of comments.

    >>> list(paragraphs("# On two\n# lines.\nx = '# no'  # yes\ndef f():\n    \'\'\'One.\n\n    Two.\'\'\'"))
    ['On two lines.', 'yes', 'One.', 'Two.']
    """
    block: list[str] = []
    end = 0
    for match in _TEXT.finditer(source):
        comment = match["comment"]
        if block and (comment is None or source[end : match.start()].strip()):
            yield " ".join(block)
            block = []
        if comment is not None:
            block.append(comment.strip())
            end = match.end()
        elif text := match["double"] or match["single"]:
            yield from map(str.strip, _PARAGRAPHS.split(text))
    if block:
        yield " ".join(block)


def sentences(path: Path) -> list[str]:
    """The paragraphs of a file, lower-cased words between blanks; none where the file is not UTF-8."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    found = (_WORDS.findall(paragraph.lower()) for paragraph in paragraphs(source))
    return [" ".join(words) for words in found if len(words) > 2]


def library() -> list[Path]:
    """The source files of the Python library and of the packages installed beside it."""
    standard, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    files = {
        path
        for root in (standard, packages)
        for suffix in SUFFIXES
        for path in root.rglob("*" + suffix)
        if "site-packages" not in path.relative_to(root).parts  # of another environment
    }
    return sorted(files)


def documentation(files: Sequence[Path], progress: Callable[[int, int, int], None] | None = None) -> Iterator[str]:
    """Each different paragraph of the files once, in order: licences and vendored copies repeat hundreds of times.

    `progress` is called with files read, all files, and words so far.
    """
    seen: set[str] = set()
    words = 0
    with ProcessPoolExecutor() as pool:
        for done, found in enumerate(pool.map(sentences, files, chunksize=32), start=1):
            fresh = dict.fromkeys(sentence for sentence in found if sentence not in seen)
            seen.update(fresh)
            words += sum(sentence.count(" ") + 1 for sentence in fresh)
            yield from fresh
            if progress:
                progress(done, len(files), words)
