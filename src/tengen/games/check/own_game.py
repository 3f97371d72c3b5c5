"""Plays a user's game to check it, and reports methods that break the protocol."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tengen.errors import UsageError
from tengen.games.check.verified_game import VerifiedGame, is_int
from tengen.games.protocol import OwnGame, Planes

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
# Maximum number of actions of each kind, in a position, whose replies the check plays.
_MOST_REPLIES = 2
_SYMMETRY_METHODS = ("transform_action", "transform_planes")


def check_own_game(
    own: OwnGame[Any], name: str = "", num_games: int = 10, seed: int = 0
) -> GameFacts:
    """Plays random games, and verifies the results of all methods of a game.

    Args:
        own: The user's game, which should implement `tengen.games.OwnGame`.
        name: The game's name in error messages; empty for its class name.
        num_games: Number of games to play.
        seed: Seed of the random moves. The same seed gives the same games.

    Returns:
        Statistics of the random games.

    Raises:
        UsageError: A method is missing, raises an exception or breaks the protocol. The
            message names the method and the value.
    """
    check = _Check(own, name or type(own).__name__)
    check.declarations()
    for game_index in range(num_games):
        check.random_game(random.Random(f"{seed} {game_index}"))
    return check.facts


def check_position(
    own: OwnGame[Any], state: Any, ply: int, shape: tuple[int, ...]
) -> None:
    """Verifies the values that a game's methods return for one position.

    Args:
        own: The user's game.
        state: The position.
        ply: Number of moves played so far.
        shape: Shape of the planes, as in the initial position.

    Raises:
        UsageError: As for `check_own_game`.
    """
    check = _Check(own, type(own).__name__, shape)
    check.position(state, ply)


class _Check(VerifiedGame):
    """Checks a game's attributes, its positions and complete games."""

    def __init__(
        self, own: OwnGame[Any], name: str, shape: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(own, name, shape)
        self.facts = GameFacts()

    def declarations(self) -> None:
        """Checks a game's methods, counts, policy layout and symmetries."""
        if not any(callable(getattr(self._own, name, None)) for name in _METHODS):
            raise UsageError(
                f"{self._name} must be a game (see tengen.games.OwnGame) or an "
                "environment (a gymnasium.Env); it has the methods of neither"
            )
        for method in _METHODS:
            self.require_method(method)
        for count in ("num_actions", "max_plies"):
            self.count(count, self.attribute(count, None))
        num_symmetries = self.attribute("num_symmetries", 1)
        self._num_symmetries = self.count("num_symmetries", num_symmetries)
        if self._num_symmetries > 1:
            for method in _SYMMETRY_METHODS:
                self.require_method(method)
            self._actions_are_permuted()
        planes = self.observation(self.call("initial_state"))
        self._layout_fits(planes)
        self._planes_are_permuted(planes.shape)

    def position(self, state: Any, ply: int) -> None:
        """Checks all values that the game's methods return for a position."""
        self.ply = ply
        if not self.snapshot(state)[1]:
            self.decisive(state, self.legal(state))
        if not self.terminal(state) and ply >= self._own.max_plies:
            self.fail("is_terminal", False, "must be True", "raise max_plies")

    def random_game(self, rng: random.Random) -> None:
        """Plays a random game and its image under a symmetry, and compares them."""
        symmetry = rng.randrange(self._num_symmetries)
        self.ply = 0
        state = self.call("initial_state")
        turned = self.call("initial_state")
        twin = self.call("initial_state")
        for other in (turned, twin):
            self._same_again("initial_state", "called twice", state, other)
        while True:
            self._same_under_symmetry(state, turned, symmetry)
            if self.terminal(state):
                break
            if self.ply >= self._own.max_plies:
                self.fail("is_terminal", False, "must be True", "raise max_plies")
            legal = self.legal(state)
            action = rng.choice(legal)
            before = self.snapshot(state)
            self._decides_rightly(state, legal, rng)
            child = self.call("apply", state, action)
            if self.snapshot(state) != before:
                self.fail(
                    "apply",
                    f"action {action}",
                    "must not modify its argument",
                    "return a modified copy",
                )
            again = self.call("apply", state, action)
            self._same_again("apply", f"action {action}", child, again)
            # The twin game repeats all moves: an effect of randomness in apply may show
            # only after several moves.
            twin = self.call("apply", twin, action)
            self._same_again("apply", f"action {action}", child, twin)
            if symmetry:
                turned_action = self.call("transform_action", action, symmetry)
                turned = self.call("apply", turned, turned_action)
            else:
                turned = child
            state = child
            self.ply += 1
        self.facts.finish(self.ply, self.returns(state)[0])

    def _decides_rightly(
        self, state: Any, legal: list[int], rng: random.Random
    ) -> None:
        """Checks the actions that win at once, and some that let the opponent win."""
        decided = self.decisive(state, legal)
        if decided is None:
            return
        actions, result = decided
        winning = [action for action in legal if self._wins(state, action)]
        others = sorted(set(legal) - set(actions))
        tried = [
            action
            for group in (actions, others)
            for action in rng.sample(group, min(_MOST_REPLIES, len(group)))
        ]
        losing = {action for action in tried if self._loses(state, action)}
        if winning:
            is_right = (actions, result) == (winning, 1)
        elif result == 1:
            is_right = len(actions) == 1 and self._forces(state, actions[0], rng)
        elif result == -1:
            is_right = losing == set(tried)
        else:
            is_right = result == 0 and losing == set(tried) - set(actions)
        if not is_right:
            self.fail(
                "decisive_actions",
                decided,
                f"must agree with the rules; {winning} win at once, after "
                f"{sorted(losing)} of {sorted(tried)} the opponent wins at once, and a "
                "forced win is one action after which each reply leaves a win",
                "see tengen.games.OwnGame",
            )

    def _wins(self, state: Any, action: int) -> bool:
        child = self.call("apply", state, action)
        player = self.to_play(state)
        return self.terminal(child) and self.returns(child)[player] > 0

    def _forces(self, state: Any, action: int, rng: random.Random) -> bool:
        """Returns whether the side to move stays won after some replies."""
        player = self.to_play(state)
        child = self.call("apply", state, action)
        if self.terminal(child) or self.to_play(child) == player:
            return self._is_won(child, player)
        legal = self.legal(child)
        replies = rng.sample(legal, min(_MOST_REPLIES, len(legal)))
        afters = [self.call("apply", child, reply) for reply in replies]
        return all(self._is_won(after, player) for after in afters)

    def _is_won(self, state: Any, player: int) -> bool:
        """Returns whether ``player`` has won, or wins according to the game.

        True if it is the opponent's turn, because then the game does not say so.
        """
        if self.terminal(state):
            return self.returns(state)[player] > 0
        if self.to_play(state) != player:
            return True
        decided = self.decisive(state, self.legal(state))
        return decided is not None and decided[1] == 1

    def _loses(self, state: Any, action: int) -> bool:
        child = self.call("apply", state, action)
        if self.terminal(child) or self.to_play(child) == self.to_play(state):
            return False
        return any(self._wins(child, reply) for reply in self.legal(child))

    def _same_again(self, method: str, label: str, first: Any, second: Any) -> None:
        """Checks that two calls of ``method`` returned the same position."""
        if self._snapshot(first) != self._snapshot(second):
            self.fail(
                method,
                label,
                "must always lead to the same position",
                "use no randomness, because a search plays each move only once",
            )

    def _snapshot(self, state: Any) -> tuple[Any, ...]:
        """Returns a position's snapshot; fails if a second snapshot differs."""
        snapshot = self.snapshot(state)
        if snapshot != self.snapshot(state):
            self.fail(
                "observation",
                "asked twice",
                "must depend only on the state, like all methods",
                "store nothing in the game between calls",
            )
        return snapshot

    def _layout_fits(self, planes: Planes) -> None:
        layout = self.attribute("policy_layout", "flat")
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
                f"{self._name}.policy_layout ({layout!r}) needs num_actions "
                f"{wanted[layout]} with planes {planes.shape}, not "
                f"{self._own.num_actions}; use flat if actions are not cells"
            )

    def _actions_are_permuted(self) -> None:
        every = list(range(self._own.num_actions))
        for symmetry in range(self._num_symmetries):
            image = [self.call("transform_action", a, symmetry) for a in every]
            if not all(map(is_int, image)) or sorted(image) != every:
                self.fail(
                    "transform_action",
                    f"symmetry {symmetry}",
                    "must map the actions one to one",
                    "give each action a different image",
                )
            if symmetry == 0 and image != every:
                self.fail(
                    "transform_action",
                    "symmetry 0",
                    "must not change any action",
                    "use number 0 for the identity",
                )

    def _planes_are_permuted(self, shape: tuple[int, ...]) -> None:
        entries = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for symmetry in range(1, self._num_symmetries):
            moved = self.planes(
                "transform_planes",
                self.call("transform_planes", entries, symmetry),
            )
            if not np.array_equal(np.sort(moved, axis=None), entries.ravel()):
                self.fail(
                    "transform_planes",
                    f"symmetry {symmetry}",
                    "must only permute the entries of the planes",
                    "rotate and mirror them, or declare fewer symmetries",
                )

    def _same_under_symmetry(self, state: Any, turned: Any, symmetry: int) -> None:
        """Records ``state``; checks that ``turned`` is its image under ``symmetry``."""
        snapshot = self._snapshot(state)
        player, terminal, legal, _, planes, _ = snapshot
        if not terminal:
            self.facts.see(self.ply, player, legal, planes)
        if self._num_symmetries == 1:
            return
        label = f"symmetry {symmetry}"
        planes = self.planes(
            "transform_planes",
            self.call("transform_planes", self.observation(state), symmetry),
        )
        if not np.array_equal(planes, self.observation(turned)):
            self.fail(
                "transform_planes",
                label,
                "must match the planes of the game with transformed actions",
                "correct transform_action, or declare fewer symmetries",
            )
        player, terminal, legal, returns, _, _ = self.snapshot(turned)
        if legal is not None and snapshot[2] is not None:
            image = [
                self.call("transform_action", action, symmetry)
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
            self.fail(
                "transform_action",
                label,
                "must preserve the rules and the result",
                "declare fewer symmetries",
            )


# Maximum number of positions stored to find different ones with the same planes.
_MAX_POSITIONS = 200_000


_OTHER_SIDE = "the side to move differs"


@dataclass
class GameFacts:
    """Statistics of the random games of a check."""

    num_plies: list[int] = field(default_factory=list)
    """Length of each random game, in plies."""
    results: dict[float, int] = field(default_factory=lambda: {1: 0, 0: 0, -1: 0})
    """Numbers of games by the first player's result: 1 won, 0 drawn, -1 lost."""
    alike: str = ""
    """Describes two positions that have the same planes but different legal actions or
    sides to move; empty if there are none."""
    _legal: dict[bytes, tuple[int, tuple[int, tuple[int, ...]]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def warning(self) -> str:
        """A one-line warning that the planes lack information, or an empty string."""
        if not self.alike:
            return ""
        rule = "should determine the legal actions"
        if self.alike.endswith(_OTHER_SIDE):
            rule = "should show who moves, unless the rules treat both sides alike"
        return (
            f"observation ({self.alike}) {rule}, because positions with equal planes "
            "share an evaluation; add planes"
        )

    def see(self, ply: int, player: int, legal: tuple[int, ...], planes: bytes) -> None:
        """Records a nonterminal position, and compares it with earlier ones.

        Args:
            ply: Number of moves played so far.
            player: The side to move.
            legal: The legal actions of the position.
            planes: The bytes of the position's planes.
        """
        key = hashlib.blake2b(planes, digest_size=16).digest()
        met = self._legal.get(key)
        if met is None:
            if len(self._legal) < _MAX_POSITIONS:
                self._legal[key] = ply, (player, legal)
        elif met[1] != (player, legal) and not self.alike:
            first_ply, (first_player, first_legal) = met
            if first_player != player:
                other = _OTHER_SIDE
            else:
                action = min(set(first_legal) ^ set(legal))
                other = f"action {action} is legal in only one of them"
            self.alike = f"equal at plies {first_ply} and {ply}, although {other}"

    def finish(self, num_plies: int, first: float) -> None:
        """Records a finished game.

        Args:
            num_plies: Length of the game, in plies.
            first: The first player's result: 1, 0 or -1.
        """
        self.num_plies.append(num_plies)
        self.results[first] += 1
