"""The curves of a run, which draw themselves in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tengen.config import check
from tengen.drawing import (
    FRAGMENT_STYLE,
    Chart,
    Markup,
    Series,
    chart_svg,
    element,
    shown_number,
    table,
)
from tengen.observe.curve_table import COLUMNS, Row, read_curve
from tengen.observe.points import has_actors
from tengen.run import RunDirectory

__all__ = ["Curves", "curves", "read_curves"]

_MOST_ROWS = 12
_Axes: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
# What is counted, of which the first that is known, and what is drawn over it.
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
    """What a run learned, turn by turn. A notebook shows the curves of it."""

    run: str
    """The run directory."""
    rows: tuple[Row, ...]
    """As ``tengen curves`` writes them; ``pandas.DataFrame(rows)`` is their table."""
    in_environments: bool
    """Whether it steps environments; else it plays games."""

    def charts(self) -> list[Chart]:
        """Returns a chart of each number of which something is known."""
        by, names = _OF_ENVIRONMENTS if self.in_environments else _OF_GAMES
        x = next((name for name in by if self._has(name)), "learner_steps")
        found = (self._chart(x, name) for name in names)
        return [chart for chart in found if chart is not None]

    def table(self) -> Markup:
        """Returns some of the rows, evenly, and what they know."""
        names, rows = self._shown_rows()
        caption = f"{len(rows)} of {len(self.rows)} turns of learning"
        return table(caption, [name.replace("_", " ") for name in names], rows)

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
        return element("div", *drawn, style=FRAGMENT_STYLE) if drawn else self.table()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _has(self, name: str) -> bool:
        return any(row[name] is not None for row in self.rows)

    def _chart(self, x: str, y: str) -> Chart | None:
        known = [row for row in self.rows if None not in (row[x], row[y])]
        points = _points(known, x, y)
        if not points:
            return None
        errors: tuple[float, ...] = ()
        if y == "rating" and all(row["rating_error"] is not None for row in known):
            errors = tuple(error for _, error in _points(known, x, "rating_error"))
        return Chart(
            f"{_WORDS[y]} by {_WORDS[x]}",
            _WORDS[x],
            _WORDS[y],
            Series(tuple(a for a, _ in points), tuple(b for _, b in points), errors),
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
    """Returns the curves of a run, which may be training.

    Args:
        run: The run directory.

    Raises:
        UsageError: There is no run, or it has not learned yet.
        RunError: ``run.json`` is damaged.
    """
    found = read_curves(RunDirectory.open(run))
    check(bool(found.rows), "run", run, "has learned nothing yet; train it first")
    return found


def read_curves(run: RunDirectory) -> Curves:
    """Returns the curves of an open run, perhaps without a row; see ``curves``."""
    rows = tuple(read_curve(run))
    return Curves(str(run.path), rows, has_actors(run.read_run()))


def _points(rows: Sequence[Row], x: str, y: str) -> list[tuple[float, float]]:
    pairs = ((row[x], row[y]) for row in rows)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _shown(value: float | None) -> str:
    return "" if value is None else shown_number(value)
