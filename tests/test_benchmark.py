"""The benchmark: who runs when, and that the README's table says what the records say."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results
from benchmarks.settings import SETTINGS, steps
from benchmarks.trainers import fasttext_clock

D100 = SETTINGS["d100"]
MACHINE = {
    "cpu": "a CPU",
    "cores": 2,
    "instruction_sets": ["v2", "v3"],
    "compiler": "a compiler",
    "python": "3.11.7",
    "versions": {"gensim": "4.4.0", "fasttext-wheel": "0.9.2"},
}


def record(trainer: str, seed: int, rate: float, accuracy: float, threads: int = 2) -> dict[str, Any]:
    """A record of a run that nobody ran."""
    times = {"raw_rate": rate, "trained_rate": rate / 2, "total_seconds": 10.0, "peak_mb": 200.0}
    times |= {"gflops": 100.0, "peak_gflops": 200.0} if trainer == "skipgrad" else {}
    scores = {"analogies": accuracy, "wordsim353": 0.6, "simlex999": None}
    setting = asdict(replace(D100, seed=seed, threads=threads))
    return {"trainer": trainer, "setting": setting, "times": times, "scores": scores, "machine": MACHINE}


RECORDS = [
    record("gensim", 1, 0.5e6, 0.36),
    record("gensim", 2, 0.5e6, 0.38),
    record("skipgrad", 1, 9e6, 0.37),
    record("skipgrad", 2, 11e6, 0.37),
    record("skipgrad", 1, 5e6, 0.37, threads=1),
]


def test_trainers_alternate_and_another_begins_with_each_seed() -> None:
    plan = steps(D100, ["skipgrad", "gensim"], 2)
    assert [(step.trainer, step.setting.seed, step.setting.threads) for step in plan] == [
        ("skipgrad", 1, 2),
        ("gensim", 1, 2),
        ("skipgrad", 1, 1),
        ("gensim", 2, 2),
        ("skipgrad", 2, 2),
        ("skipgrad", 2, 1),
    ]
    assert len({step.record for step in plan}) == len(plan)


def test_the_table_has_means_ratios_and_spreads() -> None:
    text = results.table(RECORDS, [D100])
    assert "| **skipgrad** | 10.00 M (20.0x) | 5.00 M | 10.0 s | 200 MB | 37.0 ± 0.0 | 0.600 ± 0.000 | - |" in text
    assert "| gensim | 0.50 M | 0.25 M | 10.0 s | 200 MB | 37.0 ± 1.4 | 0.600 ± 0.000 | - |" in text
    assert "50% of the FMA peak" in text
    assert "2.00 times as fast as one" in text
    assert "a CPU, 2 cores" in text


def test_no_records_are_said_to_be_none() -> None:
    assert "make bench" in results.table([], SETTINGS.values())


def test_only_what_is_between_the_marks_is_rewritten(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    begin, end = "<!-- benchmark: begin, written by `make bench` -->", "<!-- benchmark: end -->"
    readme.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    results.rewrite(readme, "benchmark", "new")
    assert readme.read_text() == f"before\n{begin}\nnew\n{end}\nafter\n"


def test_a_readme_without_marks_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("no marks\n")
    with pytest.raises(ValueError, match="has no lines"):
        results.rewrite(readme, "benchmark", "new")
    assert readme.read_text() == "no marks\n"


def test_the_last_line_of_fasttext_tells_its_speed() -> None:
    log = "Progress:  50.0% words/sec/thread:   90 lr: 0.01\rProgress: 100.0% words/sec/thread:   75 lr: 0.0"
    assert fasttext_clock(log, 2) == 150
    assert fasttext_clock("", 2) is None
