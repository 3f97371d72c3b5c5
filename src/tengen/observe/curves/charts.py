"""Sends the metrics in a run's events to TensorBoard and Weights & Biases.

The writer of the learner's events has one ``Charts``; roles and learners do not know of
it. A failure here never fails the run.
"""

from __future__ import annotations

import importlib
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from tengen.config import check, check_literals, from_dict
from tengen.distribution import pip_install_extra
from tengen.errors import TengenWarning
from tengen.observe.curves.points import Point, PointMaker
from tengen.observe.curves.tensorboard_file import TensorBoardFile
from tengen.observe.events import EventFiles
from tengen.observe.roles import has_actors
from tengen.run import RunDirectory, publish_file

__all__ = [
    "Charts",
    "Drawer",
    "ObserveConfig",
    "WandbRun",
    "check_wandb",
    "open_charts",
]

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
        folder = run.path / "tensorboard"
        drawers["tensorboard"] = TensorBoardFile(folder, time.monotonic)
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


@dataclass(frozen=True, kw_only=True)
class ObserveConfig:
    """Which programs get a run's metrics; see ``docs/howto/play/seeing.md``."""

    tensorboard: bool = True
    """Whether files for TensorBoard are written to RUN/tensorboard."""
    wandb: str = ""
    """Project of Weights & Biases that the run's metrics are sent to, by the package
    wandb. Empty for none."""
    wandb_mode: Literal["auto", "online", "offline"] = "auto"
    """offline keeps what wandb would send in RUN/wandb, for wandb sync, and needs no
    network; auto is what the variable WANDB_MODE says, else online."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field has a value that it may not have.
        """
        check_literals(self)
        check(
            "/" not in self.wandb,
            "wandb",
            self.wandb,
            "must be the name of a project; the variable WANDB_ENTITY says whose it is",
        )


_STEP = "global_step"


def check_wandb(config: ObserveConfig) -> None:
    """Makes sure that wandb can be imported if it is asked for; imports nothing.

    Raises:
        UsageError: A project is named, and the package is not installed.
    """
    is_there = bool(sys.modules.get("wandb") or find_spec("wandb"))
    check(
        not config.wandb or is_there,
        "observe.wandb",
        config.wandb,
        f"needs the package wandb; {pip_install_extra('wandb')}, or leave it out",
    )


class WandbRun:
    """Sends the points of one call to Weights & Biases. Not thread-safe.

    All calls of a run continue one run of wandb, whose id is in ``RUN/wandb/id``.
    Blocks until wandb has begun, or has given up for lack of a network.

    Args:
        run: The run.
        config: The project and the mode.
        settings: The config in ``run.json``, kept with the run.

    Raises:
        RunError: The disk refuses the id.
        Exception: Whatever wandb raises if it cannot begin.
    """

    def __init__(
        self, run: RunDirectory, config: ObserveConfig, settings: Mapping[str, Any]
    ) -> None:
        wandb = importlib.import_module("wandb")
        mode = None if config.wandb_mode == "auto" else config.wandb_mode
        self._run = wandb.init(
            project=config.wandb,
            id=_id(run),
            name=run.path.resolve().name,
            dir=str(run.path),
            config=dict(settings),
            resume="allow",
            mode=mode,
            # Otherwise wandb captures the terminal, which breaks the live view.
            settings={"console": "off"},
        )
        # After a kill a call begins at an earlier step, but wandb's own step may only
        # rise.
        self._run.define_metric(_STEP)
        self._run.define_metric("*", step_metric=_STEP)

    def add(self, point: Point) -> None:
        """Logs a point; wandb sends it in a process of its own."""
        self._run.log({**point.values, _STEP: point.step})

    def tick(self) -> None:
        """Does nothing: wandb itself decides when it sends."""

    def close(self) -> None:
        """Ends the call's part. Blocks until all points are sent, or kept offline."""
        self._run.finish()


def _id(run: RunDirectory) -> str:
    path = run.path / "wandb" / "id"
    if path.exists():
        return path.read_text().strip()
    path.parent.mkdir(exist_ok=True)
    made = secrets.token_hex(8)
    publish_file(path, f"{made}\n".encode())
    return made
