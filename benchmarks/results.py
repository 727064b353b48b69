"""Records of runs to the README's table: nothing in it is written by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.settings import SETTINGS, Setting

Record = dict[str, Any]
NAMES = {"skipgrad": "**skipgrad**", "gensim": "gensim", "fasttext": "fastText, no subwords"}


def read(folder: Path) -> list[Record]:
    """All records of a folder, by name."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def groups(records: Iterable[Record], setting: Setting) -> dict[str, list[Record]]:
    """The records of a setting by trainer, each run on all its threads."""
    found = defaultdict(list)
    for record in records:
        if record["setting"]["name"] == setting.name and record["setting"]["threads"] == setting.threads:
            found[record["trainer"]].append(record)
    return {trainer: found[trainer] for trainer in NAMES if trainer in found}


def values(records: Iterable[Record], part: str, name: str) -> list[float]:
    """A number of every record that has it."""
    return [record[part][name] for record in records if record[part].get(name) is not None]


def section(records: list[Record], setting: Setting) -> list[str]:
    """The table of a setting, a row for each trainer, in Markdown."""
    by_trainer = groups(records, setting)
    if not by_trainer:
        return []
    text = "first million words" if setting.words else "16.9 M words"
    seeds = max(map(len, by_trainer.values()))
    what = "CBOW" if setting.encoder == "cbow" else "skip-gram"
    title = (
        f"**{setting.name}**: {what}, {setting.head}, D = {setting.dim}, {setting.epochs} epochs, {text}, {seeds} seeds"
    )
    head = ["training, raw words/s", "trained words/s", "text to vectors", "peak memory"]
    head += ["analogies", "WordSim-353", "SimLex-999"]
    lines = ["", title, "", f"| | {' | '.join(head)} |", "|---" + "|--:" * len(head) + "|"]
    base = values(by_trainer.get("gensim", []), "times", "raw_rate")
    for trainer, runs in by_trainer.items():
        raw = values(runs, "times", "raw_rate")
        ratio = f" ({mean(raw) / mean(base):.1f}x)" if base and trainer != "gensim" else ""
        cells = [
            _millions(raw) + ratio,
            _millions(values(runs, "times", "trained_rate")),
            f"{mean(values(runs, 'times', 'total_seconds')):.1f} s",
            f"{mean(values(runs, 'times', 'peak_mb')):.0f} MB",
            _spread(values(runs, "scores", "analogies"), 100, 1),
            _spread(values(runs, "scores", "wordsim353"), 1, 3),
            _spread(values(runs, "scores", "simlex999"), 1, 3),
        ]
        lines.append(f"| {NAMES[trainer]} | {' | '.join(cells)} |")
    return lines


def notes(records: list[Record]) -> list[str]:
    """What the tables do not say: the machine, the share of the FMA peak, what a second thread brings."""
    machine = records[-1]["machine"]
    versions = machine["versions"]
    lines = [
        "",
        f"{machine['cpu']}, {machine['cores']} cores, 2 threads, {', '.join(machine['instruction_sets'])}; "
        f"{machine['compiler']}; Python {machine['python']}, gensim {versions['gensim']} (`corpus_file`), "
        f"fastText {versions['fasttext-wheel']}. Means over seeds, ± standard deviation; analogies in %, among the "
        "30,000 most frequent words. Window 5, 5 negatives, sample 1e-4, min_count 5, learning rate 0.025.",
    ]
    for setting in SETTINGS.values():
        both = groups(records, setting).get("skipgrad", [])
        alone = [r for r in records if r["setting"]["name"] == setting.name and r["setting"]["threads"] == 1]
        share = [r["times"]["gflops"] / r["times"]["peak_gflops"] for r in both if "peak_gflops" in r["times"]]
        if share and alone:
            ratio = mean(values(both, "times", "raw_rate")) / mean(values(alone, "times", "raw_rate"))
            lines.append(
                f"{setting.name}: skipgrad reaches {mean(share):.0%} of the FMA peak, which is "
                f"measured in the same run, and two threads are {ratio:.2f} times as fast as one."
            )
    return lines


def table(records: list[Record], settings: Iterable[Setting]) -> str:
    """The tables of all settings, and notes."""
    sections = [line for setting in settings for line in section(records, setting)]
    return "\n".join([*sections, *notes(records)]).strip() if sections else "No benchmark has run yet: `make bench`."


def rewrite(readme: Path, name: str, text: str) -> None:
    """Put a text between the markers of that name in the README."""
    begin, end = f"<!-- {name}: begin, written by `make bench` -->", f"<!-- {name}: end -->"
    old = readme.read_text(encoding="utf-8")
    before, _, rest = old.partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"{readme.name} has no lines {begin!r} and {end!r}.")
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _millions(numbers: list[float]) -> str:
    return f"{mean(numbers) / 1e6:.2f} M" if numbers else "not told"


def _spread(numbers: list[float], factor: float, digits: int) -> str:
    if not numbers:
        return "-"
    deviation = stdev(numbers) if len(numbers) > 1 else 0.0
    return f"{mean(numbers) * factor:.{digits}f} ± {deviation * factor:.{digits}f}"
