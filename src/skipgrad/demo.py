"""The demo: learns from a text that every machine with Python has, the documentation and comments of its library."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skipgrad.corpus import Corpus
from skipgrad.formats import folder
from skipgrad.heads import Negative
from skipgrad.model import SkipGram
from skipgrad.progress import Display
from skipgrad.vectors import Vectors

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

# Shown after training, those of which all words are in the vocabulary.
NEIGHBOURS = ("list", "file", "exception", "socket", "integer", "matrix", "thread", "red")
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


def tour(console: Console, output: Path, epochs: int, threads: int) -> int:
    """Collect, train, show, save, and say what to type next."""
    folder.check_target(output, overwrite=True)
    files = library()
    _say(console, f"Reading the documentation and comments of {len(files):,} files of this machine's Python library.")
    with Display(console) as display:
        text = documentation(files, lambda done, all, words: display.show("reading", done / all, f"{words:,} words"))
        shuffled = list(text)
        Random(1).shuffle(shuffled)  # neighboring files repeat each other, and the last ones read would weigh most
        corpus = Corpus.build(shuffled, min_count=5, cache=False)
    _say(console, corpus.summary())
    model = SkipGram(dim=100, window=5, sample=1e-3, head=Negative(negatives=5))
    _say(console, f"\nTraining: {epochs} epochs, 100 dimensions; one sentence in 50 is held out.")
    with Display(console) as display:
        vectors = model.fit(corpus, epochs=epochs, threads=threads, heldout=0.02, callback=display.training)
    vectors.save(output, overwrite=True)
    if not vectors.metadata["finished"]:
        _say(console, f"Stopped; saved what was learned to {output}.")
        return 130
    _show(console, vectors)
    command = "skipgrad" if shutil.which("skipgrad") else os.path.relpath(sys.argv[0])
    _say(console, f"\nSaved to {output}. Now type:")
    for line in (f"nearest {output} thread", f"analogy {output} minimum - min + max", f"info {output}"):
        _say(console, f"  {command} {line}")
    _say(console, f"or learn from a text of yours:\n  {command} train text.txt -o my.vectors")
    return 0


def _show(console: Console, vectors: Vectors) -> None:
    """Neighbours and analogies."""
    table = Table(box=None, title="\nNearest", title_justify="left", title_style="bold", show_header=False)
    for word in filter(vectors.__contains__, NEIGHBOURS):
        table.add_row(
            Text(word, "bold"), Text(", ".join(near for near, _ in vectors.nearest(word, 5, restrict=10_000)))
        )
    console.print(table)
    table = Table(box=None, title="\nAnalogies", title_justify="left", title_style="bold", show_header=False)
    for word, minus, plus in ANALOGIES:
        if all(each in vectors for each in (word, minus, plus)):
            answers = [answer for answer, _ in vectors.analogy(word, minus=minus, plus=plus, n=3)]
            table.add_row(f"{word} - {minus} + {plus}", "=", Text(answers[0], "bold"), f"then {', '.join(answers[1:])}")
    console.print(table)


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
