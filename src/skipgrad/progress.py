"""What a terminal, or a log file, shows while a corpus is read and a model is trained."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from skipgrad.counting import TextProgress
    from skipgrad.training import Progress as TrainingProgress


def million(number: float) -> str:
    """A count of words, readable.

    >>> million(9_853_000), million(212_000), million(850)
    ('9.85 M', '0.21 M', '850')
    """
    return f"{number / 1e6:.2f} M" if number >= 10_000 else f"{number:.0f}"


class Display:
    """One bar on a terminal; plain lines, one every `interval` seconds, where the output is a file or a pipe."""

    def __init__(self, console: Console, interval: float = 5.0) -> None:
        self.console = console
        self.interval = interval
        self._last = time.monotonic()
        facts = TextColumn("{task.fields[facts]}", table_column=Column(no_wrap=True))
        bar, percent, left = BarColumn(bar_width=None), TaskProgressColumn(), TimeRemainingColumn(compact=True)
        name = TextColumn("{task.description}", table_column=Column(no_wrap=True))
        self._bar = Progress(name, bar, percent, left, facts, console=console, transient=True, expand=True)
        self._task = self._bar.add_task("", total=1.0, facts="")

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.console.is_terminal:
            self._bar.stop()

    def show(self, name: str, share: float, facts: str) -> None:
        """Move the bar; without a terminal write a line, unless the last one was a moment ago."""
        if self.console.is_terminal:
            self._bar.update(self._task, description=name, completed=share, facts=facts)
        elif time.monotonic() - self._last >= self.interval:
            self._last = time.monotonic()
            self.keep(f"{name}, {share:.0%}: {facts}")

    def keep(self, line: str) -> None:
        """Write a line that stays, above the bar."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def reading(self, now: TextProgress) -> None:
        """Show how far a corpus is read: bytes of a total, where it is known, and words."""
        self.show("reading", now.read / now.total if now.total else 0.0, f"{million(now.words)} words")

    def training(self, now: TrainingProgress) -> None:
        """Show a step of `fit`: its clocks, learning rate and loss; an epoch's end leaves a line."""
        name = f"epoch {now.epoch}/{now.epochs}"
        clocks = f"{million(now.raw_rate)}/s raw, {million(now.trained_rate)}/s trained"
        if now.event == "epoch":
            heldout = "" if now.heldout_loss is None else f", held out {now.heldout_loss:.4f}"
            self.keep(f"{name}: loss {now.loss:.4f}{heldout} ({clocks} words)")
        elif now.event == "step":
            self.show(name, now.share, f"{clocks}, lr {now.lr:.4f}, loss {now.loss:.3f}")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """An aligned table on a terminal; elsewhere lines with tabs, for the next program."""
    console = Console()
    cells = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    if not console.is_terminal:
        print("\n".join("\t".join(row) for row in [columns, *cells]))
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for index, column in enumerate(columns):
        numbers = all(row[index][:1] in "0123456789-" for row in cells)
        table.add_column(column, justify="right" if numbers else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def note(text: str) -> None:
    """A line for whoever watches: not part of the result."""
    print(text, file=sys.stderr)
