"""What is trained, on which text, with which settings: the same for every trainer."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SKIPGRAD_DATA", ROOT.parent / "shared" / "data"))
WORK = ROOT / "build" / "bench"
RESULTS = ROOT / "benchmarks" / "results"

TEXT = DATA / "enwiki2015_text8.txt.zst"
JUDGES = {
    "analogies": DATA / "eval" / "questions-words.txt",
    "wordsim353": DATA / "eval" / "wordsim353.tsv",
    "simlex999": DATA / "eval" / "simlex999.txt",
}
RESTRICT = 30_000  # questions and answers are among so many of the most frequent words


@dataclass(frozen=True)
class Setting:
    """Options that all trainers have, under the names they have here."""

    name: str
    dim: int = 100
    epochs: int = 5
    words: int | None = None  # only so many words from the start of the text
    window: int = 5
    negatives: int = 5
    sample: float = 1e-4
    min_count: int = 5
    lr: float = 0.025
    encoder: str = "skipgram"
    head: str = "negative"
    threads: int = 2
    seed: int = 1


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("d100"),
        Setting("d300", dim=300),
        Setting("small", epochs=15, words=1_000_000),
        Setting("hierarchical", head="hierarchical"),
        Setting("cbow", encoder="cbow"),
    )
}
NO_FASTTEXT = ("hierarchical", "cbow")  # which has its own learning rates there, and takes six minutes a run
QUICK = Setting("quick", dim=32, epochs=1, words=200_000)


@dataclass(frozen=True)
class Step:
    """One training run: its record is a file, and a record that is there is not made again."""

    trainer: str
    setting: Setting

    @property
    def record(self) -> str:
        """The name of the file in results/."""
        return f"{self.setting.name}-{self.trainer}-{self.setting.threads}threads-seed{self.setting.seed}.json"


def steps(setting: Setting, trainers: list[str], seeds: int) -> list[Step]:
    """All runs of a setting: trainers alternate, another one begins with each seed; skipgrad also on one thread."""
    trainers = [trainer for trainer in trainers if not (trainer == "fasttext" and setting.name in NO_FASTTEXT)]
    plan = []
    for seed in range(1, seeds + 1):
        turn = (seed - 1) % len(trainers)
        order = trainers[turn:] + trainers[:turn]
        plan += [Step(trainer, replace(setting, seed=seed)) for trainer in order]
        if "skipgrad" in trainers:
            plan.append(Step("skipgrad", replace(setting, seed=seed, threads=1)))
    return plan
