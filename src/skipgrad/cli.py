"""The `skipgrad` command: what the library does, one verb a command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from skipgrad.auditing.command import audit
from skipgrad.corpus import Corpus, CorpusOptions
from skipgrad.evaluation import Analogies, WordPairs
from skipgrad.evaluation import evaluate as score
from skipgrad.flags import NO_HEAD_FLAGS, NO_MODEL_FLAGS, HeadFlags, ModelFlags, model_of
from skipgrad.formats import folder
from skipgrad.progress import Display
from skipgrad.progress import note as _note
from skipgrad.progress import show_table as _table
from skipgrad.training import Training
from skipgrad.vectors import Vectors
from skipgrad.vocab import UnknownWordError

WRONG, STOPPED = 2, 130  # exit codes: bad input; Ctrl-C, as shells count it

app = App(
    name="skipgrad",
    help="Learns vectors from text, and searches them.",
    help_format="markdown",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

app.command(audit)

Output = Annotated[Path, Parameter(name=["--output", "-o"])]
Overwrite = Annotated[bool, Parameter(negative=())]
Number = Annotated[int, Parameter(name=["--number", "-n"])]
Restrict = int | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; an expected error is one sentence on stderr and exit code 2."""
    warnings.formatwarning = lambda message, *_: f"{message}\n"
    try:
        result = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except KeyboardInterrupt:
        return _say("Stopped.", STOPPED)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (CycloptsError, ValueError, UnknownWordError, OSError, ImportError, MemoryError) as error:
        return _say(_sentence(error), WRONG)


@dataclass(frozen=True, kw_only=True)
class Reading(CorpusOptions):
    """Flags of the text: a tokenizer of one's own is a function, and no flag can give one."""

    tokenizer: Literal["whitespace", "words"] = "whitespace"
    """What a word is: what stands between white space, or `words`: letters, digits, marks and inner apostrophes,
    lower-cased."""


@app.command
def train(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *sources: str,
    output: Output,
    overwrite: Overwrite = False,
    vocab: Path | None = None,
    encoder: Literal["skipgram", "cbow"] = "skipgram",
    head: Literal["negative", "softmax", "hierarchical", "importance", "sampled", "nce", "adaptive"] = "negative",
    text: Annotated[Reading, Parameter(name="*", group="Text")] = Reading(),
    model: Annotated[ModelFlags, Parameter(name="*", group="Model")] = NO_MODEL_FLAGS,
    options: Annotated[HeadFlags, Parameter(name="*", group="Head")] = NO_HEAD_FLAGS,
    training: Annotated[Training, Parameter(name="*", group="Training")] = Training(),
) -> int:
    """Learn vectors from a text and save them.

    Parameters
    ----------
    source
        A file, a glob pattern, a folder, or - for standard input.
    sources
        More files.
    output
        The folder to save vectors in, such as animals.vectors.
    overwrite
        Replace vectors that are there.
    vocab
        Words to use, as a Parquet file with the columns word and, if there are counts, count.
    encoder
        Whether a word predicts the words around it (skipgram), or they together predict the word (cbow).
    head
        What is asked of a hidden vector and a word: how the softmax over the vocabulary is replaced.
    text
        How the text is read.
    model
        What is learned.
    options
        Options of the head.
    training
        How long, and how fast.
    """
    if source.startswith("-") and source != "-":
        raise ValueError(f"Unknown option: {source}. `skipgrad train --help` lists all.")
    folder.check_target(output, overwrite)
    learner = model_of(encoder, head, model, options)
    console = Console(stderr=True)
    given = [Path(path) for path in (source, *sources)] if sources else source
    with Display(console) as display:
        corpus = Corpus.build(given, vocab=vocab, callback=display.reading, **_fields(text))
    console.print(corpus.summary(), highlight=False, markup=False, soft_wrap=True)
    with Display(console) as display:
        vectors = learner.fit(corpus, callback=display.training, **_fields(training))
    vectors.save(output, overwrite=overwrite)
    finished = bool(vectors.metadata["finished"])
    _note(f"Saved {len(vectors):,} vectors to {output}{'' if finished else ', unfinished: training was stopped'}.")
    return 0 if finished else STOPPED


@app.command
def nearest(vectors: str, word: str, /, *words: str, number: Number = 10, restrict: Restrict = None) -> None:
    """Find the words whose vectors have the largest cosine with those of the given words.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    word
        A word to find neighbours of.
    words
        More words.
    number
        How many neighbours each.
    restrict
        Search only so many of the most frequent words.
    """
    opened = Vectors.read(vectors)
    found = {query: opened.nearest(query, number, restrict=restrict) for query in (word, *words)}
    _table(("word", "nearest", "cosine"), ((query, *near) for query, row in found.items() for near in row))


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
    answers = Vectors.read(vectors).analogy(plus, minus=minus, n=number, method=method, restrict=restrict)
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
    print(f"{Vectors.read(vectors).similarity(a, b):.4f}")


@app.command
def evaluate(
    vectors: str,
    file: str,
    /,
    *files: str,
    restrict: int = 30_000,
    method: Literal["3cosadd", "3cosmul"] = "3cosadd",
    sections: bool = False,
    json: bool = False,
) -> None:
    """Score vectors with files of word pairs or analogies; intervals hold 95 % of bootstrap samples.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    file
        Lines of two words and a score, or sections with lines of four words.
    files
        More files.
    restrict
        Ask and answer analogies only among so many of the most frequent words.
    method
        How cosines are combined in analogies.
    sections
        Show every section of the analogies.
    json
        Print all results as JSON.
    """
    opened = Vectors.read(vectors)
    results = [score(opened, path, restrict=restrict, method=method) for path in (file, *files)]
    if json:
        print(dumps([result.to_dict() for result in results], indent=1))
    else:
        columns = ("file", "measure", "score", "95 % interval", "used", "missing")
        _table(columns, (row for result in results for row in _scores(result, sections)))


@app.command
def info(vectors: str, /, *, path: str | None = None, json: bool = False) -> None:
    """Show what vectors are, what they were trained with, and how the loss went.

    Parameters
    ----------
    vectors
        A folder of vectors, or a file of another program.
    path
        Show instead the way to this word in the tree of a hierarchical softmax.
    json
        Print it as JSON.
    """
    opened = Vectors.read(vectors)
    if path is not None:
        return _show_path(opened, path, json)
    facts = {"words": len(opened), "dim": opened.dim, "tables": list(opened.tables), **opened.metadata}
    if json:
        print(dumps(facts, indent=1))
    else:
        _table(("name", "value"), _flat(facts))


@app.command
def export(
    vectors: str,
    target: str,
    /,
    *,
    format: str | None = None,
    which: Literal["input", "output"] = "input",
    replace_spaces: str | None = None,
    overwrite: Overwrite = False,
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
    opened = Vectors.read(vectors)
    opened.export(target, format, which=which, replace_spaces=replace_spaces, overwrite=overwrite)
    _note(f"Wrote {len(opened):,} words to {target}.")


@app.command
def demo(*, output: Output = Path("demo.vectors"), epochs: int = 15, threads: int = Training.threads) -> int:
    """Learn from the documentation and comments of the Python library on this machine; needs no download.

    Parameters
    ----------
    output
        The folder to save vectors in; what an earlier demo saved there is replaced.
    epochs
        Passes over the text.
    threads
        Threads that train; 0 takes one for each core.
    """
    from skipgrad.demo import tour  # its process pool takes a moment to import

    return tour(Console(), output, epochs, threads)


def _show_path(vectors: Vectors, word: str, json: bool) -> None:
    """The nodes from the root to a word, which way it goes, and how many words are left there."""
    columns = ("node", "goes", "words left")
    rows = [(node, "left" if left else "right", below) for node, left, below in vectors.path(word)]
    if json:
        print(dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
    else:
        _table(columns, rows)


def _fields(options: Any) -> dict[str, Any]:
    """The fields of a dataclass as keyword arguments."""
    return {item.name: getattr(options, item.name) for item in fields(options)}


def _scores(result: WordPairs | Analogies, sections: bool) -> Iterator[tuple[object, ...]]:
    """Rows of the table of results."""
    if isinstance(result, WordPairs):
        yield (
            result.name,
            "Spearman",
            result.rho,
            f"{result.low:.3f} .. {result.high:.3f}",
            result.pairs,
            result.missing,
        )
        return
    for part in (result.total, result.semantic, result.syntactic, *(result.sections if sections else ())):
        interval = f"{part.low:.3f} .. {part.high:.3f}"
        yield result.name, part.name, part.accuracy, interval, part.questions, part.missing


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names with dots and values of a nested mapping."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for number, item in enumerate(value, start=1):
                yield f"{prefix}{name}.{number}", ", ".join(f"{key} {_short(each)}" for key, each in item.items())
        elif isinstance(value, list | tuple):
            yield prefix + name, ", ".join(map(_short, value))
        else:
            yield prefix + name, str(value)


def _short(value: object) -> str:
    """A number of a list: four digits of a fraction, all of a count."""
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def _signed(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are added and those that are taken away in `king - man + woman`."""
    signs, words = ["+", *terms[1::2]], terms[::2]
    if len(signs) != len(words) or not set(signs) <= {"+", "-"}:
        raise ValueError(f"{' '.join(terms)!r} is no analogy; expected words with + or - between: king - man + woman")
    signed = list(zip(signs, words, strict=True))
    return [word for sign, word in signed if sign == "+"], [word for sign, word in signed if sign == "-"]


def _say(text: str, code: int) -> int:
    _note(text)
    return code


def _sentence(error: Exception) -> str:
    """One line that says what is wrong."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return "There is not enough memory: give a larger --min-count or a smaller --dim."
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
