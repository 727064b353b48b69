"""`skipgrad audit`."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from skipgrad.auditing.audit import KNOWN
from skipgrad.auditing.audit import audit as examine
from skipgrad.auditing.exact import Bias
from skipgrad.auditing.picture import picture as draw
from skipgrad.auditing.report import COLUMNS, rows, sentences
from skipgrad.flags import NO_AUDIT_FLAGS, AuditFlags, made
from skipgrad.progress import note, show_table
from skipgrad.vectors import Vectors


def audit(
    vectors: str,
    /,
    *,
    head: str = "importance",
    samples: str = "8,32,128,512,2048",
    proposal: str = "",
    options: Annotated[AuditFlags, Parameter(name="*", group="Head")] = NO_AUDIT_FLAGS,
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
    options
        Options of the head.
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
    if head not in KNOWN:
        raise ValueError(f"The head {head!r} is not known; there are {', '.join(KNOWN)}.")
    found = examine(
        Vectors.read(vectors),
        made(KNOWN, "head", head, options),
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


def _numbers(text: str) -> Sequence[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"samples is {text!r}; expected numbers of draws with commas, such as 8,32,128.") from None
