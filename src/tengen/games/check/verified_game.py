"""A wrapper that verifies the return values of a user's game."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tengen.errors import UsageError
from tengen.games.protocol import OwnGame, Planes
from tengen.games.raised import RAISED, call_method, raised

# Maximum number of actions and of plies. Both are stored in 16 bits.
_MAX_COUNT = 65535


class VerifiedGame:
    """A wrapper that verifies every value that a user's game returns.

    All methods raise UsageError if a method of the game is missing, raises an exception
    or breaks the protocol. The message names the method, its value and the ply.

    Args:
        own: The user's game.
        name: The game's name in error messages.
        shape: Shape of the planes; None for the shape of the first planes returned.

    Attributes:
        ply: Number of moves played so far, for messages. The caller updates it.
    """

    def __init__(
        self, own: OwnGame[Any], name: str, shape: tuple[int, ...] | None = None
    ) -> None:
        self._own: Any = own
        self._name = name
        self.ply = 0
        self._shape = shape

    def require_method(self, method: str) -> None:
        """Raises UsageError if the game lacks the method ``method``."""
        if not callable(self.attribute(method, None)):
            raise UsageError(
                f"{self._name}.{method} (missing) must be a method; "
                "see tengen.games.OwnGame for what it returns"
            )

    def attribute(self, name: str, default: Any) -> Any:
        """Returns the game's attribute ``name``, or ``default`` if it is missing."""
        try:
            return getattr(self._own, name, default)
        except RAISED as error:
            raise raised(f"{self._name}.{name} (attribute)", error) from error

    def call(self, method: str, *args: Any) -> Any:
        """Calls a method of the game; returns its result without verifying it."""
        return call_method(self._name, self._own, self.ply, method, *args)

    def fail(self, method: str, value: Any, rule: str, advice: str) -> NoReturn:
        """Raises UsageError: ``value``, returned by ``method``, breaks ``rule``."""
        text = value if isinstance(value, str) else repr(value)
        raise UsageError(
            f"{self._name}.{method} ({' '.join(text.split())}) {rule} "
            f"at ply {self.ply}; {advice}"
        )

    def count(self, name: str, value: Any) -> int:
        """Returns the attribute value ``value``; fails unless it is 1 to 65535."""
        if not is_int(value) or not 1 <= value <= _MAX_COUNT:
            raise UsageError(
                f"{self._name}.{name} ({value!r}) must be an integer, 1 to "
                f"{_MAX_COUNT}; set it in the class"
            )
        return int(value)

    def terminal(self, state: Any) -> bool:
        """Returns whether the game has ended; fails if the result is not a bool."""
        terminal = self.call("is_terminal", state)
        if not isinstance(terminal, bool | np.bool_):
            self.fail("is_terminal", terminal, "must be a bool", "return bool(...)")
        return bool(terminal)

    def legal(self, state: Any) -> list[int]:
        """Returns the legal actions; fails on a wrong number, range or order."""
        actions = self.call("legal_actions", state)
        if not isinstance(actions, Sequence | np.ndarray) or not all(
            map(is_int, actions)
        ):
            self.fail("legal_actions", actions, "must be integers", "return a list")
        legal = [int(action) for action in actions]
        if not legal:
            self.fail(
                "legal_actions",
                actions,
                "must not be empty before the game is finished",
                "end the game in is_terminal, or add a pass",
            )
        if sorted(set(legal)) != legal:
            self.fail(
                "legal_actions", legal, "must be increasing", "return sorted(actions)"
            )
        if legal[0] < 0 or legal[-1] >= self._own.num_actions:
            self.fail(
                "legal_actions",
                legal,
                f"must be 0 to {self._own.num_actions - 1}",
                "raise num_actions, or number the actions from 0",
            )
        return legal

    def to_play(self, state: Any) -> int:
        """Returns the side to move; fails unless it is 0 or 1."""
        player = self.call("to_play", state)
        if not is_int(player) or player not in (0, 1):
            self.fail("to_play", player, "must be 0 or 1", "use 0 for the first player")
        return int(player)

    def returns(self, state: Any) -> tuple[float, float]:
        """Returns the results of both players; fails if they are not valid."""
        value = self.call("returns", state)
        try:
            first, second = (float(result) for result in value)
        except (TypeError, ValueError):
            self.fail("returns", value, "must be two numbers", "return (first, second)")
        if (first, second) not in ((1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)):
            self.fail(
                "returns",
                value,
                "must be (1, -1), (-1, 1) or (0, 0)",
                "use 0 for a draw",
            )
        return first, second

    def observation(self, state: Any) -> Planes:
        """Returns the verified planes of a position, ``[C, H, W]`` float32."""
        planes = self.planes("observation", self.call("observation", state))
        if not planes[0].any():
            self.fail(
                "observation",
                "plane 0 is all 0",
                "must be 1 on all points of the board",
                "insert np.ones((H, W)) as plane 0",
            )
        return planes

    def planes(self, method: str, planes: Any) -> Planes:
        """Returns ``planes``; fails on a wrong type, shape or value."""
        if not isinstance(planes, np.ndarray):
            self.fail(
                method,
                f"a {type(planes).__name__}",
                "must be a numpy array",
                "return np.stack([...]) of the planes",
            )
        if planes.ndim != 3 or 0 in planes.shape:
            self.fail(
                method,
                f"shape {planes.shape}",
                "must be [C, H, W]",
                "stack planes of H x W",
            )
        if planes.dtype != np.float32:
            self.fail(
                method,
                f"dtype {planes.dtype}",
                "must be float32",
                "add .astype(np.float32)",
            )
        if self._shape is None:
            self._shape = planes.shape
        if planes.shape != self._shape:
            self.fail(
                method,
                f"shape {planes.shape}",
                f"must be {self._shape}, as in the initial state",
                "use the same shape for every position",
            )
        if not np.isfinite(planes).all():
            self.fail(method, "nan or inf", "must be finite", "correct the planes")
        return planes

    def decisive(self, state: Any, legal: list[int]) -> tuple[list[int], int] | None:
        """Returns the verified ``decisive_actions``, or None if the game has none."""
        if getattr(self._own, "decisive_actions", None) is None:
            return None
        found = self.call("decisive_actions", state)
        if not is_decisive(found, legal):
            self.fail(
                "decisive_actions",
                found,
                f"must be a tuple of a list of legal actions {legal}, in increasing "
                "order, and 1, 0 or -1",
                "see tengen.games.OwnGame",
            )
        actions, result = found
        return list(actions), int(result)

    def snapshot(self, state: Any) -> tuple[Any, ...]:
        """Returns the verified results of all the game's methods for a position."""
        text = self.call("to_string", state)
        if not isinstance(text, str):
            self.fail("to_string", text, "must be a str", "return the board as text")
        terminal = self.terminal(state)
        return (
            self.to_play(state),
            terminal,
            None if terminal else tuple(self.legal(state)),
            self.returns(state) if terminal else None,
            self.observation(state).tobytes(),
            text,
        )


def is_decisive(found: Any, legal: Sequence[int]) -> bool:
    """Returns whether ``found`` has the form of ``decisive_actions``."""
    if not isinstance(found, tuple) or len(found) != 2:
        return False
    actions, result = found
    if not is_int(result) or not -1 <= result <= 1:
        return False
    if not isinstance(actions, list | tuple) or not all(map(is_int, actions)):
        return False
    rises = all(first < second for first, second in itertools.pairwise(actions))
    return bool(actions) and rises and set(actions) <= set(legal)


def is_int(value: Any) -> bool:
    """Returns whether ``value`` is a Python or numpy integer, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
