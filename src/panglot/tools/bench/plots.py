"""Plots as SVG: text and shapes only, coloured by the page around them."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 40
INSET = 26
COLOURS = 7


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    """From 0 to 1 across, and a value."""


def lines(series: Sequence[Line], labels: Sequence[tuple[float, str]], unit: str) -> str:
    """Lines over a logarithmic height; `labels` are written below."""
    values = [value for line in series for _, value in line.points if value > 0]
    if not values:
        return nothing()
    height, ticks = _logarithmic(min(values), max(values))
    body = [_across(height(tick), _short(tick)) for tick in ticks]
    body += [_text(_x(position), HEIGHT - BOTTOM + 18, label, "middle") for position, label in labels]
    for number, line in enumerate(series):
        points = [(_x(position), height(value)) for position, value in line.points if value > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        body.append(f'<polyline class="line c{number % COLOURS}" points="{path}"/>')
        for (x, y), (_, value) in zip(points, [point for point in line.points if point[1] > 0], strict=True):
            tip = f"<title>{html.escape(line.name)}: {value:.3g} {html.escape(unit)}</title>"
            body.append(f'<circle class="dot c{number % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{tip}</circle>')
    body.append(_text(4, TOP + 4, unit))
    return _figure(body) + legend([line.name for line in series])


def bars(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], unit: str) -> str:
    """A bar per row, made of its values one after the other."""
    most = max((sum(values) for _, values in rows), default=0.0)
    if most <= 0:
        return nothing()
    step = (HEIGHT - TOP - BOTTOM) / max(len(rows), 3)
    left = 90
    body = []
    for tick in _round_ticks(most):
        x = left + (WIDTH - left - RIGHT) * tick / most
        body.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        body.append(_text(x, HEIGHT - BOTTOM + 18, _short(tick), "middle"))
    for number, (label, values) in enumerate(rows):
        y, x = TOP + step * number + step * 0.15, float(left)
        body.append(_text(left - 8, y + step * 0.35 + 4, label, "end"))
        for colour, (name, value) in enumerate(zip(names, values, strict=True)):
            width = (WIDTH - left - RIGHT) * value / most
            tip = f"<title>{html.escape(name)}: {value:.3g} {html.escape(unit)}</title>"
            shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{step * 0.7:.1f}"'
            body.append(f'<rect class="fill c{colour % COLOURS}" {shape}>{tip}</rect>')
            x += width
    body.append(_text(WIDTH - RIGHT, HEIGHT - 6, unit, "end"))
    return _figure(body) + legend(names)


def groups(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], unit: str) -> str:
    """Bars side by side for every label, one per series, in per cent."""
    if not labels or not series:
        return nothing()
    step = (WIDTH - LEFT - RIGHT) / len(labels)
    space = HEIGHT - TOP - BOTTOM
    body = [_across(TOP + space * (1 - share / 100), f"{share} %") for share in (0, 25, 50, 75, 100)]
    width = step * 0.8 / len(series)
    for position, label in enumerate(labels):
        body.append(_text(LEFT + step * (position + 0.5), HEIGHT - BOTTOM + 18, label, "middle"))
        for number, (name, shares) in enumerate(series):
            tall = space * shares[position] / 100
            x, y = LEFT + step * position + step * 0.1 + width * number, TOP + space - tall
            tip = f"<title>{html.escape(name)}: {shares[position]:.1f} %</title>"
            shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(1.0, width - 1):.1f}" height="{tall:.1f}"'
            body.append(f'<rect class="fill c{number % COLOURS}" {shape}>{tip}</rect>')
    body.append(_text(WIDTH - RIGHT, HEIGHT - 6, unit, "end"))
    return _figure(body) + legend([name for name, _ in series])


def nothing() -> str:
    return '<p class="none">The server reports nothing about this.</p>'


def legend(names: Sequence[str]) -> str:
    entries = "".join(
        f'<li><span class="key c{number % COLOURS}"></span>{html.escape(name)}</li>'
        for number, name in enumerate(names)
    )
    return f'<ul class="legend">{entries}</ul>'


# Shapes


def _figure(body: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(body)}</svg>'


def _x(position: float) -> float:
    return LEFT + INSET + (WIDTH - LEFT - RIGHT - 2 * INSET) * position


def _across(y: float, label: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + _text(LEFT - 8, y + 4, label, "end")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _logarithmic(least: float, most: float) -> tuple[Callable[[float], float], list[float]]:
    """The height of a value, as a function, and the marks within sight: 1, 2 and 5 of every power of ten."""
    low, high = math.log10(least) - 0.08, math.log10(most) + 0.08
    # Values that are nearly equal would fill the whole height with noise.
    if high - low < 0.6:
        middle = (low + high) / 2
        low, high = middle - 0.3, middle + 0.3

    def height(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(value)) / (high - low)

    powers = range(math.floor(low), math.ceil(high) + 1)
    firsts: tuple[int, ...] = (1,) if high - low > 3 else (1, 2, 5)
    ticks = [first * 10.0**power for power in powers for first in firsts]
    return height, [tick for tick in ticks if low <= math.log10(tick) <= high]


def _round_ticks(most: float) -> list[float]:
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(int(most / step) + 1)]


def _short(value: float) -> str:
    return f"{value:g}" if value < 10000 else f"{value:.0f}"
