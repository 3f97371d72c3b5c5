"""The state of a run for displays, computed from its events in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from tengen.errors import UsageError
from tengen.observe.curves.points import Point, PointMaker
from tengen.observe.events import EventFiles
from tengen.observe.hosts import HOSTS, Hosts
from tengen.observe.progress import Progress
from tengen.observe.roles import RoleProcesses, has_actors
from tengen.run import RunDirectory

# Maximum number of points of a curve. A full curve drops every other point.
_MAX_POINTS = 4096
# Maximum number of curves, because a custom agent may report new metrics every turn.
_MAX_CURVES = 1000
_SHOWN_POINTS = 400
_DIGITS = 6
_WRITERS_OF_LEARNING = ("train", "learn-command")
_GATE = ("candidate", "accepted", "summary")


class Curve:
    """The values of one tag, in order of step and time."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times_s: list[float] = []
        self.values: list[float] = []

    def add(self, step: int, time_s: float, value: float) -> None:
        """Appends a value; if the curve is full, drops every other point."""
        self.steps.append(step)
        self.times_s.append(time_s)
        self.values.append(value)
        if len(self.steps) >= _MAX_POINTS:
            self._keep(slice(len(self.steps) % 2, None, 2))

    def cut(self, step: int) -> None:
        """Removes all points at ``step`` or later."""
        self._keep(slice(0, sum(each < step for each in self.steps)))

    def shown(self, num_points: int = _SHOWN_POINTS) -> dict[str, list[float]]:
        """Returns at most ``num_points`` points, including the last, as JSON values."""
        stride = max(1, -(-len(self.steps) // num_points))
        kept = slice((len(self.steps) - 1) % stride if self.steps else 0, None, stride)
        return {
            "step": [float(step) for step in self.steps[kept]],
            "time_s": [round(time_s, 1) for time_s in self.times_s[kept]],
            "value": [_rounded(value) for value in self.values[kept]],
        }

    def _keep(self, kept: slice) -> None:
        self.steps = self.steps[kept]
        self.times_s = self.times_s[kept]
        self.values = self.values[kept]


class RunView:
    """Accumulates a run's events in bounded memory. Used by one thread at a time.

    A call that resumes after a kill repeats some steps, so its first point removes all
    points from the same step on. Malformed events are ignored.

    Args:
        run: The run.

    Attributes:
        run: The run.
        in_environments: Whether the run steps environments; otherwise it plays games.
        progress: The last reported progress; None before the first report.
        gate: ``candidate``, ``accepted`` (None while undecided) and ``summary`` of the
            gate's last match; None without a match.
        hosts: Hosts of the newest call with several hosts; None without one.
        processes: All standalone role processes so far.
        curves: The curves by TensorBoard tag.
        version: A counter that increases when points are added or removed.
        told_s: Time of the newest event, UNIX seconds; None before the first event.
        learned: The event of the learner's last turn; empty before the first turn.
        store: The last event of a standalone store process; None without one.

    Raises:
        UsageError: ``run.json`` has a newer schema.
        RunError: ``run.json`` is damaged.
    """

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.in_environments = has_actors(run.read_run())
        self.progress: Progress | None = None
        self.gate: dict[str, Any] | None = None
        self.hosts: Hosts | None = None
        self.processes = RoleProcesses()
        self.curves: dict[str, Curve] = {}
        self.version = 0
        self.told_s: float | None = None
        self.learned: Mapping[str, Any] = {}
        self.store: Mapping[str, Any] | None = None
        self._files = EventFiles(run)
        self._hosts_file = ""
        self._call = ""
        self._maker = PointMaker(in_environments=self.in_environments)

    def read(self) -> RunView:
        """Processes the events appended to the run's files since the last call."""
        for name, event in self._files.new_events():
            self.take(event, name)
        return self

    def take(self, event: Mapping[str, Any], file: str = "") -> Point | None:
        """Processes the next event; returns the point that it completes, if any.

        Args:
            event: The event, as ``EventWriter`` writes it.
            file: Name of the event file, which identifies the process that wrote it.
        """
        kind = event["kind"]
        kind = f"turn/{event.get('role')}" if kind == "turn" else kind
        time_s = float(event["time_s"])
        self.told_s = time_s if self.told_s is None else max(time_s, self.told_s)
        with _forgiving():
            if file.startswith(f"{HOSTS}-"):
                self._take_hosts(event, file)
            elif "-command-" in file:
                self.processes.take(event, file)
        if kind == "progress":
            with _forgiving():
                self.progress = Progress.from_dict(event)
        elif kind in ("gate", "turn/gate"):
            is_match = isinstance(event.get("candidate"), int)
            if is_match and isinstance(event.get("summary"), str):
                self.gate = {name: event.get(name) for name in _GATE}
        elif kind == "turn/learn":
            self.learned = event
        elif kind == "store":
            self.store = event
        if is_of_learner(file) and file != self._call:
            self._call = file
            self._maker = PointMaker(in_environments=self.in_environments)
        point = None
        with _forgiving():
            point = self._maker.take(event)
        if point is not None:
            self._add(point)
        return point

    def shown_curves(self) -> dict[str, dict[str, list[float]]]:
        """Returns each curve's points for display, by tag; see ``Curve.shown``."""
        return {tag: curve.shown() for tag, curve in sorted(self.curves.items())}

    def _take_hosts(self, event: Mapping[str, Any], file: str) -> None:
        if event["kind"] == "placed":
            self._hosts_file = file
        if file == self._hosts_file:
            self.hosts = Hosts.after(self.hosts, event)

    def _add(self, point: Point) -> None:
        curves = self.curves.values()
        if point.restarts and any(
            curve.steps and curve.steps[-1] >= point.step for curve in curves
        ):
            for curve in curves:
                curve.cut(point.step)
        for tag, value in _finite(point).items():
            if tag in self.curves or len(self.curves) < _MAX_CURVES:
                curve = self.curves.setdefault(tag, Curve())
                curve.add(point.step, point.time_s, value)
        self.version += 1


def read_progress(run: RunDirectory) -> Progress | None:
    """Returns the last progress that a run reported; None before the first report."""
    return RunView(run).read().progress


def is_of_learner(file: str) -> bool:
    """Returns whether the event file named ``file`` contains turns of the learner."""
    writer, _, number = file.removesuffix(".jsonl").rpartition("-")
    return writer in _WRITERS_OF_LEARNING and number.isdecimal()


def _forgiving() -> AbstractContextManager[None]:
    """Context manager that ignores errors from malformed events of custom agents."""
    return suppress(UsageError, TypeError, ValueError, ArithmeticError, LookupError)


def _finite(point: Point) -> dict[str, float]:
    """Returns a point's values, without NaN and values too large for a chart."""
    return {tag: value for tag, value in point.values.items() if abs(value) < 1e300}


def _rounded(value: float) -> float:
    """Returns a number rounded to the number of digits that a chart can show."""
    return float(f"{value:.{_DIGITS}g}")
