"""Connects user-defined games to the core, whose searches refer to positions by ID.

The core (core/games/external) asks for each position once, many positions per call, and
stores the facts that it needs. This module stores the user's state values in a list
indexed by position ID. When the core frees a position it reuses the ID, and the old
state is overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import UsageError
from tengen.games.check import check_position, is_decisive
from tengen.games.protocol import Game, OwnGame
from tengen.games.python_game import PythonGame
from tengen.games.raised import RAISED, raised

# The values of the enum Outcome in core/games/game.h.
_ONGOING, _FIRST_WINS, _SECOND_WINS, _DRAW = range(4)
_OUTCOMES: dict[tuple[float, float], int] = {
    (1, -1): _FIRST_WINS,
    (-1, 1): _SECOND_WINS,
    (0, 0): _DRAW,
}

Facts: TypeAlias = tuple[
    NDArray[np.uint8],
    NDArray[np.uint8],
    NDArray[np.uint32],
    NDArray[np.uint16],
    NDArray[np.float32],
    NDArray[np.uint8],
    NDArray[np.uint8],
]
"""Facts about n positions: sides to move ``[n]``, outcomes ``[n]``, numbers of legal
actions ``[n]``, all legal actions in one array, planes ``[n, C * H * W]``, 1 for each
legal action that a search considers, and decided positions ``[n]``: 1 won, 2 lost."""


class OwnGameSource:
    """A user's game in the form that the core reads: attributes, and ``open``.

    Args:
        game: The user's game. Its symmetries must only permute the entries of planes.
    """

    def __init__(self, game: PythonGame) -> None:
        self._own = game.own
        self.name = game.name
        self.num_actions = game.num_actions
        self.num_planes = game.num_planes
        self.height = game.height
        self.width = game.width
        self.max_plies = game.max_plies
        self.policy_layout: str = game.policy_layout
        self.num_symmetries = game.num_symmetries
        symmetries = range(self.num_symmetries)
        self.action_image = np.array(
            [
                [game.transform_action(action, symmetry) for action in self._actions]
                for symmetry in symmetries
            ],
            np.uint16,
        )
        """The image of each action under each symmetry, ``[S, A]``."""
        self.plane_origin = np.array([self._origin(s) for s in symmetries], np.uint32)
        """For each symmetry and each entry of the transformed planes, the index of the
        entry in the original planes, ``[S, C * H * W]``."""

    def open(self) -> OwnStates:
        """Returns a new, empty ``OwnStates`` for one worker of the core."""
        shape = (self.num_planes, self.height, self.width)
        return OwnStates(self._own, self.num_actions, self.max_plies, shape)

    @property
    def _actions(self) -> range:
        return range(self.num_actions)

    def _origin(self, symmetry: int) -> NDArray[np.float32]:
        shape = (self.num_planes, self.height, self.width)
        entries = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
        if symmetry == 0:
            return entries.ravel()
        own: Any = self._own
        return np.asarray(own.transform_planes(entries, symmetry)).ravel()


class OwnStates:
    """The positions of one worker of the core, which calls it with the GIL held.

    Args:
        own: The user's game.
        num_actions: Number of actions.
        max_plies: The maximum length of a game, in plies.
        shape: Shape of the planes, ``(C, H, W)``.
    """

    def __init__(
        self,
        own: OwnGame[Any],
        num_actions: int,
        max_plies: int,
        shape: tuple[int, int, int],
    ) -> None:
        self._own = own
        self._num_actions = num_actions
        self._max_plies = max_plies
        self._shape = shape
        # An optional method that plays to the end of the game without a copy per ply.
        self._in_place: Any = getattr(own, "play_out", None)
        self._states: list[tuple[Any, int]] = []
        """Pairs (state, ply) indexed by position ID. The list never shrinks."""

    def __len__(self) -> int:
        """The largest number of positions that the core has held at a time."""
        return len(self._states)

    def expand(self, moves: Sequence[tuple[int, int, int]]) -> Facts:
        """Creates positions from moves; returns the facts about the new positions.

        Args:
            moves: Tuples (ID of a position, legal action, ID for the new position).

        Raises:
            UsageError: A method of the game raised or broke the protocol.
        """
        made = []
        apply = self._own.apply
        for parent, action, child in moves:
            state, ply = self._states[parent]
            try:
                after = apply(state, action)
            except RAISED as error:
                raise self._raised("apply", ply, error) from error
            self._put(child, after, ply + 1)
            made.append((after, ply + 1))
        return self._facts(made)

    def replay(self, actions: Sequence[int], number: int) -> Facts:
        """Plays ``actions`` from the start; returns the facts about the position.

        Args:
            actions: Legal actions from the start of the game.
            number: ID for the new position; if negative, the position is not stored.

        Raises:
            UsageError: A method of the game raised or broke the protocol.
        """
        method, ply = "initial_state", 0
        try:
            state = self._own.initial_state()
            method = "apply"
            for action in actions:
                state = self._own.apply(state, action)
                ply += 1
        except RAISED as error:
            raise self._raised(method, ply, error) from error
        if number >= 0:
            self._put(number, state, len(actions))
        return self._facts([(state, len(actions))])

    def playout(self, number: int, rng: _core.Rng) -> int:
        """Plays random moves to the end; returns the outcome, a core enum value.

        Args:
            number: ID of a position that is not terminal.
            rng: Generator of the uniformly random moves; this method keeps no
                reference.

        Raises:
            UsageError: A method of the game raised or broke the protocol.
        """
        own = self._own
        state, ply = self._states[number]
        if self._in_place is not None:
            first, second = self._in_place(state, rng.below)
            return _OUTCOMES[first, second]
        method = "legal_actions"
        try:
            while True:
                legal = own.legal_actions(state)
                action = legal[rng.below(len(legal))]
                method = "apply"
                state = own.apply(state, action)
                ply += 1
                method = "is_terminal"
                if own.is_terminal(state):
                    method = "returns"
                    first, second = own.returns(state)
                    return _OUTCOMES[first, second]
                if ply >= self._max_plies:
                    break
                method = "legal_actions"
        except RAISED as error:
            self._check(state, ply)
            raise self._raised(method, ply, error) from error
        self._check(state, ply)
        raise self._broken(ply)

    def to_string(self, number: int) -> str:
        """Returns the text of the position with ID ``number``."""
        return self._own.to_string(self._states[number][0])

    def _put(self, number: int, state: Any, ply: int) -> None:
        missing = number + 1 - len(self._states)
        if missing > 0:
            self._states.extend([(None, 0)] * missing)
        self._states[number] = (state, ply)

    def _facts(self, made: Sequence[tuple[Any, int]]) -> Facts:
        """Returns the facts about positions. Raises UsageError if one is invalid."""
        try:
            facts = self._ask(made)
        except RAISED as error:
            for state, ply in made:
                self._check(state, ply)
            raise self._raised("observation", made[0][1], error) from error
        if facts is None:
            for state, ply in made:
                self._check(state, ply)
            raise self._broken(made[0][1])
        return facts

    def _ask(self, made: Sequence[tuple[Any, int]]) -> Facts | None:
        """Returns side to move, outcome, legal actions and planes of all positions.

        Returns None if a position breaks the protocol. For speed, each rule is checked
        on all positions together; `check_position` then finds the position and rule.
        """
        own, shape = self._own, self._shape
        planes = np.zeros((len(made), *shape), np.float32)
        to_play: list[int] = []
        outcome: list[int] = []
        num_legal: list[int] = []
        legal: list[int] = []
        decide = getattr(own, "decisive_actions", None)
        considered: list[bool] = []
        decided = np.zeros(len(made), np.uint8)
        for i, (state, ply) in enumerate(made):
            to_play.append(own.to_play(state))
            if own.is_terminal(state):
                first, second = own.returns(state)
                outcome.append(_OUTCOMES[first, second])
                num_legal.append(0)
                continue
            actions = own.legal_actions(state)
            seen = own.observation(state)
            if seen.shape != shape or seen.dtype != np.float32 or not len(actions):
                return None
            if ply >= self._max_plies or not seen[0].any():
                return None
            planes[i] = seen
            outcome.append(_ONGOING)
            num_legal.append(len(actions))
            legal.extend(actions)
            if decide is not None:
                found = decide(state)
                if not is_decisive(found, actions):
                    return None
                chosen, result = found
                few = set(chosen)
                considered += [action in few for action in actions]
                decided[i] = result % 3  # -1, lost, is 2
        players = np.array(to_play)
        flat = np.array(legal) if legal else np.zeros(0, np.int64)
        counts = np.array(num_legal, np.uint32)
        if players.dtype.kind not in "iu" or flat.dtype.kind not in "iu":
            return None
        if ((players != 0) & (players != 1)).any() or not np.isfinite(planes).all():
            return None
        if len(flat) and (flat.min() < 0 or flat.max() >= self._num_actions):
            return None
        # Check that the actions of each position increase.
        rises = flat[1:] > flat[:-1]
        ends = np.cumsum(counts)
        rises[ends[(ends > 0) & (ends < len(flat))] - 1] = True
        if not rises.all():
            return None
        return (
            players.astype(np.uint8),
            np.array(outcome, np.uint8),
            counts,
            flat.astype(np.uint16),
            planes.reshape(len(made), -1),
            np.array(considered, np.uint8) if decide else np.ones(len(flat), np.uint8),
            decided,
        )

    def _check(self, state: Any, ply: int) -> None:
        check_position(self._own, state, ply, self._shape)

    @property
    def _name(self) -> str:
        return type(self._own).__name__

    def _raised(self, method: str, ply: int, error: BaseException) -> UsageError:
        return raised(f"{self._name}.{method} (ply {ply})", error)

    def _broken(self, ply: int) -> UsageError:
        return UsageError(
            f"{self._name} (ply {ply}) must return the same when called again; store "
            "nothing in the game between calls"
        )


CoreGame: TypeAlias = str | OwnGameSource
"""What the core's functions accept as a game: a native name, or a user's game."""


def is_external(game: Game) -> bool:
    """Returns whether ``game`` is written in Python, so that its rules need the GIL."""
    return isinstance(game, PythonGame)


def core_game(game: Game) -> CoreGame:
    """Returns the name of a native game, or an ``OwnGameSource`` for a Python game."""
    return OwnGameSource(game) if isinstance(game, PythonGame) else game.name
