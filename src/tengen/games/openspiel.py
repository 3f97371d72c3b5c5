"""Adapter from OpenSpiel to `OwnGame`: ``openspiel/NAME``, ``openspiel/NAME(a=1)``.

OpenSpiel defines NAME, its parameters, action numbers, rules, results and the text of a
position. tengen supports the games whose properties, as OpenSpiel declares them,
satisfy `RULES`. Importing this module does not import OpenSpiel.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.errors import UsageError, did_you_mean
from tengen.games.protocol import Planes, PolicyLayout

OPENSPIEL_PREFIX = "openspiel/"
"""The prefix of the task names of OpenSpiel games."""

# Maximum number of actions and of plies. Both are stored in 16 bits.
_MAX_COUNT = 65535
# Number of random moves that test a policy layout.
_NUM_PROBED_MOVES = 200
_ADVICE = "tengen recipes --openspiel lists suitable games"


def _rule(name: str, value: str) -> Callable[[Any], bool]:
    """Returns a predicate: whether a game type's attribute ``name`` is ``value``."""
    return lambda game: getattr(game.get_type(), name).name == value


RULES: dict[str, Callable[[Any], bool]] = {
    "for two players": lambda game: game.num_players() == 2,
    "played in turn": _rule("dynamics", "SEQUENTIAL"),
    "without chance": _rule("chance_mode", "DETERMINISTIC"),
    "of perfect information": _rule("information", "PERFECT_INFORMATION"),
    "zero-sum": _rule("utility", "ZERO_SUM"),
    "rewarded at the end only": _rule("reward_model", "TERMINAL"),
    "won, drawn or lost": lambda game: (
        (game.min_utility(), game.max_utility()) == (-1, 1)
    ),
    "seen by an observation tensor": lambda game: (
        game.get_type().provides_observation_tensor
    ),
    f"of at most {_MAX_COUNT} actions": lambda game: (
        game.num_distinct_actions() <= _MAX_COUNT
    ),
    f"of at most {_MAX_COUNT} plies": lambda game: game.max_game_length() <= _MAX_COUNT,
}
"""The requirements for a game: a predicate on ``pyspiel.Game`` by its description."""


class OpenSpielGame:
    """An adapter from an OpenSpiel game to `tengen.games.OwnGame`.

    States are ``pyspiel.State`` objects. Plane 0 is ones (the board), plane 1 is ones
    if the first player is to move, and the other planes are OpenSpiel's observation
    tensor for the side to move. Plane 1 exists because many observation tensors do not
    encode the side to move. A tensor ``[C, H, W]`` keeps its shape, and ``[C, N * N]``
    becomes ``[C, N, N]``. Each entry of any other tensor becomes a plane of one cell,
    on which a board network acts as a multilayer perceptron.

    Args:
        name: ``openspiel/NAME`` or ``openspiel/NAME(parameter=value,...)``.

    Raises:
        UsageError: OpenSpiel is not installed or does not have the game, or the game
            breaks a rule of `RULES`. The message names the broken rules.
    """

    def __init__(self, name: str) -> None:
        game = _load(name)
        broken = broken_rules(game)
        if broken:
            raise UsageError(
                f"task ({name}) must be a game {' and '.join(broken)}; {_ADVICE}"
            )
        self._game = game
        with _refused_as(name):
            game.new_initial_state().legal_actions()
            self._shape = _planes_shape(game)
        self._views = threading.local()
        self.num_actions = int(game.num_distinct_actions())
        self.max_plies = int(game.max_game_length())
        self.policy_layout: PolicyLayout = self._find_layout()

    def initial_state(self) -> Any:
        """Returns the game's position before the first move."""
        return self._game.new_initial_state()

    def to_play(self, state: Any) -> int:
        """Returns the side to move, or 0 if the game has ended."""
        return max(0, int(state.current_player()))

    def legal_actions(self, state: Any) -> list[int]:
        """Returns the legal actions in increasing order."""
        actions: list[int] = state.legal_actions()
        return actions

    def apply(self, state: Any, action: int) -> Any:
        """Returns the position after an action, as a new state."""
        return state.child(action)

    def is_terminal(self, state: Any) -> bool:
        """Returns whether the game has ended."""
        return bool(state.is_terminal())

    def returns(self, state: Any) -> tuple[float, float]:
        """Returns the results (first player, second player) of a finished game."""
        first, second = state.returns()
        return first, second

    def play_out(self, state: Any, draw: Callable[[int], int]) -> tuple[float, float]:
        """Plays to the end; returns the results. Does not modify ``state``.

        Args:
            state: A position that is not terminal.
            draw: Called with the number of legal actions; returns the index of the
                action to play.
        """
        state = state.clone()
        while not state.is_terminal():
            legal = state.legal_actions()
            state.apply_action(legal[draw(len(legal))])
        return self.returns(state)

    def observation(self, state: Any) -> Planes:
        """Returns a new array of planes, ``[C, H, W]`` float32."""
        player = self.to_play(state)
        planes = np.empty(self._shape, np.float32)
        planes[0] = 1
        planes[1] = player == 0
        planes[2:] = self._tensor(state, player)
        return planes

    def to_string(self, state: Any) -> str:
        """Returns the text of the position, as OpenSpiel formats it."""
        return str(state)

    def _tensor(self, state: Any, player: int) -> NDArray[np.float32]:
        """Returns a view of a player's tensor, valid until this thread's next call."""
        view = getattr(self._views, "view", None)
        if view is None:
            from open_spiel.python.observation import make_observation

            # Reusing one buffer is 20 times faster than state.observation_tensor(),
            # which creates a list.
            view = self._views.view = make_observation(self._game)
        view.set_from(state, player)
        channels, *board = self._shape
        seen: NDArray[np.float32] = view.tensor.reshape(channels - 2, *board)
        return seen

    def _find_layout(self) -> PolicyLayout:
        """Returns the first layout that fits the number of actions and random games."""
        _, height, width = self._shape
        counts: dict[PolicyLayout, int] = {
            "cells": height * width,
            "cells_and_pass": height * width + 1,
            "columns": width,
        }
        for layout, count in counts.items():
            if count == self.num_actions and height > 1 and self._bears_out(layout):
                return layout
        return "flat"

    def _bears_out(self, layout: PolicyLayout) -> bool:
        """Returns whether moves in random games change their own cell or column."""
        rng = random.Random(0)
        state = self.initial_state()
        for _ in range(_NUM_PROBED_MOVES):
            action = rng.choice(state.legal_actions())
            before = self._tensor(state, 0).copy()
            state = state.child(action)
            if state.is_terminal():
                state = self.initial_state()
                continue
            if layout == "cells_and_pass" and action == self.num_actions - 1:
                continue
            changed = self._tensor(state, 0) != before
            # Ignore a plane that changed in most cells: it depends on the side to move.
            changed[changed.mean(axis=(1, 2)) > 0.5] = False
            cells = changed.any(axis=0)
            own = cells[:, action] if layout == "columns" else cells.flat[action]
            if not np.any(own):
                return False
        return True


def broken_rules(game: Any) -> list[str]:
    """Returns the descriptions of the `RULES` that a ``pyspiel.Game`` breaks."""
    return [words for words, holds in RULES.items() if not holds(game)]


def list_openspiel() -> list[tuple[str, str]]:
    """Returns all games that OpenSpiel registers, in alphabetical order.

    Returns:
        Pairs (name, status). The status is ``fits``, ``must be ...`` with the broken
        rules, or ``depends on its parameters: ...``.

    Raises:
        UsageError: OpenSpiel is not installed.
    """
    rows = []
    for game_type in sorted(_pyspiel().registered_games(), key=lambda t: t.short_name):
        name = game_type.short_name
        if not game_type.default_loadable:
            needed = ", ".join(game_type.parameter_specification)
            rows.append((name, f"depends on its parameters: {needed}"))
            continue
        broken = broken_rules(_load(OPENSPIEL_PREFIX + name))
        rows.append((name, f"must be {', '.join(broken)}" if broken else "fits"))
    return rows


def _pyspiel() -> Any:
    try:
        import pyspiel
    except ImportError as error:
        raise UsageError(
            f"package (open_spiel) is not installed: {error}; "
            f"{pip_install('open_spiel>=2.0')}"
        ) from None
    return pyspiel


def _load(name: str) -> Any:
    """Returns the ``pyspiel.Game`` of a task. Raises UsageError if there is none."""
    pyspiel = _pyspiel()
    text = name.removeprefix(OPENSPIEL_PREFIX)
    types = {kind.short_name: kind for kind in pyspiel.registered_games()}
    short_name = text.partition("(")[0]
    if short_name not in types:
        near = did_you_mean(short_name, types) if len(short_name) > 1 else _ADVICE
        raise UsageError(f"task ({name}) must name a game of OpenSpiel; {near}")
    with _refused_as(name):
        given = pyspiel.game_parameters_from_string(text)
        _check_counts(name, given, types[short_name].parameter_specification)
        return pyspiel.load_game(text)


def _check_counts(name: str, given: dict[str, Any], known: dict[str, Any]) -> None:
    """Raises UsageError for counts below 1, with which some OpenSpiel games crash."""
    for key, value in given.items():
        usual = known.get(key)
        if type(value) is type(usual) is int and value < 1 <= usual:
            raise UsageError(
                f"task ({name}) must have {key} at least 1; leave it out for {usual}"
            )


@contextlib.contextmanager
def _refused_as(name: str) -> Iterator[None]:
    """Context manager that converts OpenSpiel's exceptions to UsageError.

    Meanwhile stderr is redirected to /dev/null, because OpenSpiel also prints its
    errors.
    """
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    except UsageError:
        raise
    except Exception as error:  # OpenSpiel raises many types, some from C++.
        reason = " ".join(str(error).split())
        raise UsageError(
            f"task ({name}) is rejected by OpenSpiel: {reason}; write parameters as in "
            f"{OPENSPIEL_PREFIX}hex(board_size=5)"
        ) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _planes_shape(game: Any) -> tuple[int, int, int]:
    """Returns the shape ``(C, H, W)`` of all planes, including planes 0 and 1."""
    shape = game.observation_tensor_shape()
    if len(shape) == 3:
        channels, height, width = shape
        return channels + 2, height, width
    if len(shape) == 2 and math.isqrt(shape[1]) ** 2 == shape[1]:
        side = math.isqrt(shape[1])
        return shape[0] + 2, side, side
    return math.prod(shape) + 2, 1, 1
