"""Checks a game of one's own by playing it, and says which method is wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tengen.errors import UsageError
from tengen.games.facts import GameFacts
from tengen.games.protocol import OwnGame, Planes
from tengen.games.raised import RAISED, call_method, raised

__all__ = ["check_own_game", "check_position"]

_METHODS = (
    "initial_state",
    "to_play",
    "legal_actions",
    "apply",
    "is_terminal",
    "returns",
    "observation",
    "to_string",
)
_SYMMETRY_METHODS = ("transform_action", "transform_planes")
# Actions and plies are stored as 16 bits.
_MAX_COUNT = 65535


def check_own_game(
    own: OwnGame[Any], name: str = "", num_games: int = 10, seed: int = 0
) -> GameFacts:
    """Plays random games and verifies every method of a game.

    Args:
        own: The game; see `tengen.games.OwnGame` for what must hold.
        name: What messages call it; its class where empty.
        num_games: How many games to play.
        seed: Of the random moves; the same seed plays the same games.

    Returns:
        What was seen of the games.

    Raises:
        UsageError: A method is missing, raised, or broke the protocol; names the
            method and the value.
    """
    check = _Check(own, name or type(own).__name__)
    check.declarations()
    for game_index in range(num_games):
        check.random_game(random.Random(f"{seed} {game_index}"))
    return check.facts


def check_position(
    own: OwnGame[Any], state: Any, ply: int, shape: tuple[int, ...]
) -> None:
    """Verifies what a game answers of one position.

    Args:
        own: The game.
        state: The position.
        ply: Moves made so far.
        shape: Of the planes, as in the initial position.

    Raises:
        UsageError: As `check_own_game`.
    """
    check = _Check(own, type(own).__name__, shape)
    check.position(state, ply)


class _Check:
    """The checks, and where in which game they are, for messages."""

    def __init__(
        self,
        own: OwnGame[Any],
        name: str,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self._own: Any = own
        self._name = name
        self._ply = 0
        self._shape = shape
        self.facts = GameFacts()

    def declarations(self) -> None:
        """Checks what is fixed: methods, counts, layout."""
        if not any(callable(getattr(self._own, name, None)) for name in _METHODS):
            raise UsageError(
                f"{self._name} must be a game, with the methods of "
                f"tengen.games.OwnGame, or an environment, a gymnasium.Env with reset "
                f"and step; it has neither"
            )
        for method in _METHODS:
            self._require_method(method)
        for count in ("num_actions", "max_plies"):
            self._count(count, self._attribute(count, None))
        num_symmetries = self._attribute("num_symmetries", 1)
        self._num_symmetries = self._count("num_symmetries", num_symmetries)
        if self._num_symmetries > 1:
            for method in _SYMMETRY_METHODS:
                self._require_method(method)
            self._actions_are_permuted()
        planes = self._observation(self._call("initial_state"))
        self._layout_fits(planes)
        self._planes_are_permuted(planes.shape)

    def position(self, state: Any, ply: int) -> None:
        """Checks one position."""
        self._ply = ply
        self._snapshot(state)
        if not self._terminal(state) and ply >= self._own.max_plies:
            self._fail("is_terminal", False, "must be True", "raise max_plies")

    def random_game(self, rng: random.Random) -> None:
        """Plays one game, and beside it the same game under one symmetry."""
        symmetry = rng.randrange(self._num_symmetries)
        self._ply = 0
        state = self._call("initial_state")
        turned = self._call("initial_state")
        while True:
            self._same_under_symmetry(state, turned, symmetry)
            if self._terminal(state):
                break
            if self._ply >= self._own.max_plies:
                self._fail("is_terminal", False, "must be True", "raise max_plies")
            action = rng.choice(self._legal(state))
            before = self._snapshot(state)
            child = self._call("apply", state, action)
            if self._snapshot(state) != before:
                self._fail(
                    "apply",
                    f"action {action}",
                    "must not change the state that it is given",
                    "return a changed copy",
                )
            if symmetry:
                turned_action = self._call("transform_action", action, symmetry)
                turned = self._call("apply", turned, turned_action)
            else:
                turned = child
            state = child
            self._ply += 1
        self.facts.finish(self._ply, self._returns(state)[0])

    def _require_method(self, method: str) -> None:
        if not callable(self._attribute(method, None)):
            raise UsageError(
                f"{self._name}.{method} (missing) must be a method; "
                "see tengen.games.OwnGame for what it returns"
            )

    def _attribute(self, name: str, default: Any) -> Any:
        try:
            return getattr(self._own, name, default)
        except RAISED as error:
            raise raised(f"{self._name}.{name} (attribute)", error) from error

    def _call(self, method: str, *args: Any) -> Any:
        return call_method(self._name, self._own, self._ply, method, *args)

    def _fail(self, method: str, value: Any, rule: str, advice: str) -> NoReturn:
        text = value if isinstance(value, str) else repr(value)
        raise UsageError(
            f"{self._name}.{method} ({' '.join(text.split())}) {rule} "
            f"at ply {self._ply}; {advice}"
        )

    def _count(self, name: str, value: Any) -> int:
        if not _is_int(value) or not 1 <= value <= _MAX_COUNT:
            raise UsageError(
                f"{self._name}.{name} ({value!r}) must be an integer, 1 to "
                f"{_MAX_COUNT}; set it in the class"
            )
        return int(value)

    def _layout_fits(self, planes: Planes) -> None:
        layout = self._attribute("policy_layout", "flat")
        _, height, width = planes.shape
        wanted = {
            "cells": height * width,
            "cells_and_pass": height * width + 1,
            "columns": width,
            "flat": self._own.num_actions,
        }
        if layout not in wanted:
            raise UsageError(
                f"{self._name}.policy_layout ({layout!r}) must be one of "
                f"{', '.join(wanted)}; use flat if unsure"
            )
        if self._own.num_actions != wanted[layout]:
            raise UsageError(
                f"{self._name}.policy_layout ({layout!r}) must have "
                f"{wanted[layout]} actions on planes {planes.shape}, and num_actions "
                f"is {self._own.num_actions}; use flat if actions are no cells"
            )

    def _actions_are_permuted(self) -> None:
        every = list(range(self._own.num_actions))
        for symmetry in range(self._num_symmetries):
            image = [self._call("transform_action", a, symmetry) for a in every]
            if not all(map(_is_int, image)) or sorted(image) != every:
                self._fail(
                    "transform_action",
                    f"symmetry {symmetry}",
                    "must take every action to another one in range",
                    "no two actions may share an image",
                )
            if symmetry == 0 and image != every:
                self._fail(
                    "transform_action",
                    "symmetry 0",
                    "must leave every action as it is",
                    "number the identity 0",
                )

    def _planes_are_permuted(self, shape: tuple[int, ...]) -> None:
        entries = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for symmetry in range(1, self._num_symmetries):
            moved = self._planes(
                "transform_planes", self._call("transform_planes", entries, symmetry)
            )
            if not np.array_equal(np.sort(moved, axis=None), entries.ravel()):
                self._fail(
                    "transform_planes",
                    f"symmetry {symmetry}",
                    "must only move the entries of the planes",
                    "turn and mirror them, or declare fewer symmetries",
                )

    def _terminal(self, state: Any) -> bool:
        terminal = self._call("is_terminal", state)
        if not isinstance(terminal, bool | np.bool_):
            self._fail("is_terminal", terminal, "must be a bool", "return bool(...)")
        return bool(terminal)

    def _legal(self, state: Any) -> list[int]:
        actions = self._call("legal_actions", state)
        if not isinstance(actions, Sequence | np.ndarray) or not all(
            map(_is_int, actions)
        ):
            self._fail("legal_actions", actions, "must be integers", "return a list")
        legal = [int(action) for action in actions]
        if not legal:
            self._fail(
                "legal_actions",
                actions,
                "must not be empty before the game is finished",
                "end the game in is_terminal, or add a pass",
            )
        if sorted(set(legal)) != legal:
            self._fail(
                "legal_actions", legal, "must be increasing", "return sorted(actions)"
            )
        if legal[0] < 0 or legal[-1] >= self._own.num_actions:
            self._fail(
                "legal_actions",
                legal,
                f"must be 0 to {self._own.num_actions - 1}",
                "raise num_actions or number the actions from 0",
            )
        return legal

    def _to_play(self, state: Any) -> int:
        player = self._call("to_play", state)
        if not _is_int(player) or player not in (0, 1):
            self._fail("to_play", player, "must be 0 or 1", "0 moves first")
        return int(player)

    def _returns(self, state: Any) -> tuple[float, float]:
        value = self._call("returns", state)
        try:
            first, second = (float(result) for result in value)
        except (TypeError, ValueError):
            self._fail(
                "returns", value, "must be two numbers", "return (first, second)"
            )
        if (first, second) not in ((1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)):
            self._fail(
                "returns",
                value,
                "must be (1, -1), (-1, 1) or (0, 0)",
                "the game is zero-sum; 0 is a draw",
            )
        return first, second

    def _observation(self, state: Any) -> Planes:
        planes = self._planes("observation", self._call("observation", state))
        if not planes[0].any():
            self._fail(
                "observation",
                "plane 0 is all 0",
                "must be 1 on the board in plane 0",
                "put np.ones((H, W)) before the others",
            )
        return planes

    def _planes(self, method: str, planes: Any) -> Planes:
        if not isinstance(planes, np.ndarray):
            self._fail(
                method,
                f"a {type(planes).__name__}",
                "must be a numpy array",
                "return np.stack([...]) of the planes",
            )
        if planes.ndim != 3 or 0 in planes.shape:
            self._fail(
                method,
                f"shape {planes.shape}",
                "must be [C, H, W]",
                "stack planes of H x W",
            )
        if planes.dtype != np.float32:
            self._fail(
                method,
                f"dtype {planes.dtype}",
                "must be float32",
                "add .astype(np.float32)",
            )
        if self._shape is None:
            self._shape = planes.shape
        if planes.shape != self._shape:
            self._fail(
                method,
                f"shape {planes.shape}",
                f"must be {self._shape}, as in the initial state",
                "give every position the same planes",
            )
        if not np.isfinite(planes).all():
            self._fail(
                method, "nan or inf", "must be finite", "check the planes' values"
            )
        return planes

    def _snapshot(self, state: Any) -> tuple[Any, ...]:
        """Everything that the protocol shows of a position, compared by value."""
        text = self._call("to_string", state)
        if not isinstance(text, str):
            self._fail("to_string", text, "must be a str", "return the board as text")
        terminal = self._terminal(state)
        return (
            self._to_play(state),
            terminal,
            None if terminal else tuple(self._legal(state)),
            self._returns(state) if terminal else None,
            self._observation(state).tobytes(),
            text,
        )

    def _same_under_symmetry(self, state: Any, turned: Any, symmetry: int) -> None:
        """Checks a position, and that its transformed twin is its transform."""
        snapshot = self._snapshot(state)
        if snapshot != self._snapshot(state):
            self._fail(
                "observation",
                "asked twice",
                "must depend on the state only, as all methods must",
                "keep nothing in the game between calls",
            )
        player, terminal, legal, _, planes, _ = snapshot
        if not terminal:
            self.facts.see(self._ply, player, legal, planes)
        if self._num_symmetries == 1:
            return
        label = f"symmetry {symmetry}"
        planes = self._planes(
            "transform_planes",
            self._call("transform_planes", self._observation(state), symmetry),
        )
        if not np.array_equal(planes, self._observation(turned)):
            self._fail(
                "transform_planes",
                label,
                "must give the planes of the game with transformed actions",
                "see transform_action, or declare fewer symmetries",
            )
        player, terminal, legal, returns, _, _ = self._snapshot(turned)
        if legal is not None and snapshot[2] is not None:
            image = [
                self._call("transform_action", action, symmetry)
                for action in snapshot[2]
            ]
            same = tuple(sorted(image)) == legal
        else:
            same = snapshot[2] is legal
        if not same or (player, terminal, returns) != (
            snapshot[0],
            snapshot[1],
            snapshot[3],
        ):
            self._fail(
                "transform_action",
                label,
                "must lead to a game with the same rules and result",
                "declare fewer symmetries",
            )


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
