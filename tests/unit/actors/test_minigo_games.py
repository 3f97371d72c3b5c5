"""Games of self-play by minigo, against slow ones played by the reference search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def play(name: str, config: SelfplayConfig, num_games: int) -> list[Any]:
    queue = _core.GameQueue(
        seed=SEED, generation=GENERATION, model=0, num_games=num_games
    )
    frames = _core.GameFrames()
    port = _core.make_selfplay_worker(name, config.to_native(), queue, frames)
    while num_rows := port.next():
        policy, value = evaluate_planes(port.planes[:num_rows])
        port.policy[:num_rows] = policy[:, : port.policy.shape[1]]
        port.value[:num_rows] = value
        port.done()
    return [_core.decode_game(frame) for frame in frames.take()]


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
        self.search = ReferenceMinigo(
            config.search, self.evaluate, may_pass=config.may_pass
        )
        self.passes = [0, 0]
        self.plies: list[dict[str, Any]] = []
        self.value_to_first = 0.0
        self.num_restricted = 0

    def evaluate(self, state: Any) -> tuple[list[float], float]:
        logits, value = evaluate_planes(state.observation()[None])
        return logits[0, : self.game.num_actions].tolist(), float(value[0])

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
            action = self.draw(found.visits) if is_drawn else self.most_visited(alive)
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
        owners = _core.GoPosition(self.game.name, self.moves).pass_alive()
        return set(np.flatnonzero(owners).tolist())

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

    def most_visited(self, alive: set[int]) -> int:
        root = self.search.root
        assert isinstance(root, MinigoNode)
        scale = 2 * (
            np.log((1 + root.visits + 19652) / 19652) + self.config.search.minigo_c_init
        )

        def order(action: int) -> tuple[int, float]:
            visits = root.edge_visits[action]
            explored = scale * np.sqrt(1 + root.visits) * root.prior[action]
            return visits, root.q(action) + explored / (1 + visits)

        left = [action for action in root.prior if action not in alive]
        return max(left, key=order) if left else self.pass_action

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


def make_config(search: dict[str, Any], **fields: Any) -> SelfplayConfig:
    """A config whose numbers are exact in float32.

    The noise is never too small to tell moves of one prior apart, in float32 or not.
    """
    search = {"minigo_value_penalty": 0.25, "minigo_noise_alpha": 1.0} | search
    defaults: dict[str, Any] = {
        "full_simulations": 24,
        "cheap_simulations": 6,
        "full_probability": 0.375,
        "soft_pick_plies": 6,
        "resign_from": 0.75,
        "settled_playout_share": 0.0,
        "num_slots": 3,
    }
    return SelfplayConfig(
        search=SearchConfig(policy="minigo", **search),
        **(defaults | fields),
    )


CASES: dict[str, tuple[str, SelfplayConfig]] = {
    "fast plies": ("go/5/nosuicide", make_config({}, max_opening_plies=3)),
    "full plies": (
        "go/4/nosuicide",
        make_config({"noise_weight": 0.5}, full_probability=1.0, may_pass=False),
    ),
    "pass-alive points": (
        "go/5/nosuicide",
        make_config(
            {"minigo_c_init": 2.5},
            restrict_pass_alive_after=0,
            resign_from=1.0,
            settled_playout_share=1.0,
        ),
    ),
    "drawn late": (
        "go/4/nosuicide",
        make_config({}, soft_pick_plies=40, restrict_pass_alive_after=1),
    ),
    "one leaf": ("go/5/nosuicide", make_config({"minigo_virtual_losses": 1})),
    "no pass": ("gomoku/6", make_config({}, resign_from=0.25)),
}


@pytest.mark.parametrize("case", CASES)
def test_games_are_those_of_the_reference(case: str) -> None:
    name, config = CASES[case]
    records = play(name, config, 3)
    assert len(records) == 3
    num_restricted = num_plies = 0
    for record in records:
        slow = SlowGame(name, config, record.game_index, list(record.opening))
        slow.run()
        found = [ply.action for ply in record.plies]
        assert found == [ply["action"] for ply in slow.plies]
        assert record.outcome == {1: 1, -1: 2, 0: 3}[int(slow.value_to_first)]
        for ply, wanted in zip(record.plies, slow.plies, strict=True):
            assert ply.root_value == pytest.approx(wanted["value"], abs=1e-5)
            assert (ply.policy_weight > 0) == bool(wanted["target"])
            assert ply.value_weight == ply.policy_weight
            total = sum(weight for _, weight in ply.policy)
            shares = {action: weight / total for action, weight in ply.policy}
            assert shares == pytest.approx(wanted["target"], abs=1e-4)
        num_restricted += slow.num_restricted
        num_plies += len(found)
    assert num_plies > 20
    if case == "pass-alive points":
        assert num_restricted > 10
