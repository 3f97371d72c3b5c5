"""Everything that anyone shows of a run, from its events, each read once."""

from __future__ import annotations

from collections import deque
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

__all__ = ["Curve", "RunView", "is_of_learner", "read_progress"]

# Most points of one curve; when it is full, every other point is dropped.
_MAX_POINTS = 4096
# An agent of one's own may report a metric of another name in each turn.
_MAX_CURVES = 1000
_SHOWN_POINTS = 400
_KEPT_NEW = 512
_DIGITS = 6
_WRITERS_OF_LEARNING = ("train", "learn-command")
_GATE = ("candidate", "accepted", "summary")


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
        self._keep(slice(0, sum(each < step for each in self.steps)))

    def shown(self, num_points: int = _SHOWN_POINTS) -> dict[str, list[float]]:
        """Returns so many points at most, the last one included, as JSON values."""
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
    """Folds the events of a run in bounded memory. Used by one thread at a time.

    A call that resumes from a checkpoint repeats steps that a kill undid: points from
    the step of the call's first point on are removed. What an event says that has
    another form than tengen gives it is ignored.

    Args:
        run: The run.

    Attributes:
        run: The run.
        in_environments: Whether the run steps environments; else it plays games.
        progress: The progress that was last told; None before that.
        gate: ``candidate``, ``accepted`` (None while it is not decided) and
            ``summary`` of the gate's last match; None if there was none.
        hosts: The hosts of the newest call that has several; None without such a call.
        processes: The processes that have been roles by themselves.
        curves: The curves by tag, as in TensorBoard.
        epoch: A number that changes whenever points were removed.
        num_points: Points that were added in this epoch.
        told_s: When the newest event was told, unix seconds; None before that.
        learned: The last turn of learning; empty before that.
        store: What a store that is a process of its own last told; None without one.

    Raises:
        UsageError: ``run.json`` is of a newer schema.
        RunError: It is damaged.
    """

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.in_environments = has_actors(run.read_run())
        self.progress: Progress | None = None
        self.gate: dict[str, Any] | None = None
        self.hosts: Hosts | None = None
        self.processes = RoleProcesses()
        self.curves: dict[str, Curve] = {}
        self.epoch = 0
        self.num_points = 0
        self.told_s: float | None = None
        self.learned: Mapping[str, Any] = {}
        self.store: Mapping[str, Any] | None = None
        self._files = EventFiles(run)
        self._hosts_file = ""
        self._call = ""
        self._maker = PointMaker(in_environments=self.in_environments)
        self._new: deque[Point] = deque(maxlen=_KEPT_NEW)

    def read(self) -> RunView:
        """Takes what was appended to the run's files since the last call."""
        for name, event in self._files.new_events():
            self.take(event, name)
        return self

    def take(self, event: Mapping[str, Any], file: str = "") -> Point | None:
        """Takes the next event; returns the point that is complete with it, if any.

        Args:
            event: The event, as ``EventWriter`` writes it.
            file: The name of its file, for what depends on which process wrote it.
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

    def since(self, num_points: int) -> list[dict[str, Any]] | None:
        """Returns the points after the first ``num_points``; None if too many."""
        num_left = self.num_points - num_points
        if num_left > len(self._new):
            return None
        return [
            {
                "step": point.step,
                "time_s": point.time_s,
                "values": {tag: _rounded(y) for tag, y in _finite(point).items()},
            }
            for point in list(self._new)[len(self._new) - max(0, num_left) :]
        ]

    def shown_curves(self) -> dict[str, Any]:
        """Returns the curves as JSON values; those with the same steps share them.

        Keys: ``axes``, a list of ``step`` and ``time_s``, and ``curves``, by tag
        ``axis`` and ``value``.
        """
        axes: list[dict[str, list[float]]] = []
        places: dict[tuple[float, ...], int] = {}
        found: dict[str, Any] = {}
        for tag, curve in sorted(self.curves.items()):
            shown = curve.shown()
            value = shown.pop("value")
            key = (*shown["step"], *shown["time_s"])
            if key not in places:
                places[key] = len(axes)
                axes.append(shown)
            found[tag] = {"axis": places[key], "value": value}
        return {"axes": axes, "curves": found}

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
            self.epoch += 1
            self.num_points = 0
            self._new.clear()
        if not point.values:
            return
        for tag, value in _finite(point).items():
            if tag in self.curves or len(self.curves) < _MAX_CURVES:
                curve = self.curves.setdefault(tag, Curve())
                curve.add(point.step, point.time_s, value)
        self.num_points += 1
        self._new.append(point)


def read_progress(run: RunDirectory) -> Progress | None:
    """Returns the progress of a run that was last told; None before that."""
    return RunView(run).read().progress


def is_of_learner(file: str) -> bool:
    """Returns whether an event file, by name, has the run's turns of learning."""
    writer, _, number = file.removesuffix(".jsonl").rpartition("-")
    return writer in _WRITERS_OF_LEARNING and number.isdecimal()


def _forgiving() -> AbstractContextManager[None]:
    """Context for what reads an event: an agent of one's own may report anything."""
    return suppress(UsageError, TypeError, ValueError, ArithmeticError, LookupError)


def _finite(point: Point) -> dict[str, float]:
    """Returns the values of a point that a chart can show."""
    return {tag: value for tag, value in point.values.items() if abs(value) < 1e300}


def _rounded(value: float) -> float:
    """Returns a number rounded to the digits that a picture can show."""
    return float(f"{value:.{_DIGITS}g}")
