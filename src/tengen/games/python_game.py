"""Adapts games written in Python to the interface of native games."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np

from tengen import _core
from tengen._core import CoreError, planes_key
from tengen.config import check
from tengen.games.drawing import position_figure
from tengen.games.protocol import OwnGame, Planes, PolicyLayout
from tengen.games.raised import call_method


class _Printer(Protocol):
    """The interface of IPython's pretty printer."""

    def text(self, obj: str) -> None:
        """Prints the text ``obj``."""


def state_html(state: Any) -> str:
    """Returns a position as self-contained HTML.

    Args:
        state: A ``tengen.games.State``.
    """
    return position_figure(str(state), f"position at ply {state.ply}")


def pretty_state(state: Any, printer: _Printer, cycle: bool) -> None:
    """Prints the text of a position in IPython.

    Args:
        state: A ``tengen.games.State``.
        printer: IPython's pretty printer.
        cycle: Whether the value contains itself; always False for a position.
    """
    printer.text(str(state))


def show_native_states() -> None:
    """Adds the methods with which IPython displays a value to the core's ``State``."""
    shown: Any = _core.State
    shown._repr_html_ = state_html
    shown._repr_pretty_ = pretty_state


class PythonGame:
    """A `tengen.games.Game` that wraps an `OwnGame` and trusts its results.

    Args:
        own: The wrapped game.
        name: The name given to `tengen.games.make`.
    """

    def __init__(self, own: OwnGame[Any], name: str) -> None:
        self.own = own
        self.name = name
        self.num_actions = int(own.num_actions)
        self.max_plies = int(own.max_plies)
        self.max_score = 0
        self.num_symmetries = int(getattr(own, "num_symmetries", 1))
        self.policy_layout = cast(PolicyLayout, getattr(own, "policy_layout", "flat"))
        shape = np.shape(own.observation(own.initial_state()))
        self.num_planes, self.height, self.width = shape

    def new_state(self, variant: str = "") -> PythonState:
        """Returns the initial position; ``variant`` must be empty."""
        check(not variant, "variant", variant, "must be empty here; leave it out")
        return PythonState(self, self.call(0, "initial_state"), 0)

    def transform_action(self, action: int, symmetry: int) -> int:
        """Returns the image of ``action`` under a symmetry of the board."""
        if symmetry == 0:
            return action
        return int(self.call(0, "transform_action", action, symmetry))

    def call(self, ply: int, method: str, *args: Any) -> Any:
        """Calls a method of the wrapped game; ``ply`` appears in error messages.

        Raises:
            UsageError: The method raised an exception.
        """
        return call_method(type(self.own).__name__, self.own, ply, method, *args)


class PythonState:
    """A `tengen.games.State` that wraps a state value of an `OwnGame`."""

    def __init__(self, game: PythonGame, value: Any, ply: int) -> None:
        self._game = game
        self._value = value
        self._ply = ply

    @property
    def to_play(self) -> int:
        """The side to move: 0 for the first player, 1 for the second."""
        return int(self._call("to_play", self._value))

    @property
    def ply(self) -> int:
        """The number of moves played so far."""
        return self._ply

    def legal_actions(self) -> list[int]:
        """Returns the legal actions in increasing order; empty if terminal."""
        if self.is_terminal():
            return []
        return [int(action) for action in self._call("legal_actions", self._value)]

    def apply(self, action: int) -> None:
        """Plays ``action``, which changes this position.

        Raises:
            CoreError: ``action`` is not legal.
        """
        if self.is_terminal():
            raise CoreError(
                f"action ({action}) cannot be played in a finished game; start with "
                "new_state()"
            )
        if action not in self.legal_actions():
            raise CoreError(
                f"action ({action}) must be legal in this position; "
                "choose one of legal_actions()"
            )
        self._value = self._call("apply", self._value, action)
        self._ply += 1

    def clone(self) -> PythonState:
        """Returns a copy of the position. Both share the immutable state value."""
        return PythonState(self._game, self._value, self._ply)

    def is_terminal(self) -> bool:
        """Returns whether the game has ended."""
        return bool(self._call("is_terminal", self._value))

    def returns(self) -> tuple[float, float]:
        """Returns the results of the first and second player, in {-1, 0, 1}.

        Raises:
            CoreError: The game has not ended.
        """
        if not self.is_terminal():
            raise CoreError(
                f"returns (after {self._ply} plies) need a finished game; call "
                "is_terminal() first"
            )
        first, second = self._call("returns", self._value)
        return float(first), float(second)

    def observation(self, symmetry: int = 0) -> Planes:
        """Returns new planes, ``[C, H, W]`` float32, from the side to move's view.

        Args:
            symmetry: The symmetry applied to the board, in [0, num_symmetries).

        Raises:
            CoreError: ``symmetry`` is out of range.
        """
        num_symmetries = self._game.num_symmetries
        if not 0 <= symmetry < num_symmetries:
            raise CoreError(
                f"symmetry ({symmetry}) must be 0 to {num_symmetries - 1}; "
                "see num_symmetries"
            )
        planes = self._call("observation", self._value)
        if symmetry:
            planes = self._call("transform_planes", planes, symmetry)
        return np.array(planes, dtype=np.float32, order="C")

    def key(self) -> tuple[int, int]:
        """Returns a 128-bit hash ``(lo, hi)`` of the planes; see `State.key`."""
        low, high = planes_key(self.observation())
        return low, high

    def __str__(self) -> str:
        return str(self._call("to_string", self._value))

    _repr_html_ = state_html
    _repr_pretty_ = pretty_state

    def _call(self, method: str, *args: Any) -> Any:
        return self._game.call(self._ply, method, *args)
