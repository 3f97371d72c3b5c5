"""Curves as SVG: axes with round numbers, lines, and bars for what is uncertain.

A curve of many points is drawn as means of equal parts of its x axis, in a band from
the least to the greatest. Colours follow the scheme of whoever looks, light or dark,
and the drawing has a ground of its own: it can be read on any page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.drawing.markup import Markup, element, fragment, text

__all__ = ["Chart", "Series", "chart_svg", "shown_number"]

_WIDTH, _HEIGHT = 480.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 24.0, 30.0, 44.0
_MOST_POINTS = 240
_NUM_TICKS = 5
# Values beyond count as infinite: their differences may be.
_GREATEST = 1e300
_STYLE = (
    ".tengen-chart{width:100%;max-width:640px;height:auto;"
    "font-family:system-ui,sans-serif}"
    "@media (prefers-color-scheme:dark){.tengen-chart{--tengen-ground:#161b22;"
    "--tengen-ink:#e6edf3;--tengen-faint:#3d444d;--tengen-line:#79c0ff}}"
)
# The light scheme, also where a page takes styles out.
_GROUND = "var(--tengen-ground,#ffffff)"
_INK = "var(--tengen-ink,#1f2328)"
_FAINT = "var(--tengen-faint,#d0d7de)"
_LINE = "var(--tengen-line,#0550ae)"


@dataclass(frozen=True)
class Series:
    """One curve."""

    xs: tuple[float, ...]
    """Places, never decreasing."""
    ys: tuple[float, ...]
    """Values, as many."""
    errors: tuple[float, ...] = ()
    """Half the length of each bar, as many; empty for none."""


@dataclass(frozen=True)
class Chart:
    """A curve and its axes."""

    title: str
    """What is drawn, a phrase."""
    x_label: str
    """What is counted along x."""
    y_label: str
    """What the values are, with their unit."""
    series: Series
    """At least one point."""


def chart_svg(chart: Chart) -> Markup:
    """Returns a chart; points that are not finite, or beyond 1e300, are left out.

    Raises:
        ValueError: No point is finite.
    """
    xs, ys, errors = _finite(chart.series)
    if not xs:
        raise ValueError(f"chart ({chart.title}) has no finite point")
    bars = bool(errors)
    low = [y - e for y, e in zip(ys, errors, strict=True)] if bars else ys
    high = [y + e for y, e in zip(ys, errors, strict=True)] if bars else ys
    if len(xs) > _MOST_POINTS:
        xs, ys, low, high = _binned(xs, ys, low, high)
        bars = False
    x_axis = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    y_axis = _Axis(min(low), max(high), _HEIGHT - _BOTTOM, _TOP)
    points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(xs, ys, strict=True)]
    spread = [
        (x_axis.at(x), y_axis.at(a), y_axis.at(b))
        for x, a, b in zip(xs, low, high, strict=True)
    ]
    parts = [_ticks(x_axis, y_axis)]
    if bars:
        path = "".join(f"M{x:.1f} {a:.1f}V{b:.1f}" for x, a, b in spread)
        parts.append(
            element("path", d=path, stroke=_LINE, stroke_opacity=0.45, fill="none")
        )
    elif low is not ys:
        there = " ".join(f"{x:.1f},{b:.1f}" for x, _, b in spread)
        back = " ".join(f"{x:.1f},{a:.1f}" for x, a, _ in reversed(spread))
        parts.append(
            element(
                "polygon",
                points=f"{there} {back}",
                fill=_LINE,
                fill_opacity=0.2,
            )
        )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(
        element("polyline", points=line, fill="none", stroke=_LINE, stroke_width=2)
    )
    if len(points) <= _MOST_POINTS // 6:
        parts += [element("circle", cx=x, cy=y, r=3, fill=_LINE) for x, y in points]
    return element(
        "svg",
        element("title", text(chart.title)),
        element("desc", text(_words(chart))),
        element("style", Markup(_STYLE)),
        element("rect", width=_WIDTH, height=_HEIGHT, rx=6, fill=_GROUND),
        *parts,
        _text(_LEFT, _TOP - 12, chart.y_label, "start"),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, chart.x_label, "middle"),
        class_="tengen-chart",
        role="img",
        aria_label=chart.title,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        xmlns="http://www.w3.org/2000/svg",
    )


class _Axis:
    """Places of values between two ends, widened to round numbers."""

    def __init__(self, least: float, greatest: float, begin: float, end: float) -> None:
        if greatest - least <= 1e-12 * max(1.0, abs(least), abs(greatest)):
            half = max(1.0, abs(least)) * 0.5
            least, greatest = least - half, greatest + half
        self.step = _round_step((greatest - least) / _NUM_TICKS)
        self.first = math.floor(least / self.step + 1e-9)
        self.last = math.ceil(greatest / self.step - 1e-9)
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        """Returns where a value is drawn."""
        share = (value / self.step - self.first) / max(1, self.last - self.first)
        return self._begin + share * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """Returns the round numbers."""
        return [i * self.step for i in range(self.first, self.last + 1)]


def shown_number(value: float) -> str:
    """Returns a number in at most seven characters or so: 12.5k, 3M, 0.25."""
    if not math.isfinite(value):
        return str(value)
    for limit, word in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            unit = 1e3 if word == "k" else limit
            return f"{value / unit:.4g}{word}"
    return f"{value:.4g}"


def _finite(series: Series) -> tuple[list[float], list[float], list[float]]:
    errors = series.errors or (0.0,) * len(series.xs)
    kept = [
        (float(x), float(y), float(e) if abs(e) < _GREATEST else 0.0)
        for x, y, e in zip(series.xs, series.ys, errors, strict=True)
        if abs(x) < _GREATEST and abs(y) < _GREATEST
    ]
    xs, ys = [x for x, _, _ in kept], [y for _, y, _ in kept]
    return xs, ys, [e for _, _, e in kept] if series.errors else []


def _binned(
    xs: Sequence[float],
    ys: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Returns means of x and y, least and greatest, of parts of equal width."""
    first, width = xs[0], max(1e-300, (xs[-1] - xs[0]) / _MOST_POINTS)
    parts: dict[int, list[int]] = {}
    for i, x in enumerate(xs):
        parts.setdefault(min(_MOST_POINTS - 1, int((x - first) / width)), []).append(i)
    groups = list(parts.values())
    return (
        [sum(xs[i] for i in group) / len(group) for group in groups],
        [sum(ys[i] for i in group) / len(group) for group in groups],
        [min(low[i] for i in group) for group in groups],
        [max(high[i] for i in group) for group in groups],
    )


def _round_step(step: float) -> float:
    """Returns 1, 2 or 5 times a power of ten, no less than ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= step * (1 - 1e-9))


def _ticks(x_axis: _Axis, y_axis: _Axis) -> Markup:
    parts = []
    for value in y_axis.ticks():
        y = y_axis.at(value)
        parts.append(_rule(_LEFT, y, _WIDTH - _RIGHT, y))
        parts.append(_text(_LEFT - 6, y + 4, shown_number(value), "end"))
    for value in x_axis.ticks():
        x = x_axis.at(value)
        parts.append(_rule(x, _HEIGHT - _BOTTOM, x, _HEIGHT - _BOTTOM + 5))
        parts.append(_text(x, _HEIGHT - _BOTTOM + 19, shown_number(value), "middle"))
    return fragment(parts)


def _rule(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=_FAINT)


def _text(x: float, y: float, label: str, anchor: str) -> Markup:
    return element(
        "text",
        text(label),
        x=x,
        y=y,
        fill=_INK,
        font_size=13,
        text_anchor=anchor,
    )


def _words(chart: Chart) -> str:
    xs, ys, _ = _finite(chart.series)
    best = max(range(len(ys)), key=lambda i: ys[i])
    return (
        f"{chart.y_label} by {chart.x_label}: {len(xs)} points, from "
        f"{shown_number(ys[0])} at {shown_number(xs[0])} to {shown_number(ys[-1])} at "
        f"{shown_number(xs[-1])}; the greatest is {shown_number(ys[best])} at "
        f"{shown_number(xs[best])}"
    )
