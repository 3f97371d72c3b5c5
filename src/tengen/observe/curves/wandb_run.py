"""A run's metrics in Weights & Biases, by the package wandb."""

from __future__ import annotations

import importlib
import secrets
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from tengen.config import check
from tengen.distribution import pip_install_extra
from tengen.observe.curves.config import ObserveConfig
from tengen.observe.curves.points import Point
from tengen.run import RunDirectory, publish_file

__all__ = ["WandbRun", "check_wandb"]

_STEP = "global_step"


def check_wandb(config: ObserveConfig) -> None:
    """Makes sure that wandb can be imported if it is asked for; imports nothing.

    Raises:
        UsageError: A project is named, and the package is not installed.
    """
    is_there = "wandb" in sys.modules or find_spec("wandb") is not None
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
