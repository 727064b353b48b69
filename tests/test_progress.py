"""What a terminal and a log file show while a model is trained."""

from __future__ import annotations

import io

from rich.console import Console

from skipgrad.counting import TextProgress
from skipgrad.progress import Display
from skipgrad.training import Progress

STEP = Progress("step", 2, 5, 0.3, 2.0, 20_000_000, 6_000_000, 0.0175, 2.3456, None)
EPOCH = Progress("epoch", 2, 5, 0.4, 4.0, 40_000_000, 12_000_000, 0.015, 2.3, 2.4)


def test_a_log_has_a_line_for_each_epoch_and_one_for_steps_now_and_then() -> None:
    out = io.StringIO()
    with Display(Console(file=out, width=200), interval=0) as display:
        display.reading(TextProgress(50, 100, 1_500_000))
        display.training(STEP)
        display.training(EPOCH)
    assert out.getvalue().splitlines() == [
        "reading, 50%: 1.50 M words",
        "epoch 2/5, 30%: 10.00 M/s raw, 3.00 M/s trained, lr 0.0175, loss 2.346",
        "epoch 2/5: loss 2.3000, held out 2.4000 (10.00 M/s raw, 3.00 M/s trained words)",
    ]


def test_a_log_is_not_flooded() -> None:
    out = io.StringIO()
    with Display(Console(file=out), interval=3600) as display:
        for _ in range(100):
            display.training(STEP)
    assert out.getvalue() == ""


def test_a_terminal_shows_a_bar_with_share_time_left_both_clocks_rate_and_loss() -> None:
    out = io.StringIO()
    with Display(Console(file=out, force_terminal=True, width=100, color_system=None)) as display:
        display.training(STEP)
    shown = out.getvalue()
    for part in ("epoch 2/5", "━", "30%", ":", "10.00 M/s raw", "3.00 M/s trained", "lr 0.0175", "loss 2.346"):
        assert part in shown


def test_a_text_of_unknown_length_shows_its_words() -> None:
    out = io.StringIO()
    with Display(Console(file=out), interval=0) as display:
        display.reading(TextProgress(50, None, 1_500_000))
    assert "1.50 M words" in out.getvalue()
