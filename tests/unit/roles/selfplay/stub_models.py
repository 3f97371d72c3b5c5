"""Models that are hashes, and self-play on them without files."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.actors import play_generation
from tengen.roles.selfplay import playing
from tengen.roles.selfplay.role import SelfplayRole
from tests.unit.conftest import HashBackend


class Model(HashBackend):
    """Answers by its number and the planes; calls ``after`` once, past some rows."""

    def __init__(self, number: int, num_rows: int = 0, after: Any = None) -> None:
        self.number = number
        self.num_rows = num_rows
        self.after: Callable[[], None] | None = after

    def bind(self, inputs: Any, outputs: Any, state: Any = None) -> Any:
        return _Runner(self, inputs["planes"], outputs["policy"], outputs["value"])

    def answer(self, planes: Any, policy: Any, value: Any) -> None:
        """Fills one row: planes ``[C, H, W]``, policy ``[A]``, value ``[1]``."""
        rng = np.random.default_rng(zlib.crc32(planes.tobytes(), self.number))
        policy[:] = rng.standard_normal(len(policy))
        value[:] = rng.uniform(-1, 1)


class _Runner:
    def __init__(self, model: Model, planes: Any, policy: Any, value: Any) -> None:
        self.model = model
        self.arrays = planes, policy, value

    def run(self, num_rows: int) -> None:
        planes, policy, value = self.arrays
        for row in range(num_rows):
            self.model.answer(planes[row], policy[row], value[row : row + 1])
        self.model.num_rows -= num_rows
        if self.model.after is not None and self.model.num_rows < 0:
            after, self.model.after = self.model.after, None
            after()


def play_often(*args: Any, **kwargs: Any) -> Any:
    """Plays a generation, and reports often."""
    return play_generation(*args, **kwargs, progress_interval_s=0.01)


def plays_on(
    monkeypatch: pytest.MonkeyPatch,
    open_backend: Callable[..., Any],
    play: Callable[..., Any] = play_often,
) -> None:
    """Has self-play open its models so, and look for newer ones all the time."""
    monkeypatch.setattr(playing, "_LOOK_S", 0.0)
    monkeypatch.setattr(playing, "open_backend", open_backend)
    monkeypatch.setattr(playing, "play_generation", play)
    monkeypatch.setattr(
        SelfplayRole, "_directory", lambda role, number: Path(str(number))
    )
