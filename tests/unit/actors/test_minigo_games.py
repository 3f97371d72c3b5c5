"""Games of self-play by minigo, against slow ones played by the reference search."""

from __future__ import annotations

import pytest

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.search import SearchConfig
from tests.oracle.slow_minigo_games import GENERATION, SEED, SlowGame, evaluate_planes


def play(name, config, num_games):
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


def make_config(search, **fields):
    """A config whose numbers are exact in float32.

    The noise is never too small to tell moves of one prior apart, in float32 or not.
    """
    search = {"minigo_value_penalty": 0.25, "minigo_noise_alpha": 1.0} | search
    defaults = {
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
    "fast plies": (
        "go/5/nosuicide/planes=minigo",
        make_config({}, max_opening_plies=3),
    ),
    "full plies": (
        "go/4/nosuicide",
        make_config({"noise_weight": 0.5}, full_probability=1.0),
    ),
    "bootstrap": (
        "go/5/nosuicide/planes=minigo",
        make_config(
            {"noise_weight": 0.5},
            full_probability=1.0,
            resign_from=1.0,
            restrict_pass_alive_after=0,
            may_pass=False,
            prunes_target=False,
        ),
    ),
    "pass-alive points": (
        "go/5/nosuicide/planes=minigo",
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
    "one leaf": (
        "go/5/nosuicide/planes=minigo",
        make_config({"minigo_virtual_losses": 1}),
    ),
    "no pass": ("gomoku/6", make_config({}, resign_from=0.25)),
}


@pytest.mark.parametrize("case", CASES)
def test_games_are_those_of_the_reference(case):
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
