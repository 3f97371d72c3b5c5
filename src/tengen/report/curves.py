"""The learning curves of a run, as SVG for notebooks.

Colours follow the reader's colour scheme, light or dark. Each chart has its own
background, so that it is readable on any page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from tengen.config import check
from tengen.games.drawing import FRAGMENT_STYLE, Markup, element, text
from tengen.observe.curves.table import COLUMNS, Row, read_curve
from tengen.observe.roles import has_actors
from tengen.run import RunDirectory

_MOST_ROWS = 12
_Axes: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
# Pairs: the columns for the x axis, in order of preference, and those for y axes.
_OF_ENVIRONMENTS: _Axes = (
    ("frames", "agent_steps"),
    ("return_mean", "length_mean", "loss"),
)
_OF_GAMES: _Axes = (("games", "learner_steps"), ("rating", "loss"))
_WORDS = {
    "frames": "frames",
    "agent_steps": "agent steps",
    "games": "games",
    "learner_steps": "learner steps",
    "return_mean": "return",
    "length_mean": "episode length",
    "rating": "rating (Elo)",
    "loss": "loss",
}


@dataclass(frozen=True)
class Curves:
    """The learning curves of a run, one row per turn of the learner, for notebooks."""

    run: str
    """The run directory."""
    rows: tuple[Row, ...]
    """The rows of ``tengen curves``, suitable for ``pandas.DataFrame(rows)``."""
    in_environments: bool
    """Whether the run steps environments; otherwise it plays games."""

    def charts(self) -> list[Chart]:
        """Returns one chart for each quantity that has values."""
        by, names = _OF_ENVIRONMENTS if self.in_environments else _OF_GAMES
        x = next((name for name in by if self._has(name)), "learner_steps")
        found = (self._chart(x, name) for name in names)
        return [chart for chart in found if chart is not None]

    def __str__(self) -> str:
        names, rows = self._shown_rows()
        lines = [tuple(names), *rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) for cell, width in zip(line, widths, strict=True)
            )
            for line in lines
        )

    def _repr_html_(self) -> str:
        drawn = [
            element("div", chart_svg(chart), style="flex:1 1 20rem;max-width:40rem")
            for chart in self.charts()
        ]
        shown = drawn or [element("pre", text(self))]
        return element("div", *shown, style=FRAGMENT_STYLE)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _has(self, name: str) -> bool:
        return any(row[name] is not None for row in self.rows)

    def _chart(self, x: str, y: str) -> Chart | None:
        known = [
            (a, b, row["rating_error"])
            for row in self.rows
            if _is_finite(a := row[x]) and _is_finite(b := row[y])
        ]
        if not known:
            return None
        errors = tuple(error for _, _, error in known if _is_finite(error))
        has_bars = y == "rating" and len(errors) == len(known)
        return Chart(
            title=f"{_WORDS[y]} by {_WORDS[x]}",
            x_label=_WORDS[x],
            y_label=f"{_WORDS[y]}, bars: 95 %" if has_bars else _WORDS[y],
            xs=tuple(a for a, _, _ in known),
            ys=tuple(b for _, b, _ in known),
            errors=errors if has_bars else (),
        )

    def _shown_rows(self) -> tuple[list[str], list[tuple[str, ...]]]:
        names = [name for name in COLUMNS if self._has(name)]
        last = len(self.rows) - 1
        places = {round(i * last / (_MOST_ROWS - 1)) for i in range(_MOST_ROWS)}
        return names, [
            tuple(_shown(self.rows[place][name]) for name in names)
            for place in sorted(places)
        ]


def curves(run: str | Path) -> Curves:
    """Returns the learning curves of a run, which may still be training.

    Args:
        run: The run directory.

    Raises:
        UsageError: The run does not exist or has not learned yet.
        RunError: ``run.json`` is damaged.
    """
    found = RunDirectory.open(run)
    rows = tuple(read_curve(found))
    check(bool(rows), "run", run, "has learned nothing yet; train it first")
    return Curves(str(found.path), rows, has_actors(found.read_run()))


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _shown(value: float | None) -> str:
    return "" if value is None else shown_number(value)


_WIDTH, _HEIGHT = 480.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 24.0, 30.0, 44.0
_MOST_POINTS = 240
_MOST_DOTS = 40
_NUM_TICKS = 5
# Values beyond this are treated as infinite: their differences may overflow.
_GREATEST = 1e300
_STYLE = (
    ".tengen-chart{width:100%;max-width:640px;height:auto;"
    "font-family:system-ui,sans-serif}"
    "@media (prefers-color-scheme:dark){.tengen-chart{--tengen-ground:#161b22;"
    "--tengen-ink:#e6edf3;--tengen-faint:#3d444d;--tengen-line:#79c0ff}}"
)
# Each colour has the light scheme's as a fallback, in case a page removes styles.
_GROUND = "var(--tengen-ground,#ffffff)"
_INK = "var(--tengen-ink,#1f2328)"
_FAINT = "var(--tengen-faint,#d0d7de)"
_LINE = "var(--tengen-line,#0550ae)"


@dataclass(frozen=True)
class Chart:
    """The points and the labels of one chart."""

    title: str
    """The title of the chart, as a phrase."""
    x_label: str
    """The quantity on the x axis."""
    y_label: str
    """The quantity on the y axis, with its unit."""
    xs: tuple[float, ...]
    """The points' x values, in non-decreasing order; at least one."""
    ys: tuple[float, ...]
    """The points' y values, one per point."""
    errors: tuple[float, ...] = ()
    """Half the length of each point's error bar; empty for no error bars."""


def chart_svg(chart: Chart) -> Markup:
    """Returns a chart as SVG. Points beyond 1e300 or not finite are omitted.

    Raises:
        ValueError: All points are omitted.
    """
    points = _points(chart)
    if not points:
        raise ValueError(f"chart ({chart.title}) has no finite point")
    x_axis = _Axis([x for x, _, _ in points], _LEFT, _WIDTH - _RIGHT)
    ends = [end for _, y, error in points for end in (y - error, y + error)]
    y_axis = _Axis(ends, _HEIGHT - _BOTTOM, _TOP)
    drawn = [(x_axis.at(x), y_axis.at(y)) for x, y, _ in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
    parts = [
        element("polyline", points=line, fill="none", stroke=_LINE, stroke_width=2)
    ]
    if chart.errors:
        bars = "".join(
            f"M{x_axis.at(x):.1f} {y_axis.at(y - error):.1f}V{y_axis.at(y + error):.1f}"
            for x, y, error in points
        )
        parts.append(
            element("path", d=bars, stroke=_LINE, stroke_opacity=0.45, fill="none")
        )
    if len(drawn) <= _MOST_DOTS:
        parts += [element("circle", cx=x, cy=y, r=3, fill=_LINE) for x, y in drawn]
    return element(
        "svg",
        element("title", text(chart.title)),
        element("desc", text(_words(chart, points))),
        element("style", Markup(_STYLE)),
        element("rect", width=_WIDTH, height=_HEIGHT, rx=6, fill=_GROUND),
        *_ticks(x_axis, y_axis),
        *parts,
        _text(_LEFT, _TOP - 12, chart.y_label, "start"),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, chart.x_label, "middle"),
        class_="tengen-chart",
        role="img",
        aria_label=chart.title,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        xmlns="http://www.w3.org/2000/svg",
    )


def shown_number(value: float) -> str:
    """Returns a number as a short string, such as 12.5k, 3M or 0.25."""
    if not math.isfinite(value):
        return str(value)
    for limit, unit, word in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= limit:
            return f"{value / unit:.4g}{word}"
    return f"{value:.4g}"


class _Axis:
    """An axis: maps values to positions. Its range ends at round numbers."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        least, greatest = min(values), max(values)
        if greatest - least <= 1e-12 * max(1.0, abs(least), abs(greatest)):
            half = max(1.0, abs(least)) * 0.5
            least, greatest = least - half, greatest + half
        self._step = _round_step((greatest - least) / _NUM_TICKS)
        self._first = math.floor(least / self._step + 1e-9)
        self._last = math.ceil(greatest / self._step - 1e-9)
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        """Returns the position of ``value`` along the axis in the drawing."""
        share = (value / self._step - self._first) / max(1, self._last - self._first)
        return self._begin + share * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """Returns the values of the ticks, which are round numbers."""
        return [i * self._step for i in range(self._first, self._last + 1)]


def _points(chart: Chart) -> list[tuple[float, float, float]]:
    """Returns finite points as (x, y, error); thins many points to local extremes."""
    errors = chart.errors or (0.0,) * len(chart.xs)
    points = [
        (float(x), float(y), float(error) if abs(error) < _GREATEST else 0.0)
        for x, y, error in zip(chart.xs, chart.ys, errors, strict=True)
        if abs(x) < _GREATEST and abs(y) < _GREATEST
    ]
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-2 * len(points) // _MOST_POINTS)
    parts = (points[i : i + size] for i in range(0, len(points), size))
    return [
        point
        for part in parts
        for point in sorted({min(part, key=_height), max(part, key=_height)})
    ]


def _height(point: tuple[float, float, float]) -> float:
    return point[1]


def _round_step(step: float) -> float:
    """Returns the smallest number 1, 2 or 5 times 10**n that is at least ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= step * (1 - 1e-9))


def _ticks(x_axis: _Axis, y_axis: _Axis) -> list[Markup]:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for value in y_axis.ticks():
        y = y_axis.at(value)
        parts.append(
            element("line", x1=_LEFT, y1=y, x2=_WIDTH - _RIGHT, y2=y, stroke=_FAINT)
        )
        parts.append(_text(_LEFT - 6, y + 4, shown_number(value), "end"))
    for value in x_axis.ticks():
        place = x_axis.at(value)
        parts.append(_text(place, bottom + 19, shown_number(value), "middle"))
    return parts


def _text(x: float, y: float, label: str, anchor: str) -> Markup:
    return element(
        "text", text(label), x=x, y=y, fill=_INK, font_size=13, text_anchor=anchor
    )


def _words(chart: Chart, points: Sequence[tuple[float, float, float]]) -> str:
    (x0, y0, _), (x1, y1, _) = points[0], points[-1]
    best = max(points, key=_height)
    return (
        f"{chart.y_label} by {chart.x_label}: {len(points)} points, from "
        f"{shown_number(y0)} at {shown_number(x0)} to {shown_number(y1)} at "
        f"{shown_number(x1)}; the greatest is {shown_number(best[1])} at "
        f"{shown_number(best[0])}"
    )
