"""A run's learning curve as a table, from its event files alone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tengen.observe.curves.points import ActorMeans, has_actors, is_number
from tengen.observe.events import read_events
from tengen.run import RunDirectory

__all__ = ["COLUMNS", "Row", "is_of_learner", "read_curve", "to_csv"]

COLUMNS = (
    "learner_steps",
    "agent_steps",
    "frames",
    "seconds",
    "cpu_seconds",
    "episodes",
    "return_mean",
    "length_mean",
    "games",
    "rating",
    "rating_error",
    "loss",
)
"""In the order of the file; ``docs/howto/play/seeing.md`` says what each is."""

Row: TypeAlias = dict[str, float | None]
"""A value for each of ``COLUMNS``; None where it is not known."""

_REACHED = {"return_mean": "mean_return", "length_mean": "mean_length"}
# Event files with the run's turns of learning.
_LEARNER = re.compile(r"(train|learn-command)-[0-9]+\.jsonl")


def is_of_learner(name: str) -> bool:
    """Returns whether an event file has the run's turns of learning."""
    return _LEARNER.fullmatch(name) is not None


def read_curve(run: RunDirectory) -> list[Row]:
    """Returns a row for each reported turn of learning, in order.

    Seconds continue from call to call, and include time whose work a kill lost. Rows
    that a call wrote after the checkpoint from which the next call resumed are left
    out. The writers' clocks decide the order between files.

    Args:
        run: The run; it may be training.

    Raises:
        UsageError: ``run.json`` is of a newer schema.
        RunError: It is damaged.
    """
    table = _Table(in_environments=has_actors(run.read_run()))
    told: list[tuple[float, str, dict[str, Any]]] = []
    for path in sorted(run.events.glob("*.jsonl")):
        is_learner = is_of_learner(path.name)
        for event in read_events(path):
            if is_learner or event["kind"] == "turn":
                told.append((float(event["time_s"]), path.name, event))
    for time_s, name, event in sorted(told, key=lambda each: each[0]):
        if is_of_learner(name):
            table.begin_or_go_on(name, time_s, event)
        table.take(time_s, event)
    _fill_between(table.rows, "cpu_seconds")
    return table.rows


def to_csv(rows: Sequence[Row]) -> str:
    """Returns the rows as CSV with a header; unknown values are empty."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: "" if value is None else _shown(value) for name, value in row.items()}
        for row in rows
    )
    return file.getvalue()


class _Table:
    """Takes events by time, all of them once."""

    def __init__(self, *, in_environments: bool) -> None:
        self.rows: list[Row] = []
        self._by = "agent_steps" if in_environments else "learner_steps"
        self._in_environments = in_environments
        self._call = ""
        self._is_first = False
        # Unix seconds at which the clock of the run would have been 0.
        self._zero_s = 0.0
        self._last_s = 0.0
        # CPU-seconds of earlier calls and of this one, and whether all calls have
        # reported them.
        self._cpu_before_s = 0.0
        self._cpu_s: float | None = None
        self._has_cpu = True
        self._frames_per_step: float | None = None
        self._played: dict[str, float | None] = {}
        self._means = ActorMeans()

    def begin_or_go_on(
        self, call: str, time_s: float, event: Mapping[str, Any]
    ) -> None:
        """Notes that an event is of a call, which may be a new one."""
        if call != self._call:
            spent_s = self._last_s - self._zero_s
            begun_s = time_s - _number(event, "turn_s", 0.0)
            self._call, self._is_first = call, True
            self._zero_s = begun_s - spent_s
            # If a call did not report them, later sums are unknown.
            self._has_cpu &= spent_s == 0.0 or self._cpu_s is not None
            self._cpu_before_s += self._cpu_s or 0.0
            self._cpu_s = None
            self._played, self._means = {}, ActorMeans()
        self._last_s = time_s

    def take(self, time_s: float, event: Mapping[str, Any]) -> None:
        """Takes an event of any file."""
        role = event.get("role")
        if event["kind"] == "progress":
            if is_number(event.get("cpu_s")) and self._has_cpu:
                self._cpu_s = float(event["cpu_s"])
                self._set(cpu_seconds=self._cpu_before_s + self._cpu_s)
        elif event["kind"] == "death":
            # The learner resumes from its last checkpoint, as in a new call.
            self._is_first = True
        elif event["kind"] != "turn":
            return
        elif role == "actor":
            if is_number(event.get("frames_per_step")):
                self._frames_per_step = float(event["frames_per_step"])
            means = self._means.take(event)
            for column, name in _REACHED.items():
                if name in means:
                    self._played[column] = means[name]
        elif role == "rate" and is_number(event.get("rating")):
            error = event.get("rating_error")
            self._set(rating=event["rating"])
            self._set(rating_error=error if is_number(error) else None)
        elif role == "learn":
            self._after_learning(time_s, event)

    def _after_learning(self, time_s: float, event: Mapping[str, Any]) -> None:
        told = event.get("table")
        counts = told if isinstance(told, dict) else {}
        row: Row = dict.fromkeys(COLUMNS)
        row["seconds"] = round(time_s - self._zero_s, 3)
        row["learner_steps"] = _number(event, "total_steps")
        row["agent_steps"] = _number(counts, "num_rows")
        row["games"] = _number(counts, "num_games")
        row["episodes"] = _number(counts, "num_episodes")
        if self._in_environments and row["agent_steps"] is not None:
            row["games"] = None
            if self._frames_per_step is not None:
                row["frames"] = row["agent_steps"] * self._frames_per_step
        if event.get("num_steps"):
            row["loss"] = _number(event, "loss")
        row.update(self._played)
        at = row[self._by]
        if at is None:
            return
        if self._is_first:
            # After a kill, steps since the last checkpoint are made anew.
            self.rows = [each for each in self.rows if (each[self._by] or 0) < at]
            self._is_first = False
        self.rows.append(row)

    def _set(self, **values: float | None) -> None:
        if self.rows and not self._is_first:
            self.rows[-1].update(values)


def _fill_between(rows: Sequence[Row], name: str) -> None:
    """Fills values that only some rows have, by interpolation over the seconds."""
    before_s, before, first = 0.0, 0.0, 0
    for i, row in enumerate(rows):
        value, at_s = row[name], row["seconds"] or 0.0
        if value is None:
            continue
        for each in rows[first:i]:
            share = ((each["seconds"] or 0.0) - before_s) / max(1e-9, at_s - before_s)
            each[name] = round(before + share * (value - before), 3)
        before_s, before, first = at_s, value, i + 1


def _number(values: Mapping[str, Any], name: str, absent: Any = None) -> Any:
    value = values.get(name)
    return value if is_number(value) else absent


def _shown(value: float) -> str:
    """Returns a number as Python reads it back; whole ones without a point."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
