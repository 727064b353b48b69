"""Trains and scores what has no record yet, then writes the README's tables and its figure.

`python -m benchmarks [d100 d300 small] [--trainers skipgrad,gensim] [--seeds 3] [--again] [--quick]`
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import figure, machine, results
from benchmarks.settings import JUDGES, QUICK, RESTRICT, RESULTS, ROOT, SETTINGS, TEXT, WORK, Setting, Step, steps
from benchmarks.trainers import SCORED, TRAINERS, fasttext_clock


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    folder = WORK / "results" if options.quick else RESULTS
    settings = [QUICK] if options.quick else [SETTINGS[name] for name in options.settings or SETTINGS]
    folder.mkdir(parents=True, exist_ok=True)
    if not TEXT.exists():
        sys.exit(f"{TEXT.name} is not there: set SKIPGRAD_DATA to the folder that has it.")
    for setting in settings:
        text = text_of(setting)
        for step in steps(setting, options.trainers, 1 if options.quick else options.seeds):
            record = folder / step.record
            if options.again or options.quick or not record.exists():
                print(f"{record.stem} ...", end=" ", flush=True)
                record.write_text(json.dumps(run(step, text), indent=1) + "\n")
                print(summary(json.loads(record.read_text())), flush=True)
    table = results.table(results.read(folder), settings if options.quick else SETTINGS.values())
    if options.quick:
        print(table)
    else:
        results.rewrite(ROOT / "README.md", "benchmark", table)
        figure.draw()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("settings", nargs="*", choices=[*SETTINGS, []], help="all, where none is named")
    parser.add_argument("--trainers", type=lambda names: names.split(","), default=list(TRAINERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="replace records that are there")
    parser.add_argument("--quick", action="store_true", help="try the benchmark itself on a tiny text, keep nothing")
    return parser.parse_args()


def text_of(setting: Setting) -> Path:
    """The compressed text of a setting; its first words are cut out once."""
    if setting.words is None:
        return TEXT
    import pyarrow as pa

    path = WORK / f"{setting.words}.txt.zst"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        with pa.input_stream(str(TEXT)) as file:
            lines = file.read(setting.words * 10).decode().splitlines(keepends=True)
        words_so_far = itertools.accumulate(len(line.split()) for line in lines)
        kept = [line for line, words in zip(lines, words_so_far, strict=True) if words <= setting.words]
        with pa.output_stream(str(path)) as packed:
            packed.write("".join(kept).encode())
    return path


def run(step: Step, text: Path) -> dict[str, Any]:
    """Train in a process of its own, then score what it saved; everything but the record is removed."""
    folder = WORK / step.record.removesuffix(".json")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "benchmarks.trainers", step.trainer, json.dumps(asdict(step.setting)), str(text)]
    child = subprocess.run([*command, str(folder), repr(time.time())], cwd=ROOT, capture_output=True, text=True)
    if child.returncode:
        sys.exit(f"failed:\n{child.stderr[-3000:]}")
    times = json.loads((folder / "times.json").read_text())
    if step.trainer == "fasttext" and (clock := fasttext_clock(child.stderr, step.setting.threads)):
        # Its one call counts and trains: its own clock tells them apart.
        seconds = times["raw_words"] / clock
        times["corpus_seconds"] += times["train_seconds"] - seconds
        times["train_seconds"] = seconds
    times["raw_rate"] = times["raw_words"] / times["train_seconds"]
    if "trained_words" in times:
        times["trained_rate"] = times["trained_words"] / times["train_seconds"]
    scores = score(folder / SCORED)
    shutil.rmtree(folder)
    return {
        "trainer": step.trainer,
        "setting": asdict(step.setting),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "times": times,
        "scores": scores,
        "machine": machine.describe(),
    }


def score(vectors: Path) -> dict[str, Any]:
    """Scores of one evaluator, whoever trained: analogies, by kind too, and word pairs."""
    command = [sys.executable, "-m", "skipgrad.cli", "evaluate", str(vectors), *map(str, JUDGES.values())]
    child = subprocess.run([*command, "--json", "--restrict", str(RESTRICT)], capture_output=True, text=True)
    if child.returncode:
        sys.exit(f"scoring failed: {child.stderr}")
    analogies, *pairs = json.loads(child.stdout)
    scores = {"analogies": analogies["total"]["accuracy"]}
    scores |= {kind: analogies[kind]["accuracy"] for kind in ("semantic", "syntactic")}
    return scores | {name: result["rho"] for name, result in zip(list(JUDGES)[1:], pairs, strict=True)}


def summary(record: dict[str, Any]) -> str:
    """A line on a finished run."""
    times, scores = record["times"], record["scores"]
    return (
        f"{times['raw_rate'] / 1e6:.3f} M raw words/s, {times['total_seconds']:.1f} s, {times['peak_mb']:.0f} MB, "
        + ", ".join(f"{name} {value:.3f}" for name, value in scores.items() if value is not None)
    )


if __name__ == "__main__":
    main()
