"""The `skipgrad` command: what the library does, one verb a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

import skipgrad as sg

WRONG, STOPPED = 2, 130  # exit codes: bad input; Ctrl-C, as shells count it

app = App(
    name="skipgrad",
    version=sg.__version__,
    help="Learns vectors from text, and searches them.",
    help_format="plaintext",
    result_action="return_value",
)

Number = Annotated[int, Parameter(name=["--number", "-n"])]
Restrict = int | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; an expected error is one sentence on stderr and exit code 2."""
    try:
        result = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except KeyboardInterrupt:
        return _say("Stopped.", STOPPED)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (CycloptsError, ValueError, KeyError, OSError, ImportError, MemoryError) as error:
        return _say(_sentence(error), WRONG)


@app.command
def nearest(
    vectors: str,
    words: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    number: Number = 10,
    restrict: Restrict = None,
) -> None:
    """Find the words whose vectors have the largest cosine with those of the given words.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    words
        Words to find neighbours of.
    number
        How many neighbours each.
    restrict
        Search only so many of the most frequent words.
    """
    opened = sg.Vectors.read(vectors)
    found = zip(words, opened.nearest(words, number, restrict=restrict), strict=True)
    _table(("word", "nearest", "cosine"), ((word, near, cosine) for word, row in found for near, cosine in row))


@app.command
def analogy(
    vectors: str,
    /,
    *terms: Annotated[str, Parameter(allow_leading_hyphen=True)],
    number: Number = 10,
    method: Literal["3cosadd", "3cosmul"] = "3cosadd",
    restrict: Restrict = None,
) -> None:
    """Answer an analogy: `skipgrad analogy animals.vectors king - man + woman`.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    terms
        Words with + or - between them.
    number
        How many answers.
    method
        How cosines are combined.
    restrict
        Search only so many of the most frequent words.
    """
    plus, minus = _signed(terms)
    answers = sg.Vectors.read(vectors).analogy(plus, minus=minus, n=number, method=method, restrict=restrict)
    _table(("word", "score"), answers)


@app.command
def similarity(vectors: str, a: str, b: str, /) -> None:
    """Print the cosine of two words.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    a
        A word.
    b
        Another word.
    """
    print(f"{sg.Vectors.read(vectors).similarity(a, b):.4f}")


@app.command
def export(
    vectors: str,
    target: str,
    /,
    *,
    format: str | None = None,
    which: Literal["input", "output"] = "input",
    replace_spaces: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write vectors for other programs: .bin, .txt, .vec, .glove or .npy.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    target
        The file to write; its extension gives the format.
    format
        The format, where the extension does not give it.
    which
        The table to write.
    replace_spaces
        What stands for a space within a word, in formats where a space ends a word.
    overwrite
        Replace a file that is there.
    """
    opened = sg.Vectors.read(vectors)
    opened.export(target, format, which=which, replace_spaces=replace_spaces, overwrite=overwrite)
    _note(f"Wrote {len(opened):,} words to {target}.")


def _signed(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are added and those that are taken away in `king - man + woman`."""
    signs, words = ["+", *terms[1::2]], terms[::2]
    if len(signs) != len(words) or not set(signs) <= {"+", "-"}:
        raise ValueError(f"{' '.join(terms)!r} is no analogy; expected words with + or - between: king - man + woman")
    return tuple([word for sign, word in zip(signs, words, strict=True) if sign == side] for side in "+-")


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """An aligned table on a terminal; elsewhere lines with tabs, for the next program."""
    console = Console()
    cells = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        print("\n".join("\t".join(row) for row in [columns, *cells]))
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index and index == len(columns) - 1 else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _note(text: str) -> None:
    """A line for whoever watches: not part of the result."""
    print(text, file=sys.stderr)


def _say(text: str, code: int) -> int:
    _note(text)
    return code


def _sentence(error: Exception) -> str:
    """One line that says what is wrong."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return "There is not enough memory: give a larger --min-count or a smaller --dim."
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__
