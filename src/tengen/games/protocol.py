"""The interfaces of games: to use a game, and to implement one in Python.

`Game` and `State` are the interfaces of every game, native or in Python. A new game in
Python implements `OwnGame`, which `tengen.games.make` converts to a `Game`.

All games are for two players, with perfect information and zero sum. Player 0 moves
first. Shapes: C planes, H rows, W columns, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Planes = NDArray[np.float32]
"""The planes of an observation, ``[C, H, W]`` float32."""

PolicyLayout = Literal["cells", "cells_and_pass", "columns", "flat"]
"""The layout of a game's actions, which determines the policy head of a network.

``cells``: A = H * W, action = row * W + column. ``cells_and_pass``: like ``cells``,
with a pass as the last action. ``columns``: A = W, action = column. ``flat``: any other
layout.
"""


class State(Protocol):
    """A position of a game. Only `apply` modifies it. Not thread-safe."""

    @property
    def to_play(self) -> int:
        """The side to move: 0 first player, 1 second player."""

    @property
    def ply(self) -> int:
        """Number of moves played so far."""

    def legal_actions(self) -> list[int]:
        """Returns the legal actions, in increasing order; empty if terminal."""

    def apply(self, action: int) -> None:
        """Plays ``action``, which changes this position.

        Raises:
            CoreError: The action is not legal (a ``ValueError``).
        """

    def clone(self) -> Self:
        """Returns an independent copy of the position."""

    def is_terminal(self) -> bool:
        """Returns whether the game has ended."""

    def returns(self) -> tuple[float, float]:
        """Returns the results (first player, second player), each -1, 0 or 1.

        Raises:
            CoreError: The game has not ended (a ``ValueError``).
        """

    def observation(self, symmetry: int = 0) -> Planes:
        """Returns new planes ``[C, H, W]`` float32, from the view of the side to move.

        Args:
            symmetry: The symmetry applied to the board, 0 to num_symmetries - 1.
        """

    def key(self) -> tuple[int, int]:
        """Returns a 128-bit hash ``(lo, hi)`` of what the planes show."""

    def __str__(self) -> str: ...


class Game(Protocol):
    """The rules of a game. Immutable and thread-safe."""

    @property
    def name(self) -> str:
        """The game's name, which `tengen.games.make` accepts."""

    @property
    def num_actions(self) -> int:
        """Number A of actions; the actions are 0 to A - 1."""

    @property
    def num_planes(self) -> int:
        """Number C of planes in an observation."""

    @property
    def height(self) -> int:
        """Number H of rows in a plane."""

    @property
    def width(self) -> int:
        """Number W of columns in a plane."""

    @property
    def max_plies(self) -> int:
        """The maximum length of a game, in plies."""

    @property
    def policy_layout(self) -> PolicyLayout:
        """The layout of the actions, which determines the policy head."""

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries of the board, including the identity (symmetry 0)."""

    @property
    def max_score(self) -> int:
        """Bound that final scores rarely exceed, in points; 0 if there is no score."""

    def new_state(self, variant: str = "") -> State:
        """Returns the position before the first move.

        Args:
            variant: Name of a variant, such as Go with a smaller board or different
                rules; empty for the game itself.

        Raises:
            UsageError: The game is written in Python, so it has no variants.
            CoreError: The native game does not have the variant.
        """

    def transform_action(self, action: int, symmetry: int) -> int:
        """Returns the image of ``action`` under a symmetry of the board."""


S = TypeVar("S")


class OwnGame(Protocol[S]):
    """The interface of a new game in Python: two attributes and eight methods.

    No base class is needed: any class with these members works if its constructor takes
    no arguments. A state is a value of any type, such as a tuple, a frozen dataclass or
    an array, and is never modified; `apply` returns a new state.
    ``examples/own_game.py`` is a complete example. `tengen.games.check_own_game` finds
    errors in a game.

    Optional attributes and methods, with their defaults:

    * ``policy_layout: PolicyLayout`` is "flat". Networks learn faster with a different
      layout if the actions are cells or columns of the planes.
    * ``decisive_actions(state) -> (actions, result)`` tells a search which actions to
      consider. If actions win at once, it returns these and 1. If it looks for wins by
      force and finds one, it returns only the first action, and 1; after any reply the
      side must have won, or win at once or by force. Otherwise it returns the actions
      after which the opponent cannot win at once, and 0; if there is none, some legal
      actions and -1. Actions are a list in increasing order. By default a search
      considers all.
    * ``num_symmetries: int`` is 1. A game that declares more must also have
      ``transform_action(action, symmetry) -> int`` and ``transform_planes(planes,
      symmetry) -> planes``. Playing the transformed actions must lead to the
      transformed planes. `tengen.games.transform_cell` and
      `tengen.games.transform_planes` implement the 8 symmetries of a square board.

    Attributes:
        num_actions: Number of actions, at most 65535; actions are 0 to num_actions - 1.
        max_plies: The maximum length of a game, in plies; at most 65535.
    """

    num_actions: int
    max_plies: int

    def initial_state(self) -> S:
        """Returns the position before the first move."""

    def to_play(self, state: S) -> int:
        """Returns the side to move: 0 for the first player, 1 for the second."""

    def legal_actions(self, state: S) -> Sequence[int]:
        """Returns the legal actions in increasing order, at least one.

        This method is never called after the game has ended.
        """

    def apply(self, state: S, action: int) -> S:
        """Returns the position after a legal ``action``; must not modify ``state``."""

    def is_terminal(self, state: S) -> bool:
        """Returns whether the game has ended."""

    def returns(self, state: S) -> tuple[float, float]:
        """Returns the results of a finished game: (1, -1), (-1, 1) or (0, 0)."""

    def observation(self, state: S) -> NDArray[Any]:
        """Returns planes ``[C, H, W]`` float32, from the view of the side to move.

        The caller never modifies the planes, so they may be shared. Plane 0 must be the
        board mask, 1 on each cell, because networks divide sums by the mask's area.
        `tengen.games.stone_planes` returns suitable planes for a board of stones.
        """

    def to_string(self, state: S) -> str:
        """Returns human-readable text of the position."""
