"""The curves of a run so far, and the latest events that pages show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.observe.curves.points import Point, PointMaker, has_actors, is_number
from tengen.observe.curves.table import is_of_learner
from tengen.observe.event_tail import EventFiles
from tengen.run import RunDirectory

__all__ = ["Curve", "History"]

# Most points of one curve; when it is full, every other point is dropped.
_MAX_POINTS = 4096
_SHOWN_POINTS = 400
_KEPT_NEW = 512
_DIGITS = 6


class Curve:
    """The values of one tag: steps and seconds increase."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times_s: list[float] = []
        self.values: list[float] = []

    def add(self, step: int, time_s: float, value: float) -> None:
        """Appends a value; a full curve drops every other point."""
        self.steps.append(step)
        self.times_s.append(time_s)
        self.values.append(value)
        if len(self.steps) >= _MAX_POINTS:
            self._keep(slice(len(self.steps) % 2, None, 2))

    def cut(self, step: int) -> None:
        """Removes the points at and after a step."""
        count = sum(each < step for each in self.steps)
        self._keep(slice(0, count))

    def shown(self, num_points: int = _SHOWN_POINTS) -> dict[str, list[float]]:
        """Returns so many points at most, the last one included, as JSON values."""
        stride = max(1, -(-len(self.steps) // num_points))
        kept = slice((len(self.steps) - 1) % stride if self.steps else 0, None, stride)
        return {
            "step": [float(step) for step in self.steps[kept]],
            "time_s": [round(time_s, 1) for time_s in self.times_s[kept]],
            "value": [rounded(value) for value in self.values[kept]],
        }

    def _keep(self, kept: slice) -> None:
        self.steps = self.steps[kept]
        self.times_s = self.times_s[kept]
        self.values = self.values[kept]


class History:
    """Reads the event files of one run, each byte once. Used by one thread at a time.

    A call that resumes from a checkpoint repeats steps that a kill undid: points from
    the step of the call's first point on are removed.

    Args:
        run: The run.

    Attributes:
        in_environments: Whether the run steps environments; else it plays games.
        curves: The curves by tag, as in TensorBoard.
        epoch: A number that changes whenever points were removed.
        num_points: Points that were added in this epoch.
        last: The newest event of a kind, and of a turn of a role as ``turn/ROLE``.

    Raises:
        UsageError: ``run.json`` is of a newer schema.
        RunError: It is damaged.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._files = EventFiles(run)
        self.in_environments = has_actors(run.read_run())
        self._maker = PointMaker(in_environments=self.in_environments)
        self._call = ""
        self._is_first = False
        self.curves: dict[str, Curve] = {}
        self.epoch = 0
        self.num_points = 0
        self.last: dict[str, dict[str, Any]] = {}
        self._new: list[dict[str, Any]] = []

    def read(self) -> None:
        """Takes what was appended since the last call."""
        for name, event in self._files.new_events():
            self._note(event)
            if is_of_learner(name) and name != self._call:
                self._call, self._is_first = name, True
                self._maker = PointMaker(in_environments=self.in_environments)
            try:
                point = self._maker.take(event)
            # An agent of one's own may report anything, as 10 ** 400.
            except (TypeError, ValueError, ArithmeticError, LookupError):
                continue
            if point is not None:
                self._add(point)

    def since(self, num_points: int) -> list[dict[str, Any]] | None:
        """Returns the points after the first ``num_points``; None if too many."""
        first = self.num_points - len(self._new)
        if num_points < first:
            return None
        return self._new[num_points - first :]

    def _note(self, event: dict[str, Any]) -> None:
        kind = str(event["kind"])
        if kind == "turn":
            kind = f"turn/{event.get('role')}"
        self.last[kind] = event

    def _add(self, point: Point) -> None:
        if self._is_first:
            self._is_first = False
            if any(c.steps and c.steps[-1] >= point.step for c in self.curves.values()):
                for curve in self.curves.values():
                    curve.cut(point.step)
                self.epoch += 1
                self.num_points = 0
                self._new = []
        values = {t: float(v) for t, v in point.values.items() if _is_finite(v)}
        for tag, value in values.items():
            curve = self.curves.setdefault(tag, Curve())
            curve.add(point.step, point.time_s, value)
        self.num_points += 1
        shown = {tag: rounded(value) for tag, value in values.items()}
        self._new.append({"step": point.step, "time_s": point.time_s, "values": shown})
        del self._new[:-_KEPT_NEW]


def rounded(value: float) -> float:
    """Returns a number rounded to the digits that a picture can show."""
    return float(f"{value:.{_DIGITS}g}")


def shown_curves(curves: Mapping[str, Curve]) -> dict[str, Any]:
    """Returns curves as JSON values; those with the same steps share them.

    Keys: ``axes``, a list of ``step`` and ``time_s``, and ``curves``, by tag ``axis``
    and ``value``.
    """
    axes: list[dict[str, list[float]]] = []
    places: dict[tuple[float, ...], int] = {}
    found: dict[str, Any] = {}
    for tag, curve in sorted(curves.items()):
        shown = curve.shown()
        value = shown.pop("value")
        key = (*shown["step"], *shown["time_s"])
        if key not in places:
            places[key] = len(axes)
            axes.append(shown)
        found[tag] = {"axis": places[key], "value": value}
    return {"axes": axes, "curves": found}


def _is_finite(value: Any) -> bool:
    return is_number(value) and abs(value) < 1e300 and value == value
