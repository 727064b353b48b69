"""Draws docs/figure.svg from the records: how fast each trainer is, and how good its vectors are."""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks.results import groups, read, rewrite, values
from benchmarks.settings import RESULTS, ROOT, SETTINGS

COLOURS = {"skipgrad": "#d1495b", "gensim": "#30638e", "fasttext": "#7a7a7a"}
LABELS = {"skipgrad": "skipgrad", "gensim": "gensim", "fasttext": "fastText"}
PICTURE = "![Training speed against accuracy, for skipgrad, gensim and fastText](docs/figure.svg)"
PANELS = {"d100": "100 dimensions, 5 epochs", "d300": "300 dimensions, 5 epochs"}


def panel(axes: Any, records: list[dict[str, Any]], name: str) -> None:
    """A dot a run; the name of the trainer beside its runs."""
    for trainer, runs in groups(records, SETTINGS[name]).items():
        speed = [rate / 1e6 for rate in values(runs, "times", "raw_rate")]
        score = [100 * share for share in values(runs, "scores", "analogies")]
        axes.scatter(speed, score, s=70, color=COLOURS[trainer], alpha=0.85, linewidths=0, zorder=3)
        label = f"{LABELS[trainer]}\n{mean(speed):.2g} M words/s"
        below = trainer == "fasttext"  # next to gensim: one label up, one down
        where = {"xytext": (0, -12 if below else 12), "va": "top" if below else "bottom"}
        point = (mean(speed), min(score) if below else max(score))
        axes.annotate(label, point, textcoords="offset points", ha="center", color=COLOURS[trainer], **where)
    axes.set_xscale("log")
    axes.set_xlim(0.05, 40)
    axes.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
    axes.minorticks_off()
    axes.set_xlabel("training, million words a second, 2 threads")
    axes.set_title(PANELS[name], loc="left", fontsize=10, color="#333333")
    axes.grid(color="#e3e3e3", linewidth=0.8, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)


def draw() -> None:
    """Write the figure, opaque so that it reads on dark pages too, and show it in the README."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "skipgrad", "font.size": 9, "axes.edgecolor": "#888888", "text.color": "#333333"}
    import matplotlib.pyplot as plt

    records = read(RESULTS)
    names = [name for name in PANELS if groups(records, SETTINGS[name])]
    if not names:
        raise SystemExit("There are no records to draw: run `make bench` first.")
    figure, panels = plt.subplots(1, len(names), figsize=(4.6 * len(names), 3.1), squeeze=False, sharey=True)
    for axes, name in zip(panels[0], names, strict=True):
        panel(axes, records, name)
    top = max(100 * share for share in values(records, "scores", "analogies"))
    panels[0][0].set_ylim(0, top * 1.35)
    panels[0][0].set_ylabel("Google analogies right, %")
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "figure.svg", facecolor="white", metadata={"Date": None})
    rewrite(ROOT / "README.md", "figure", PICTURE)


if __name__ == "__main__":
    draw()
