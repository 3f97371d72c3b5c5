"""A run's learning curve as a table, computed only from the run's event files."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tengen.config import check
from tengen.observe.curves.points import Point
from tengen.observe.events import EventFiles
from tengen.observe.progress_line import ProgressLine
from tengen.observe.roles import is_number
from tengen.observe.run_view import RunView, is_of_learner
from tengen.run import RunDirectory, check_new_file, publish_file

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
"""The columns in the order of the file; ``docs/howto/play/seeing.md`` explains them."""

Row: TypeAlias = dict[str, float | None]
"""A value for each of ``COLUMNS``; None if it is unknown."""

_OF_POINT = {
    "episodes": "charts/episodes",
    "games": "charts/games",
    "rating": "charts/rating",
    "rating_error": "charts/rating_error",
}
# A mean applies to all rows until the next mean is reported.
_LASTING = {
    "return_mean": "charts/episodic_return",
    "length_mean": "charts/episodic_length",
}


def read_curve(run: RunDirectory) -> list[Row]:
    """Returns one row per reported turn of the learner, in order.

    Seconds accumulate over calls, including time whose work a kill lost. Omits rows
    from after the checkpoint from which a later call resumed. The writers' clocks
    determine the order of events from different files.

    Args:
        run: The run, which may be training.

    Raises:
        UsageError: ``run.json`` has a newer schema.
        RunError: ``run.json`` is damaged.
    """
    view = RunView(run)
    table = _Table(in_environments=view.in_environments)
    for name, event in EventFiles(run).new_events():
        if is_of_learner(name):
            table.take_event(name, event)
        point = view.take(event, name)
        if point is not None:
            table.take_point(point)
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
    """Builds the table's rows from points and events of all calls in order of time."""

    def __init__(self, *, in_environments: bool) -> None:
        self.rows: list[Row] = []
        self._in_environments = in_environments
        self._by = "agent_steps" if in_environments else "learner_steps"
        self._call = ""
        # Unix time that corresponds to 0 in the column ``seconds``.
        self._zero_s = 0.0
        self._last_s = 0.0
        # CPU-seconds of earlier calls and of the current call, and whether all calls
        # have reported their CPU-seconds.
        self._cpu_before_s = 0.0
        self._cpu_s: float | None = None
        self._has_cpu = True
        self._frames_per_step: float | None = None
        self._lasting: Row = {}
        # Whether the last row is from the current call, with no process's death since.
        self._is_current = False

    def take_event(self, call: str, event: Mapping[str, Any]) -> None:
        """Processes an event from ``call``, the learner's event file for one call."""
        time_s = float(event["time_s"])
        if call != self._call:
            spent_s, turn_s = self._last_s - self._zero_s, event.get("turn_s")
            begun_s = time_s - (turn_s if is_number(turn_s) else 0.0)
            self._call, self._is_current = call, False
            self._zero_s = begun_s - spent_s
            # If a call did not report its CPU-seconds, later totals are unknown.
            self._has_cpu &= spent_s == 0.0 or self._cpu_s is not None
            self._cpu_before_s += self._cpu_s or 0.0
            self._cpu_s = None
            self._lasting = {}
        self._last_s = time_s
        if event["kind"] == "death":
            self._is_current = False
        if event["kind"] == "progress" and self._has_cpu:
            cpu_s = event.get("cpu_s")
            if is_number(cpu_s):
                self._cpu_s = float(cpu_s)
                if self._is_current:
                    self.rows[-1]["cpu_seconds"] = self._cpu_before_s + self._cpu_s

    def take_point(self, point: Point) -> None:
        """Processes a point from a turn of the learner, or from a rating after it."""
        told: Row = {
            column: point.values[tag]
            for column, tag in _OF_POINT.items()
            if tag in point.values
        }
        if self._in_environments:
            told.pop("games", None)
        if not point.is_learned:
            if self._is_current:
                self.rows[-1].update(told)
            return
        self._lasting |= {
            column: point.values[tag]
            for column, tag in _LASTING.items()
            if tag in point.values
        }
        row: Row = {**dict.fromkeys(COLUMNS), **told, **self._lasting}
        row["learner_steps"] = point.learner_steps
        row["seconds"] = round(point.time_s - self._zero_s, 3)
        row["loss"] = point.values.get(
            "losses/loss", point.values.get("losses/td_loss")
        )
        if self._in_environments:
            self._frames_per_step = point.frames_per_step or self._frames_per_step
            row["agent_steps"] = point.step
            if self._frames_per_step is not None:
                row["frames"] = point.step * self._frames_per_step
        else:
            row["agent_steps"] = point.values.get("charts/rows")
        if point.restarts:
            # After a kill, the learner repeats the steps since the last checkpoint.
            self.rows = [
                each for each in self.rows if (each[self._by] or 0) < point.step
            ]
        self.rows.append(row)
        self._is_current = True


def _fill_between(rows: Sequence[Row], name: str) -> None:
    """Fills missing values of a column by linear interpolation over ``seconds``."""
    before_s, before, first = 0.0, 0.0, 0
    for i, row in enumerate(rows):
        value, at_s = row[name], row["seconds"] or 0.0
        if value is None:
            continue
        for each in rows[first:i]:
            share = ((each["seconds"] or 0.0) - before_s) / max(1e-9, at_s - before_s)
            each[name] = round(before + share * (value - before), 3)
        before_s, before, first = at_s, value, i + 1


def _shown(value: float) -> str:
    """Returns a number as text, without a decimal point if it is an integer."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen curves``."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    parser.add_argument("csv", metavar="CSV", help="the file to write")


def curves(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the curve; returns ``run``, ``csv``, ``num_rows`` and the ``last`` row.

    Raises:
        UsageError: The run does not exist or has not learned yet, or the folder of the
            file does not exist.
        RunError: ``run.json`` is damaged, or the file cannot be written.
    """
    run, path = RunDirectory.open(args.run), Path(args.csv)
    check_new_file("csv", path)
    with ProgressLine("reading the run's events"):
        rows = read_curve(run)
    check(bool(rows), "run", run.path, "has learned nothing yet; train it first")
    publish_file(path, to_csv(rows).encode())
    if not args.json:
        print(f"{path}: {len(rows)} rows, {rows[-1]['seconds']:,.0f} s of training")
    return {
        "run": str(run.path),
        "csv": str(path),
        "num_rows": len(rows),
        "last": rows[-1],
    }
