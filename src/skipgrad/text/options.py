"""How text is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from skipgrad.text.tokenizers import TOKENIZERS

if TYPE_CHECKING:
    Tokenizer = Literal["whitespace", "words"] | Callable[[str], list[str]]
else:  # what a command line can say: the command reads its flags from these types
    Tokenizer = Literal["whitespace", "words"]
Format = Literal["text", "jsonl", "csv", "tsv", "parquet"]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text is read.

    >>> TextOptions(tokenizer="words", column="body").format is None
    True
    """

    format: Format | None = None
    """Format of the files, where their names do not tell: text, jsonl, csv, tsv or parquet."""

    column: str | None = None
    """Column that holds the text, for JSON lines, CSV, Parquet and Arrow tables: strings, or lists of words."""

    tokenizer: Tokenizer = "whitespace"
    """What a word is: what stands between white space, or `words`: letters, digits, marks and inner apostrophes,
    lower-cased; in Python also any function from a string to a list of words."""

    lines: Literal["sentence", "document"] = "sentence"
    """Each line is a sentence, also inside a cell of a table; or `document`: a cell is one sequence of words, whatever
    line breaks it has (a line of a text file is one sequence either way)."""

    errors: Literal["strict", "replace"] = "strict"
    """Bytes that are not UTF-8, and NUL bytes: an error that says where, or `replace`: read as U+FFFD."""

    def __post_init__(self) -> None:
        _one_of("format", self.format, (None, *get_args(Format)))
        if not callable(self.tokenizer):
            _one_of("tokenizer", self.tokenizer, TOKENIZERS)
        _one_of("lines", self.lines, ("sentence", "document"))
        _one_of("errors", self.errors, ("strict", "replace"))


def _one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is one of {listed}, not {value!r}.")
