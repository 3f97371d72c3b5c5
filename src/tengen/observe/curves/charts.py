"""Sends the metrics in a run's events to TensorBoard and Weights & Biases.

The process that writes the learner's events has one ``Charts``. An error in this module
never ends the run.
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

_LOOK_S = 2.0


class Drawer(Protocol):
    """A sink for points. Used by one thread at a time; may raise any exception."""

    def add(self, point: Point) -> None:
        """Adds a point to the sink's curves."""
        ...

    def tick(self) -> None:
        """Writes buffered points if they are due; called at every event."""
        ...

    def close(self) -> None:
        """Writes the remaining points, and closes the sink."""
        ...


def open_charts(run: RunDirectory, *, follows: bool = False) -> Charts:
    """Returns the charts of one call, with the sinks that the run's config enables.

    If the config enables no sink, the charts do nothing. If the config enables wandb,
    blocks until wandb has started, or has failed with a warning.

    Args:
        run: The run, which must have a ``run.json``.
        follows: Whether to read the events of standalone roles, in other processes, as
            well.

    Raises:
        UsageError: The config names a wandb project, but wandb is not installed.
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
        except Exception as error:  # for example a network or account error
            _warn("wandb", error)
    tail = None
    if follows and drawers:
        # Skip events from before this call, which describe earlier models.
        tail = EventFiles(run, is_of_others, from_now=True, look_s=_LOOK_S)
    return Charts(PointMaker(in_environments=has_actors(content)), drawers, tail)


class Charts:
    """Converts events to points for the sinks. Used by one thread at a time.

    Args:
        maker: Converts events to points.
        drawers: The sinks by name. A sink that fails is dropped with a warning.
        tail: The events of other processes; None to ignore them.
        clock: Returns Unix seconds.
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
        """Processes an event after it was written. Raises no ``Exception``."""
        if not self._drawers:
            return
        # Process other processes' events first: the learner has trained on their games.
        others = () if self._tail is None else self._tail.new_events()
        for each in (*(other for _, other in others), event):
            # A user's own agent may report invalid values, such as 10 ** 400.
            with suppress(TypeError, ValueError, ArithmeticError, LookupError):
                self._add(self._maker.take(each))
        self._each(lambda drawer: drawer.tick())

    def close(self) -> None:
        """Sends the remaining points, and closes the sinks. Idempotent."""
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
            except Exception as error:  # training continues despite a package's errors
                del self._drawers[name]
                _warn(name, error)


def is_of_others(file: str) -> bool:
    """Returns whether an event file belongs to a standalone role, not the learner."""
    return "-command-" in file and not file.startswith("learn-command-")


def _warn(name: str, error: Exception) -> None:
    said = str(error).strip().splitlines()
    reason = said[0] if said else type(error).__name__
    warnings.warn(
        f"curves ({name}) stop for this call, and the run continues: {reason}",
        TengenWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, kw_only=True)
class ObserveConfig:
    """The programs that receive a run's metrics; see ``docs/howto/play/seeing.md``."""

    tensorboard: bool = True
    """Whether to write files for TensorBoard to RUN/tensorboard."""
    wandb: str = ""
    """Project of Weights & Biases to which the package wandb sends the run's metrics.
    Empty for none."""
    wandb_mode: Literal["auto", "online", "offline"] = "auto"
    """offline stores the data in RUN/wandb for a later ``wandb sync``, and needs no
    network; auto uses the environment variable WANDB_MODE, or online if it is unset."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field has an invalid value.
        """
        check_literals(self)
        check(
            "/" not in self.wandb,
            "wandb",
            self.wandb,
            "must be the name of a project; set its owner with WANDB_ENTITY",
        )


_STEP = "global_step"


def check_wandb(config: ObserveConfig) -> None:
    """Checks that wandb is installed if the config enables it; imports nothing.

    Raises:
        UsageError: The config names a wandb project, but wandb is not installed.
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

    All calls of a run continue the same wandb run, whose ID is in ``RUN/wandb/id``. The
    constructor blocks until wandb has started, or has given up without a network.

    Args:
        run: The run.
        config: The project and the mode.
        settings: The config in ``run.json``, which wandb stores with its run.

    Raises:
        RunError: The ID cannot be written.
        Exception: Any error that wandb raises if it cannot start.
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
            # By default wandb captures the terminal, which breaks the live view.
            settings={"console": "off"},
        )
        # Use a step metric, because wandb's own step must not decrease, but after a
        # kill the next call starts at an earlier step.
        self._run.define_metric(_STEP)
        self._run.define_metric("*", step_metric=_STEP)

    def add(self, point: Point) -> None:
        """Logs a point, which wandb sends from its own process."""
        self._run.log({**point.values, _STEP: point.step})

    def tick(self) -> None:
        """Does nothing, because wandb itself decides when to send points."""

    def close(self) -> None:
        """Ends the call's wandb session. Blocks until points are sent or stored."""
        self._run.finish()


def _id(run: RunDirectory) -> str:
    path = run.path / "wandb" / "id"
    if path.exists():
        return path.read_text().strip()
    path.parent.mkdir(exist_ok=True)
    made = secrets.token_hex(8)
    publish_file(path, f"{made}\n".encode())
    return made
