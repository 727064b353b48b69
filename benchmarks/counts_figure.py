"""Draws docs/counts.svg from results/counts/: held-out nats a pair against passes, and against seconds."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.settings import RESULTS, ROOT

Record = dict[str, Any]
COLOURS = ("#d1495b", "#30638e", "#edae49", "#00798c", "#7a7a7a")


def records() -> list[Record]:
    """The records of softmax runs, by name."""
    return [json.loads(path.read_text()) for path in sorted((RESULTS / "counts").glob("softmax-*.json"))]


def label(record: Record) -> str:
    """What tells a curve from the others."""
    setting = record["setting"]
    return f"{setting['words']:,} words, {setting['warmup']} epochs of warm-up"


def draw() -> None:
    """Write the figure, opaque so that it reads on dark pages too."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "skipgrad", "font.size": 9, "axes.edgecolor": "#888888", "text.color": "#333333"}
    import matplotlib.pyplot as plt

    found = records()
    if not found:
        raise SystemExit("There are no records to draw: run `python -m benchmarks.counts` first.")
    figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.1), sharey=True)
    for record, colour in zip(found, COLOURS, strict=False):
        nats = [point["heldout_loss"] for point in record["curve"]]
        for axes, name in zip(panels, ("epoch", "seconds"), strict=True):
            at = [point[name] for point in record["curve"]]
            axes.plot(at, nats, marker="o", markersize=4, color=colour, label=label(record))
        for run in record.get("negative_sampling", {}).get("runs", []):
            panels[1].scatter(run["seconds"], run["heldout_loss"], marker="x", color=colour)
            panels[1].annotate(f"sampled, {run['epochs']}", (run["seconds"], run["heldout_loss"]), fontsize=7)
    panels[0].set_ylabel("held-out nats a pair")
    panels[0].set_xlabel("passes")
    panels[1].set_xlabel("seconds, with counting and warm-up, 2 threads")
    panels[0].legend(frameon=False, fontsize=7)
    for axes in panels:
        axes.grid(color="#e3e3e3", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "counts.svg", facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    draw()
