"""Sends the metrics in a run's events to TensorBoard and Weights & Biases.

The writer of the learner's events has one ``Charts``; roles and learners do not know of
it. A failure here never fails the run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from tengen.config import from_dict
from tengen.errors import TengenWarning
from tengen.observe.curves.config import ObserveConfig
from tengen.observe.curves.points import Point, PointMaker
from tengen.observe.curves.tensorboard_file import TensorBoardFile
from tengen.observe.curves.wandb_run import WandbRun, check_wandb
from tengen.observe.events import EventFiles
from tengen.observe.roles import has_actors
from tengen.run import RunDirectory

__all__ = ["Charts", "Drawer", "open_charts"]


_LOOK_S = 2.0


class Drawer(Protocol):
    """A sink for points. Used by one thread at a time; may raise anything."""

    def add(self, point: Point) -> None:
        """Takes a point."""
        ...

    def tick(self) -> None:
        """Called at every event, to write what was held back."""
        ...

    def close(self) -> None:
        """Writes the rest, and ends."""
        ...


def open_charts(run: RunDirectory, *, follows: bool = False) -> Charts:
    """Returns the charts of a call's events, as the run's config says.

    If the config names neither program, the charts do nothing. If wandb is asked for,
    blocks until it has begun, or has failed with a warning.

    Args:
        run: The run, whose ``run.json`` is there.
        follows: Whether other roles of the run are processes of their own, whose events
            are read too.

    Raises:
        UsageError: A project of wandb is named, and the package is not installed.
        RunError: ``run.json`` is damaged.
    """
    content = run.read_run()
    settings = content["config"]
    config = from_dict(ObserveConfig, settings.get("observe", {}), "observe")
    check_wandb(config)
    drawers: dict[str, Drawer] = {}
    if config.tensorboard:
        drawers["tensorboard"] = TensorBoardFile(run.path / "tensorboard")
    if config.wandb:
        try:
            drawers["wandb"] = WandbRun(run, config, settings)
        except Exception as error:  # wandb's own, of the network or of an account
            _warn("wandb", error)
    tail = None
    if follows and drawers:
        # Events from before this call are about earlier models.
        tail = EventFiles(run, is_of_others, from_now=True, look_s=_LOOK_S)
    return Charts(PointMaker(in_environments=has_actors(content)), drawers, tail)


class Charts:
    """Makes points of events and hands them on. Used by one thread at a time.

    Args:
        maker: Makes the points.
        drawers: The sinks by name. A sink that fails is dropped with a warning.
        tail: Events of other processes; None for none.
        clock: Returns unix seconds.
    """

    def __init__(
        self,
        maker: PointMaker,
        drawers: dict[str, Drawer],
        tail: EventFiles | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._maker = maker
        self._drawers = dict(drawers)
        self._tail = tail
        self._clock = clock

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes an event that was written. Never raises an Exception."""
        if not self._drawers:
            return
        # Other processes' events first: their games were learned from in this turn.
        others = () if self._tail is None else self._tail.new_events()
        for each in (*(other for _, other in others), event):
            # A user's own agent may report anything, such as 10 ** 400.
            with suppress(TypeError, ValueError, ArithmeticError, LookupError):
                self._add(self._maker.take(each))
        self._each(lambda drawer: drawer.tick())

    def close(self) -> None:
        """Hands on what waits, and ends. A second call does nothing."""
        self._add(self._maker.rest(self._clock()))
        self._each(lambda drawer: drawer.close())
        self._drawers = {}

    def _add(self, point: Point | None) -> None:
        if point is not None and point.values:
            self._each(lambda drawer: drawer.add(point))

    def _each(self, call: Callable[[Drawer], None]) -> None:
        for name, drawer in list(self._drawers.items()):
            try:
                call(drawer)
            except Exception as error:  # whatever a package raises, training goes on
                del self._drawers[name]
                _warn(name, error)


def is_of_others(file: str) -> bool:
    """Returns whether a role by itself that is not the learner writes a file."""
    return "-command-" in file and not file.startswith("learn-command-")


def _warn(name: str, error: Exception) -> None:
    said = str(error).strip().splitlines()
    reason = said[0] if said else type(error).__name__
    warnings.warn(
        f"curves ({name}) are drawn no more in this call, the run goes on: {reason}",
        TengenWarning,
        stacklevel=3,
    )
