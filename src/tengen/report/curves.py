"""The curves of a run, which draw themselves in a notebook."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from tengen.config import check
from tengen.drawing import (
    FRAGMENT_STYLE,
    Chart,
    Markup,
    chart_svg,
    element,
    shown_number,
    table,
)
from tengen.observe.curves.table import COLUMNS, Row, read_curve
from tengen.observe.roles import has_actors
from tengen.run import RunDirectory

__all__ = ["Curves", "curves"]

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
    """Returns the curves of a run, which may be training.

    Args:
        run: The run directory.

    Raises:
        UsageError: There is no run, or it has not learned yet.
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
