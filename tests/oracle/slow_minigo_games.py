"""Reference games with the reference search of minigo.

They follow core/selfplay/workers/minigo_worker.h and core/selfplay/match/match_seat.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from slow_games import EMPTY, STONES
from slow_go import SlowGo
from slow_minigo_score import kept, minigo_score

from tengen import _core, games
from tengen.actors import SelfplayConfig
from tengen.search import SearchConfig
from tests.oracle.search.minigo import ReferenceMinigo

SEED, GENERATION = 5, 1
# Purposes of random streams, in core/base/rng.h.
MOVE_CHOICE, PLAYOUT_CAP, RESIGNATION = 3, 4, 11


def evaluate_planes(planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns logits ``[B, A]`` and values ``[B]``, exactly equivariant to symmetries.

    All are multiples of 1/256, so that sums of values are exact in any order.
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
    """Returns the logits of all actions and the value of one position."""
    logits, value = evaluate_planes(state.observation()[None])
    return logits[0].tolist(), float(value[0])


def pass_alive_of(name: str, moves: list[int]) -> set[int]:
    """Returns the pass-alive points of both sides in a position of Go."""
    slow = SlowGo(name)
    for move in moves:
        slow.apply(move)
    return {p for p, owner in enumerate(slow_kept(slow)) if owner != EMPTY}


def slow_kept(slow: SlowGo) -> str:
    """Returns the owner of each pass-alive point, and EMPTY for other points."""
    if slow.name.endswith("/planes=minigo"):
        return kept(slow.text(), slow.width)
    alive = [slow.pass_alive(stone) for stone in STONES]
    return "".join(
        next((s for s, own in zip(STONES, alive, strict=True) if p in own), EMPTY)
        for p in range(slow.height * slow.width)
    )


class SlowGame:
    """One game of self-play, following core/selfplay/workers/minigo_worker.h.

    Args:
        name: The game.
        config: The self-play settings.
        index: The game's index.
        opening: The first moves.
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
        self.slow = SlowGo(name) if self.has_pass else None
        for action in opening:
            self.apply(action)
        self.search = ReferenceMinigo(config.search, evaluate, may_pass=config.may_pass)
        self.passes = [0, 0]
        self.plies: list[dict[str, Any]] = []
        self.value_to_first = 0.0
        self.num_restricted = 0

    def apply(self, action: int) -> None:
        self.state.apply(action)
        if self.slow is not None:
            self.slow.apply(action)

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
            num = config.full_simulations if is_full else config.cheap_simulations
            if is_full and config.full_probability < 1:
                num += self.search.clear()
            found = self.search.search(
                self.state,
                num,
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
                best = self.search.most_visited(alive)
                action = self.pass_action if best is None else best
            target = self.target(found, alive, is_drawn) if is_full else {}
            self.plies.append(
                {"action": action, "value": found.root_value_to_play, "target": target}
            )
            self.count_pass(self.state.to_play, action)
            self.search.play(action)
            self.apply(action)

    def is_over(self) -> bool:
        if self.slow is None:
            if self.state.is_terminal():
                self.value_to_first = self.state.returns()[0]
            return self.state.is_terminal()
        owners = slow_kept(self.slow)
        is_settled = EMPTY not in owners and self.config.settled_playout_share == 0
        if not self.slow.is_terminal() and not is_settled:
            return False
        if self.slow.name.endswith("/planes=minigo"):
            score = minigo_score(self.slow.text(), self.slow.width, 7.5)
        elif self.slow.is_terminal():
            score = self.slow.score()
        else:
            score = owners.count(STONES[0]) - owners.count(STONES[1]) - 7.5
        self.value_to_first = float(np.sign(score))
        return True

    def count_pass(self, player: int, action: int) -> None:
        if self.passes[player] < self.config.restrict_pass_alive_after:
            is_pass = action == self.pass_action
            self.passes[player] = self.passes[player] + 1 if is_pass else 0

    def pass_alive(self) -> set[int]:
        limit = self.config.restrict_pass_alive_after
        if not self.has_pass or self.passes[1 - self.state.to_play] < limit:
            return set()
        assert self.slow is not None
        return {p for p, owner in enumerate(slow_kept(self.slow)) if owner != EMPTY}

    def draw(self, visits: dict[int, int]) -> int:
        points = {a: n for a, n in visits.items() if a != self.pass_action and n > 0}
        if not points:
            best = self.search.most_visited()
            assert best is not None
            may_pass = self.has_pass and self.config.may_pass
            return self.pass_action if may_pass else best
        weights = {a: n**self.config.soft_pick_exponent for a, n in points.items()}
        left = self.rng(self.state.ply, MOVE_CHOICE).uniform() * sum(weights.values())
        for action, weight in weights.items():
            left -= weight
            if left < 0:
                return action
        return action

    def target(self, found: Any, alive: set[int], is_drawn: bool) -> dict[int, float]:
        power = self.config.soft_pick_exponent if is_drawn else 1.0
        if self.config.prunes_target:
            visited = {a: n for a, n in found.pruned.items() if a not in alive}
        else:
            visited = found.visits
        weights = {action: n**power for action, n in visited.items() if n > 0}
        total = sum(weights.values())
        if total == 0:
            return {self.pass_action: 1.0}
        return {action: weight / total for action, weight in weights.items()}


def slow_match_game(
    name: str, players: list[SearchConfig], num_simulations: int, a_moves_first: bool
) -> list[int]:
    """Returns the moves of a match game without an opening.

    Each player keeps its tree over both sides' moves, and never plays on pass-alive
    points. The game ends when all points are pass-alive.

    Args:
        name: A game of Go.
        players: Search settings of A and B; both use the same evaluation.
        num_simulations: Simulations per move, in addition to reused visits.
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
        best = searches[mover].most_visited(alive)
        moves.append(game.num_actions - 1 if best is None else best)
        for search in searches:
            search.play(moves[-1])
        state.apply(moves[-1])
    return moves
