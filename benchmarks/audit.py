"""Audits every head on a model of the benchmark's text, and writes docs/audit.md and its picture from the records.

`python -m benchmarks.audit [--again] [--page]`: records that are there are kept; `--page` only writes the page.
With OMP_NUM_THREADS=1 the times are those of one core.
"""

from __future__ import annotations

import argparse
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.settings import RESULTS, ROOT, TEXT, WORK
from skipgrad.auditing import Audit
from skipgrad.auditing.picture import picture
from skipgrad.auditing.report import percent, sentences

RECORDS = RESULTS / "audit"
PAGE, PICTURE = ROOT / "docs" / "audit.md", ROOT / "docs" / "audit.svg"
OPTIONS: dict[str, Any] = {"predictions": 128, "replicates": 64, "seed": 1}
TRAINING = {"dim": 100, "sample": 1e-4}, {"epochs": 2}

AUDITS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "importance": ("importance", {}, ["unigram", "uniform", "adaptive", "bigram"]),
    "importance-others": ("importance", {}, ["unigram^0.75", "log-uniform", "thinned", "softmax"]),
    "importance-exact": ("importance", {"exact": 1024}, ["unigram"]),
    "sampled": ("sampled", {}, ["unigram", "bigram"]),
    "sampled-drawn": ("sampled", {"target": "drawn"}, ["unigram"]),
    "nce": ("nce", {}, []),
    "nce-64": ("nce", {"negatives": 64}, []),
    "negative": ("negative", {}, []),
    "hierarchical": ("hierarchical", {}, []),
    "adaptive": ("adaptive", {}, []),
}
"""Name of the record: head, its options, proposals."""


def main() -> None:
    """Run the audits that have no record, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--again", action="store_true", help="replace records that are there")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    missing = [name for name in AUDITS if options.again or not (RECORDS / f"{name}.json").exists()]
    if missing and not options.page:
        run(missing)
    records = read(RECORDS)
    PAGE.write_text(page(records), encoding="utf-8")
    PICTURE.write_text(picture(Audit.from_dict(records["importance"]["audit"])), encoding="utf-8")


def run(names: list[str]) -> None:
    """Audit, and write a record each."""
    import skipgrad as sg
    from skipgrad.auditing.audit import KNOWN

    vectors, corpus = model()
    RECORDS.mkdir(parents=True, exist_ok=True)
    for name in names:
        head, options, proposals = AUDITS[name]
        print(f"{name} ...", flush=True)
        found = sg.audit(vectors, KNOWN[head](**options), proposals=proposals, text=corpus, **OPTIONS)
        record = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "model": facts(vectors)}
        record |= {"machine": machine.describe(), "audit": found.to_dict()}
        (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def model() -> tuple[Any, Any]:
    """Vectors, trained once, and their corpus."""
    import skipgrad as sg

    settings, training = TRAINING
    corpus = sg.Corpus.build(TEXT, cache=WORK / "corpora")
    folder = WORK / "audit.vectors"
    if not folder.exists():
        sg.SkipGram(**settings).fit(corpus, seed=1, threads=1, **training).save(folder)  # type: ignore[arg-type]
    return sg.Vectors.load(folder), corpus


def facts(vectors: Any) -> dict[str, Any]:
    """What is said of the model."""
    return {"words": len(vectors), "text": TEXT.name, "loss": vectors.metadata["history"][-1]["loss"]} | {
        key: vectors.metadata[key] for key in ("options", "training")
    }


def read(folder: Path) -> dict[str, Any]:
    """The records in the order of AUDITS."""
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in AUDITS}


def page(records: dict[str, Any]) -> str:
    """The page, in Markdown: nothing in it but the frame is written by hand."""
    first = records["importance"]
    parts = [FRAME.format(**_frame(first))]
    for name, record in records.items():
        audit = Audit.from_dict(record["audit"])
        options = [f"{key} {value}" for key, value in AUDITS[name][1].items()]
        more = ["other proposals"] if name.endswith("others") else []
        parts += ["", f"## {', '.join([audit.head, *options, *more])}", "", *_table(audit)]
        parts += [f"- {sentence}" for sentence in sentences(audit)[2:]]
    return "\n".join([*parts, ""])


def _frame(record: dict[str, Any]) -> dict[str, Any]:
    options, found = record["model"]["options"], record["audit"]
    audit = Audit.from_dict(found)
    return {
        "words": f"{found['words']:,}",
        "dim": found["dim"],
        "epochs": record["model"]["training"]["epochs"],
        "sample": f"{options['sample']:g}",
        "negatives": options["head"]["negatives"],
        "exponent": options["head"]["exponent"],
        "predictions": found["predictions"],
        "replicates": found["replicates"],
        "log_z": f"{audit.log_z:.3f}",
        "drift": f"{audit.log_z_drift:.3f}",
        "slopes": "\n".join(_slopes(audit)),
        "cpu": record["machine"]["cpu"],
        "numpy": record["machine"]["versions"]["numpy"],
    }


def _slopes(audit: Audit) -> list[str]:
    head = ["all predictions", "from N = 512 on", "typical half", "from N = 128 on"]
    lines = [f"| proposal | {' | '.join(head)} |", "|---" + "|--:" * len(head) + "|"]
    for name in audit.proposals:
        parts = ((False, 0), (False, 512), (True, 0), (True, 128))
        slopes = [audit.slope(name, typical, least) for typical, least in parts]
        cells = ["-" if math.isnan(slope) else f"{slope:.2f} ± {error:.2f}" for slope, error in slopes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _table(audit: Audit) -> list[str]:
    """A row for each proposal and number of draws."""
    if not audit.estimates:
        return []
    weighted = audit.kind == "softmax"
    head = ["bias", "noise", "hits", "Mflop", "µs"]
    if weighted:
        head[1:1] = ["first order", "typical half"]
        head[4:4] = ["effective draws", "predicted", "bias of the loss", "unreached", "worst"]
    lines = [f"| proposal | N | {' | '.join(head)} |", "|---|--:|" + "--:|" * len(head)]
    for one in audit.estimates:
        cells = [f"{percent(one.bias)} ± {percent(one.bias_error)}" if one.bias > 1e-6 else "0 %", percent(one.noise)]
        cells += [percent(one.hits), f"{one.cost.flop / 1e6:.3g}", f"{one.cost.microseconds:.0f}"]
        if weighted:
            cells[1:1] = [percent(one.predicted), percent(one.typical)]
            cells[4:4] = [f"{one.ess:.1f}", f"{one.ess_predicted:.1f}"]
            cells[6:6] = [f"{one.loss_bias:.4f} ± {one.loss_bias_error:.4f}"]
            cells[7:7] = [percent(one.unreached), percent(one.unreached_worst)]
        lines.append(f"| {one.proposal} | {one.samples} | {' | '.join(cells)} |")
    return [*lines, ""]


FRAME = """\
# How far each head is from the exact softmax

Written by `python -m benchmarks.audit` from the records in [benchmarks/results/audit](../benchmarks/results/audit);
what the columns mean stands in [maths/importance.md](maths/importance.md).

The model: skip-gram with negative sampling on 16.9 million words of Wikipedia, V = {words}, D = {dim}, {epochs} epochs,
K = {negatives} noise words of count^{exponent}, sample {sample}. The probe: {predictions} pairs of neighbors from that
text, as often as training meets them; each is drawn for {replicates} times with every N. Gradients are those of the
hidden vector, and biases and noise are relative to the length of the exact gradient (root mean squares over
predictions); ± is one standard error over draws. Scores are U h + log(K q): at the optimum of negative sampling that is
log P, and it nearly is one here: log Z is {log_z}, and its standard deviation over contexts {drift}.

![Bias and noise of the gradient, and effective draws, against the number of draws](audit.svg)

"Typical half" is the bias over the half of the predictions that the proposal suits best. A few contexts have words that
are far more probable than the proposal thinks; they make up most of the mean square, and there the first-order formula
(bias ~ 1/N) holds only once N is well above 1 + chi2(p, q). The slope of log bias over log N shows it:

{slopes}

"First order" is what that formula says. The proposal bigram has its counts from the same text, as it would in training.
The bias of nce and negative is 0 % up to rounding: the audit takes their noise out with a statistic of known mean, and
of a right head nothing is left.

"Unreached" is *sum_w max(0, p_w - P(w is drawn))*, in the mean and in the worst context. A draw's weight is at most 1,
so this share of the probability is not pushed down. The audit sees the model as it is: scores that nothing pushes down
may grow in training until it diverges, which a single look does not show.

The heads hierarchical and adaptive are checked for being exact with this model's table, which was not trained for them:
their figures say nothing of how well they predict. Times: one prediction that draws for itself, in NumPy on one core of
a shared machine, the fastest of 60 runs; training kernels share draws between the predictions of a block.
{cpu}; NumPy {numpy}."""


if __name__ == "__main__":
    main()
