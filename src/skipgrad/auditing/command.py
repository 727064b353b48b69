"""`skipgrad audit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skipgrad.auditing.audit import audit as examine
from skipgrad.auditing.exact import Bias
from skipgrad.auditing.picture import picture as draw
from skipgrad.auditing.report import COLUMNS, rows, sentences
from skipgrad.heads import HEADS
from skipgrad.progress import note, show_table
from skipgrad.vectors import Vectors


def audit(
    vectors: str,
    /,
    *,
    head: str = "importance",
    samples: str = "8,32,128,512,2048",
    proposal: str = "",
    exponent: float | None = None,
    negatives: int | None = None,
    exact: int | None = None,
    target: Literal["included", "drawn"] | None = None,
    text: str | None = None,
    bias: Bias = "auto",
    predictions: int = 64,
    replicates: int = 64,
    mixture: float = 0.5,
    seed: int = 1,
    picture: Annotated[Path | None, Parameter(name=["--picture"])] = None,
    json: bool = False,
) -> None:
    """Tell how far a head's loss and gradient are from the exact softmax over the same scores.

    Parameters
    ----------
    vectors
        A folder of vectors, with the output table that training left.
    head
        The head: negative, nce, importance, sampled, hierarchical or adaptive.
    samples
        Numbers of draws, with commas.
    proposal
        Where they are drawn from, with commas: unigram, unigram^0.75, uniform, log-uniform, thinned, bigram, adaptive,
        softmax. Left out: as the head has it.
    exponent
        Words are drawn in proportion to count^exponent, where no proposal is named.
    negatives
        Noise words for each context, of the heads negative and nce.
    exact
        So many frequent words are summed exactly, of the head importance.
    target
        How the head sampled corrects the true word's score.
    text
        A text whose words predict their neighbors; left out, the model's own probabilities say what is predicted.
    bias
        What is added to scores: auto (the model's own, or what its training implies), unigram (log of counts), none.
    predictions
        How many predictions are looked at.
    replicates
        How often each is drawn for.
    mixture
        The share of the unigram in the proposals bigram and adaptive.
    seed
        Of all that is random.
    picture
        An SVG file to draw the result in.
    json
        Print all results as JSON.
    """
    given = {"exponent": exponent, "negatives": negatives, "exact": exact, "target": target}
    chosen = _options(head, {name: value for name, value in given.items() if value is not None})
    found = examine(
        Vectors.read(vectors),
        chosen,
        _numbers(samples),
        [name for name in proposal.split(",") if name],
        bias=bias,
        text=text,
        predictions=predictions,
        replicates=replicates,
        mixture=mixture,
        seed=seed,
    )
    if picture is not None:
        picture.write_text(draw(found), encoding="utf-8")
    if json:
        print(dumps({**found.to_dict(), "says": sentences(found)}, indent=1))
        return
    if found.estimates:
        show_table(COLUMNS, rows(found))
    for sentence in sentences(found):
        note(sentence)


def _options(head: str, given: dict[str, Any]) -> Any:
    """The head with those of its options that were given."""
    if head not in HEADS:
        raise ValueError(f"The head {head!r} is not known; there are {', '.join(HEADS)}.")
    has = {name: {field.name for field in fields(kind)} for name, kind in HEADS.items()}  # type: ignore[arg-type]
    for name in given:
        if name not in has[head]:
            others = " or ".join(other for other in has if name in has[other])
            raise ValueError(f"The head {head} has no option --{name}: leave it out, or take {others}.")
    return HEADS[head](**given)


def _numbers(text: str) -> Sequence[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"samples is {text!r}; expected numbers of draws with commas, such as 8,32,128.") from None
