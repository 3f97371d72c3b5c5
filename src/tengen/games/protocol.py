"""The interfaces of games: to use one, and to write one.

`Game` and `State` are the interface of every game, native or not. `OwnGame` is the
interface to implement for a new game in Python; `tengen.games.make` turns it into a
`Game`.

Two players, perfect information, zero sum. Player 0 moves first. Letters:
C planes, H rows, W columns, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Game", "OwnGame", "Planes", "PolicyLayout", "State"]

Planes = NDArray[np.float32]
"""Observation planes, ``[C, H, W] float32``."""

PolicyLayout = Literal["cells", "cells_and_pass", "columns", "flat"]
"""How a policy head maps planes to actions.

``cells``: A = H * W, action = row * W + column. ``cells_and_pass``: one more action,
the last, is a pass. ``columns``: A = W, action = column. ``flat``: anything else.
"""


class State(Protocol):
    """A position. Changed by `apply` only; used by one thread at a time."""

    @property
    def to_play(self) -> int:
        """Side to move: 0 the first player, 1 the second."""

    @property
    def ply(self) -> int:
        """Moves made so far."""

    def legal_actions(self) -> list[int]:
        """Returns the legal actions in increasing order; empty when finished."""

    def apply(self, action: int) -> None:
        """Plays ``action`` here.

        Raises:
            CoreError: It is not legal (a ``ValueError``).
        """

    def clone(self) -> Self:
        """Returns a copy that shares nothing that can change."""

    def is_terminal(self) -> bool:
        """Returns whether the game is finished."""

    def returns(self) -> tuple[float, float]:
        """Returns each player's result, first and second, in {-1, 0, 1}.

        Raises:
            CoreError: The game is not finished (a ``ValueError``).
        """

    def observation(self, symmetry: int = 0) -> Planes:
        """Returns fresh planes ``[C, H, W] float32``, as the side to move sees them.

        Args:
            symmetry: In [0, num_symmetries); transforms the board.
        """

    def key(self) -> tuple[int, int]:
        """Returns 128 bits, ``(lo, hi)``, of everything the planes depend on."""

    def __str__(self) -> str: ...


class Game(Protocol):
    """The rules of a game. Immutable; threads may share it."""

    @property
    def name(self) -> str:
        """The name that `tengen.games.make` takes."""

    @property
    def num_actions(self) -> int:
        """A: actions are 0 to A - 1."""

    @property
    def num_planes(self) -> int:
        """C: planes of an observation."""

    @property
    def height(self) -> int:
        """H: rows of a plane."""

    @property
    def width(self) -> int:
        """W: columns of a plane."""

    @property
    def max_plies(self) -> int:
        """The maximum length of a game, in plies."""

    @property
    def policy_layout(self) -> PolicyLayout:
        """How a policy head maps planes to actions."""

    @property
    def num_symmetries(self) -> int:
        """Symmetries of the board; 1 where there is none, 0 is the identity."""

    @property
    def max_score(self) -> int:
        """A score that winning margins hardly ever exceed; 0 without a score."""

    def new_state(self, variant: str = "") -> State:
        """Returns the position before the first move.

        Args:
            variant: The name of a variant, such as Go on a smaller board or with other
                rules; empty for the game itself.

        Raises:
            UsageError: A game in Python has no variants.
            CoreError: A native game has no such variant.
        """

    def transform_action(self, action: int, symmetry: int) -> int:
        """Returns the action that a symmetry maps ``action`` to."""


S = TypeVar("S")


class OwnGame(Protocol[S]):
    """The interface to implement for a new game: two numbers and eight methods.

    No base class is needed: any class that has these works, and its constructor
    takes no arguments. A state is any value of the author's choice (a tuple, a
    frozen dataclass, an array) that is never changed: `apply` returns a new one.
    ``examples/own_game.py`` is a complete one; `tengen.games.check_own_game` says
    which method is wrong and how.

    Optional attributes and methods, with their defaults:

    * ``policy_layout: PolicyLayout`` is "flat". The others learn faster where the
      actions are cells or columns of the planes.
    * ``num_symmetries: int`` is 1. With more, there must also be
      ``transform_action(action, symmetry) -> int`` and
      ``transform_planes(planes, symmetry) -> planes``: playing transformed actions
      must give transformed planes. `tengen.games.transform_cell` and
      `tengen.games.transform_planes` do the eight of a square board.

    Attributes:
        num_actions: Actions are 0 to num_actions - 1; at most 65535.
        max_plies: No game is longer; at most 65535.
    """

    num_actions: int
    max_plies: int

    def initial_state(self) -> S:
        """Returns the position before the first move."""

    def to_play(self, state: S) -> int:
        """Returns the side to move: 0 the first player, 1 the second."""

    def legal_actions(self, state: S) -> Sequence[int]:
        """Returns the legal actions in increasing order, at least one.

        Never asked of a finished game.
        """

    def apply(self, state: S, action: int) -> S:
        """Returns the position after a legal ``action``; leaves ``state`` alone."""

    def is_terminal(self, state: S) -> bool:
        """Returns whether the game is finished."""

    def returns(self, state: S) -> tuple[float, float]:
        """Returns the results of a finished game: (1, -1), (-1, 1) or (0, 0)."""

    def observation(self, state: S) -> NDArray[Any]:
        """Returns planes ``[C, H, W] float32``, as the side to move sees them.

        Never asked to be fresh, never changed by the caller. Plane 0 is the mask of
        the board, 1 on it: networks divide by its area. `tengen.games.stone_planes`
        makes good ones from a board of stones.
        """

    def to_string(self, state: S) -> str:
        """Returns the position as text, for people."""
