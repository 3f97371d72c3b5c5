"""Shows positions in notebooks, as a drawn board or as text.

Only IPython and Jupyter call these two methods of a value.
"""

from __future__ import annotations

from typing import Any, Protocol

from tengen import _core
from tengen.drawing import position_figure

__all__ = ["pretty_state", "show_native_states", "state_html"]


class _Printer(Protocol):
    """IPython's printer."""

    def text(self, obj: str) -> None:
        """Prints text."""


def state_html(state: Any) -> str:
    """Returns a position as self-contained HTML.

    Args:
        state: A ``tengen.games.State``.
    """
    return position_figure(str(state), f"position at ply {state.ply}")


def pretty_state(state: Any, printer: _Printer, cycle: bool) -> None:
    """Prints a position as its own text.

    Args:
        state: As for ``state_html``.
        printer: IPython's printer.
        cycle: Whether the value contains itself; never here.
    """
    printer.text(str(state))


def show_native_states() -> None:
    """Adds the methods for notebooks to the core's positions."""
    shown: Any = _core.State
    shown._repr_html_ = state_html
    shown._repr_pretty_ = pretty_state
