"""An audit as a picture: SVG, written by hand, since two panels of lines need no library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from skipgrad.auditing.result import ROUNDING, Audit, Estimate

COLOURS = ("#d1495b", "#30638e", "#2e8b57", "#b8860b", "#7a4fa3", "#7a7a7a", "#00798c")
WIDTH, HEIGHT = 380, 280  # of a panel, without its margins
LEFT, TOP, BETWEEN, BOTTOM = 62, 46, 84, 76
GREY, LIGHT = "#555555", "#e3e3e3"


@dataclass(frozen=True)
class Line:
    """Points (N, value), and half the length of their error bars."""

    points: Sequence[tuple[float, float, float]]
    colour: str
    dashed: bool = False
    dots: bool = True


def picture(audit: Audit) -> str:
    """Two panels over the number of draws: bias and noise of the gradient, and effective draws.

    Dots are measured, with two standard errors to both sides; dashes are the noise, and N / (1 + chi2).
    """
    if not audit.estimates:
        raise ValueError(f"{audit.head} draws nothing, and there is no picture of that: look at the table.")
    left, right = [], []
    for colour, name in zip(_colours(audit), audit.proposals, strict=True):
        ones = audit.of(name)
        left += [
            Line(_points(ones, lambda one: one.noise), colour, dashed=True, dots=False),
            Line(_points(ones, lambda one: one.bias, lambda one: 2 * one.bias_error), colour),
        ]
        right += [
            Line(_points(ones, lambda one: one.ess_predicted), colour, dashed=True, dots=False),
            Line(_points(ones, lambda one: one.ess), colour),
        ]
    panels = [("relative bias of the gradient (dashed: noise)", left)]
    if any(line.points for line in right):
        panels.append(("effective draws (dashed: N / (1 + chi2))", right))
    width = LEFT + len(panels) * WIDTH + (len(panels) - 1) * BETWEEN + 24
    height = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{GREY}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for index, (title, lines) in enumerate(panels):
        parts += _panel(title, lines, LEFT + index * (WIDTH + BETWEEN))
    parts += _legend(audit, height - 16)
    return "\n".join([*parts, "</svg>", ""])


def _colours(audit: Audit) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(audit.proposals))]


def _points(
    ones: list[Estimate], value: Callable[[Estimate], float], error: Callable[[Estimate], float] = lambda one: 0.0
) -> list[tuple[float, float, float]]:
    """What a logarithmic axis can show."""
    return [(one.samples, value(one), error(one)) for one in ones if value(one) > ROUNDING]


def _panel(title: str, lines: Sequence[Line], x: float) -> list[str]:
    """A panel with logarithmic axes, its upper left corner at (x, TOP)."""
    draws = sorted({point[0] for line in lines for point in line.points}) or [1.0]
    values = [value for line in lines for _, value, _ in line.points] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    first, last = math.log(draws[0] / 1.3), math.log(draws[-1] * 1.3)

    def across(number: float) -> float:
        return x + WIDTH * (math.log(number) - first) / (last - first)

    def up(value: float) -> float:
        share = (math.log10(max(value, 1e-300)) - low) / max(1, high - low)
        return TOP + HEIGHT * (1 - min(1.0, max(0.0, share)))

    parts = [f'<text x="{x}" y="{TOP - 16}" font-size="13">{escape(title)}</text>']
    for power in range(low, high + 1):
        y = up(10.0**power)
        parts.append(f'<line x1="{x}" x2="{x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LIGHT}"/>')
        parts.append(f'<text x="{x - 8}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    for number in draws:
        parts.append(f'<text x="{across(number):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{number:.0f}</text>')
    parts.append(f'<text x="{x + WIDTH}" y="{TOP + HEIGHT + 34}" text-anchor="end">draws, N</text>')
    for line in lines:
        parts += _line(line, across, up)
    return parts


def _line(line: Line, across: Callable[[float], float], up: Callable[[float], float]) -> list[str]:
    """A line with its dots and error bars."""
    path = " ".join(f"{across(number):.1f},{up(value):.1f}" for number, value, _ in line.points)
    dash = ' stroke-dasharray="5 4" stroke-width="1.2"' if line.dashed else ' stroke-width="1.8"'
    parts = [f'<polyline points="{path}" fill="none" stroke="{line.colour}"{dash}/>'] if line.points else []
    for number, value, error in line.points if line.dots else ():
        x = across(number)
        if error:
            ends = up(value + error), up(value - error)
            parts.append(f'<path d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}" stroke="{line.colour}" stroke-width="1.2"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{up(value):.1f}" r="3.4" fill="{line.colour}"/>')
    return parts


def _legend(audit: Audit, y: float) -> list[str]:
    """Names of the proposals in their colours."""
    parts, x = [], float(LEFT)
    for colour, name in zip(_colours(audit), audit.proposals, strict=True):
        parts.append(f'<circle cx="{x + 4:.0f}" cy="{y - 4:.0f}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="{y:.0f}" fill="{colour}">{escape(name)}</text>')
        x += 38 + 7.2 * len(name)
    return parts


def _power(power: int) -> str:
    """A power of ten as people write it."""
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"
