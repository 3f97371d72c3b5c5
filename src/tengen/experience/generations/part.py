"""Parts of batches of generations, for learners that follow another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tengen.experience.generations.window import GenerationWindow
from tengen.store.batch import Batch

__all__ = ["GenerationPart"]


class GenerationPart:
    """Rows of a window of generations; an ``ExperiencePart``.

    The process reads the games itself, and derives only its own rows.

    Args:
        open_window: Returns the window for a state, see ``GenerationWindow.state``.
    """

    def __init__(
        self, open_window: Callable[[Mapping[str, Any]], GenerationWindow]
    ) -> None:
        self._open = open_window
        self._window: GenerationWindow | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """See ``ExperiencePart.catch_up``."""
        if self._window is None or not self._window.follow(shared):
            self.close()
            self._window = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``ExperiencePart.draw``."""
        assert self._window is not None
        return self._window.draw_part(order, first, last, _no_ack)

    def close(self) -> None:
        """See ``ExperiencePart.close``."""
        if self._window is not None:
            self._window.close()
            self._window = None


def _no_ack(lease: int, priorities: object = None) -> None:
    """Does nothing: only the leader counts which batches were used."""
