"""Parts of batches of games, for learners that follow another one.

Games and shuffled shards are in files, which every learner reads by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tengen.experience.rows.shuffled_rows import ShuffledRows
from tengen.experience.rows.window import GameWindow
from tengen.experience.rows.window_draw import WindowDraw, WindowPass
from tengen.store.batch import Batch

__all__ = ["ShuffledPart", "WindowPart"]


class WindowPart:
    """Rows of a window of games; an ``ExperiencePart``.

    The process reads the games of the window itself, and derives only its own rows.

    Args:
        open_window: Returns the window for a state, see ``GameWindow.state``.
        seed: Seed of the leader's draws.
    """

    def __init__(
        self, open_window: Callable[[Mapping[str, Any]], GameWindow], seed: int
    ) -> None:
        self._open = open_window
        self._seed = seed
        self._window: GameWindow | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """See ``ExperiencePart.catch_up``."""
        if self._window is None or not self._window.follow(shared["manifest"]):
            self.close()
            self._window = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``ExperiencePart.draw``."""
        assert self._window is not None
        self._window.take_in(order["segments"])
        draw = WindowDraw._make(order["draw"])
        if draw.place is not None:
            draw = draw._replace(place=WindowPass._make(draw.place))
        return self._window.part(draw, first, last, _no_ack)

    def close(self) -> None:
        """See ``ExperiencePart.close``."""
        if self._window is not None:
            self._window.close()
            self._window = None


class ShuffledPart:
    """Rows of shuffled shards; an ``ExperiencePart``.

    Args:
        open_rows: Returns the rows for a state, see ``ShuffledRows.state``.
    """

    def __init__(self, open_rows: Callable[[Mapping[str, Any]], ShuffledRows]) -> None:
        self._open = open_rows
        self._rows: ShuffledRows | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """See ``ExperiencePart.catch_up``."""
        self.close()
        self._rows = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``ExperiencePart.draw``."""
        assert self._rows is not None
        return self._rows.part(order["next"], num_samples, first, last)

    def close(self) -> None:
        """See ``ExperiencePart.close``."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None


def _no_ack(lease: int, priorities: object = None) -> None:
    """Does nothing: only the leader counts which batches were used."""
