"""Games by the search of minigo, played slowly by its reference.

As core/selfplay/minigo_worker.h and core/selfplay/match_seat.h say how.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tengen import _core, games
from tengen.actors import SelfplayConfig
from tengen.search import SearchConfig
from tengen.search.reference_minigo import MinigoNode, ReferenceMinigo

SEED, GENERATION = 5, 1
# Purposes of random numbers, in core/base/rng.h.
MOVE_CHOICE, PLAYOUT_CAP, RESIGNATION = 3, 4, 11


def evaluate_planes(planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits ``[B, A]`` and values ``[B]`` that turn with the board, exactly.

    All are whole multiples of 1/256, so that sums of values are exact in any order.
    """
    own, opponent = planes[:, 1], planes[:, 2]
    padded = np.pad(own + 2 * opponent, ((0, 0), (1, 1), (1, 1)))
    beside = padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2]
    beside += padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1]
    logits = np.concatenate(
        [beside.reshape(len(planes), -1) / 4, np.full((len(planes), 1), -0.5)], axis=1
    )
    crowded = (beside * (own - opponent)).sum(axis=(1, 2))
    stones = (own - opponent).sum(axis=(1, 2))
    value = np.clip((crowded + 16 * stones) / 256, -1, 1)
    return logits, value.astype(np.float32)


def evaluate(state: Any) -> tuple[list[float], float]:
    """The same of one position; its logits are those of its actions."""
    logits, value = evaluate_planes(state.observation()[None])
    return logits[0].tolist(), float(value[0])


def pass_alive_of(name: str, moves: list[int]) -> set[int]:
    """Returns the pass-alive points of a position of Go."""
    owners = _core.GoPosition(name, moves).pass_alive()
    return set(np.flatnonzero(owners).tolist())


def most_visited(root: MinigoNode, config: SearchConfig, out: set[int]) -> int | None:
    """Returns the most visited action that is not out; None where all are."""
    scale = 2 * (np.log((1 + root.visits + 19652) / 19652) + config.minigo_c_init)

    def order(action: int) -> tuple[int, float]:
        visits = root.edge_visits[action]
        explored = scale * np.sqrt(1 + root.visits) * root.prior[action]
        return visits, root.q(action) + explored / (1 + visits)

    left = [action for action in root.prior if action not in out]
    return max(left, key=order) if left else None


class SlowGame:
    """One game of self-play, as core/selfplay/minigo_worker.h says it.

    Args:
        name: The game.
        config: How it is played.
        index: Its index.
        opening: What it begins with.
    """

    def __init__(
        self, name: str, config: SelfplayConfig, index: int, opening: list[int]
    ) -> None:
        self.game = games.make(name)
        self.has_pass = self.game.num_actions > self.game.height * self.game.width
        self.pass_action = self.game.num_actions - 1 if self.has_pass else -1
        self.config = config
        self.index = index
        self.state = self.game.new_state()
        self.moves: list[int] = []
        for action in opening:
            self.apply(action)
        self.search = ReferenceMinigo(config.search, evaluate, may_pass=config.may_pass)
        self.passes = [0, 0]
        self.plies: list[dict[str, Any]] = []
        self.value_to_first = 0.0
        self.num_restricted = 0

    def apply(self, action: int) -> None:
        self.state.apply(action)
        self.moves.append(action)

    def rng(self, ply: int, purpose: int) -> _core.Rng:
        return _core.Rng(SEED, GENERATION, self.index, ply, purpose)

    def run(self) -> None:
        config = self.config
        bound = config.resign_from
        drawn = 1 - self.rng(0, RESIGNATION).uniform()
        bound += (1 - bound) * drawn
        while not self.is_over():
            ply = self.state.ply
            is_full = self.rng(ply, PLAYOUT_CAP).uniform() < config.full_probability
            is_full |= not self.plies
            if is_full and config.full_probability < 1:
                self.search.clear_subtree()
            found = self.search.search(
                self.state,
                config.full_simulations if is_full else config.cheap_simulations,
                explore=is_full,
                seed=SEED,
                generation=GENERATION,
                game=self.index,
            )
            sign = 1 if self.state.to_play == 0 else -1
            if found.root_value_to_play < -bound:
                self.value_to_first = -sign
                return
            is_drawn = ply < config.soft_pick_plies
            alive = self.pass_alive()
            self.num_restricted += len(alive & set(self.state.legal_actions()))
            if is_drawn:
                action = self.draw(found.visits)
            else:
                root = self.search.root
                assert root is not None
                best = most_visited(root, config.search, alive)
                action = self.pass_action if best is None else best
            target = self.target(found, alive, is_drawn) if is_full else {}
            self.plies.append(
                {"action": action, "value": found.root_value_to_play, "target": target}
            )
            self.count_pass(self.state.to_play, action)
            self.search.play(action)
            self.apply(action)

    def is_over(self) -> bool:
        if self.state.is_terminal():
            self.value_to_first = self.state.returns()[0]
            return True
        if not self.has_pass or self.config.settled_playout_share > 0:
            return False
        position = _core.GoPosition(self.game.name, self.moves)
        owners = position.pass_alive()
        if not owners.all():
            return False
        self.value_to_first = float(np.sign(owners.sum() - 7.5))
        return True

    def count_pass(self, player: int, action: int) -> None:
        if self.passes[player] < self.config.restrict_pass_alive_after:
            is_pass = action == self.pass_action
            self.passes[player] = self.passes[player] + 1 if is_pass else 0

    def pass_alive(self) -> set[int]:
        limit = self.config.restrict_pass_alive_after
        if not self.has_pass or self.passes[1 - self.state.to_play] < limit:
            return set()
        return pass_alive_of(self.game.name, self.moves)

    def draw(self, visits: dict[int, int]) -> int:
        points = {a: n for a, n in visits.items() if a != self.pass_action and n > 0}
        if not points:
            return self.pass_action
        weights = {a: n**self.config.soft_pick_exponent for a, n in points.items()}
        left = self.rng(self.state.ply, MOVE_CHOICE).uniform() * sum(weights.values())
        for action, weight in weights.items():
            left -= weight
            if left < 0:
                return action
        return action

    def target(self, found: Any, alive: set[int], is_drawn: bool) -> dict[int, float]:
        power = self.config.soft_pick_exponent if is_drawn else 1.0
        weights = {
            action: visits**power
            for action, visits in found.pruned.items()
            if visits > 0 and action not in alive
        }
        total = sum(weights.values())
        if total == 0:
            return {self.pass_action: 1.0}
        return {action: weight / total for action, weight in weights.items()}


def slow_match_game(
    name: str, players: list[SearchConfig], num_simulations: int, a_moves_first: bool
) -> list[int]:
    """Returns the moves of a game of a match without an opening.

    Each player keeps its tree over both sides' moves, and never plays on pass-alive
    points. The game ends where all points are.

    Args:
        name: A game of Go.
        players: How A and B search, with the same evaluation.
        num_simulations: A move, beside the visits that are kept.
        a_moves_first: Whether A is Black.
    """
    searches = [ReferenceMinigo(config, evaluate) for config in players]
    game = games.make(name)
    state = game.new_state()
    moves: list[int] = []
    while not state.is_terminal():
        alive = pass_alive_of(name, moves)
        if len(alive) == game.num_actions - 1:
            break
        mover = state.to_play if a_moves_first else 1 - state.to_play
        searches[mover].search(state, num_simulations)
        root = searches[mover].root
        assert root is not None
        best = most_visited(root, players[mover], alive)
        moves.append(game.num_actions - 1 if best is None else best)
        for search in searches:
            search.play(moves[-1])
        state.apply(moves[-1])
    return moves
