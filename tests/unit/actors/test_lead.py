"""Leads that self-play records, against slow searches of games with other komi."""

import random

import numpy as np
import pytest

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.search import SearchConfig
from tests.oracle.slow_lead import even_place, slow_lead

SEED, GENERATION, SHARE = 5, 1, 0.4
LEAD = 16  # the purpose, in core/base/rng.h


def evaluate_planes(planes):
    """Logits ``[B, A]`` and values ``[B]`` that turn with the board, exactly."""
    own, opponent = planes[:, 1], planes[:, 2]
    padded = np.pad(own + 2 * opponent, ((0, 0), (1, 1), (1, 1)))
    beside = padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2]
    beside += padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1]
    logits = np.concatenate(
        [beside.reshape(len(planes), -1), np.zeros((len(planes), 1))], axis=1
    )
    half_points = np.rint(40 * planes[:, 14, 0, 0])
    crowded = (beside * (own - opponent)).sum(axis=(1, 2))
    stones = (own - opponent).sum(axis=(1, 2))
    value = np.clip((crowded + 16 * stones + 8 * half_points) / 256, -1, 1)
    return logits, value.astype(np.float32)


def evaluate(state):
    logits, value = evaluate_planes(state.observation()[None])
    return logits[0].tolist(), float(value[0])


def play(name, config):
    queue = _core.GameQueue(seed=SEED, generation=GENERATION, model=0, num_games=3)
    frames = _core.GameFrames()
    port = _core.make_selfplay_worker(name, config.to_native(), queue, frames)
    while num_rows := port.next():
        policy, value = evaluate_planes(port.planes[:num_rows])
        port.policy[:num_rows], port.value[:num_rows] = policy, value
        port.done()
    return [_core.decode_game(frame) for frame in frames.take()]


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
@pytest.mark.parametrize("name", ["go/4", "go/5/komi=-1.5"])
def test_leads_are_those_of_slow_searches(name, policy):
    search = SearchConfig(policy=policy)
    config = SelfplayConfig(
        search=search,
        full_simulations=16,
        cheap_simulations=4,
        full_probability=0.6,
        max_opening_plies=2,
        lead_share=SHARE,
        lead_simulations=6,
    )
    leads = []
    for record in play(name, config):
        record.variant = name
        for ply, one in enumerate(record.plies):
            at = len(record.opening) + ply
            rng = _core.Rng(SEED, GENERATION, record.game_index, at, LEAD)
            is_drawn = one.policy_weight > 0 and rng.uniform() < SHARE
            assert is_drawn == (one.lead != _core.NO_LEAD)
            if is_drawn:
                found = one.lead / _core.LEADS_PER_POINT
                wanted = slow_lead(record, ply, evaluate, search, 6)
                # Rounded to eighths; a value is the mean of float32.
                assert abs(found - wanted) < 0.063
                leads.append(found)
    assert len(leads) > 10
    assert min(leads) < 0 < max(leads)
    assert len({abs(lead) % 0.5 for lead in leads}) > 2


def test_the_slow_reference_finds_where_a_value_is_nothing():
    rng = random.Random(1)
    for _ in range(200):
        place = rng.uniform(-40, 40)

        def value(given, place=place):
            return min(1.0, max(-1.0, (place - given) / 8))

        assert abs(even_place(value, value(0), -50, 60) - place) < 1e-9
