"""Which number of which event is drawn under which name, at which step."""

import json

import pytest

from tengen.observe.curves.points import PointMaker
from tengen.observe.roles import has_actors
from tests.unit.observe.curves.curve_events import acted, learned

# As a run of PPO wrote them, but for the numbers.
PPO = {
    "policy_loss": -0.25,
    "baseline_loss": 0.125,
    "entropy": 0.5,
    "approximate_kl": 0.01,
    "clip_fraction": 0.2,
    "explained_variance": 0.75,
    "grad_norm": 2.0,
    "learning_rate": 1e-3,
    "lag_steps": 1.5,
    "too_old": 0.25,
    "sample_wait_s": 9.0,
    "train_s": 9.0,
    "num_new": 16,
    "steps_left": 4,
    "generation": 8,
    "idle_s": 9.0,
    "seconds": 9.0,
}


def test_environments_have_the_names_of_cleanrl():
    maker = PointMaker(in_environments=True)
    assert maker.take(acted(10.0, 21.5, mean_length=33.0)) is None
    point = maker.take(learned(12.0, 512, 40, **PPO))
    assert (point.step, point.time_s) == (512, 12.0)
    assert point.values == {
        "charts/episodic_return": 21.5,
        "charts/episodic_length": 33.0,
        "charts/episodes": 7.0,
        "charts/learner_steps": 40.0,
        "charts/learning_rate": 1e-3,
        "charts/lag_steps": 1.5,
        "charts/too_old": 0.25,
        "losses/loss": 0.5,
        "losses/policy_loss": -0.25,
        "losses/value_loss": 0.125,
        "losses/entropy": 0.5,
        "losses/approx_kl": 0.01,
        "losses/clipfrac": 0.2,
        "losses/explained_variance": 0.75,
        "losses/grad_norm": 2.0,
    }


def test_environments_tell_where_time_goes():
    maker = PointMaker(in_environments=True)
    told = {"simulation_busy": 0.25, "answer_wait": 0.5, "room_wait": 0.125}
    maker.take(acted(1.0, 2.0, **told))
    served = {"batch_rows": 12.0, "batch_capacity": 16, "wait_share": 0.2}
    event = {"kind": "turn", "role": "inference", "time_s": 1.0, **served}
    assert maker.take(event) is None
    values = maker.take(learned(2.0, 10, 4)).values
    assert values["charts/simulation_share"] == 0.25
    assert values["charts/answer_wait_share"] == 0.5
    assert values["charts/room_wait_share"] == 0.125
    assert values["charts/inference_wait_share"] == 0.2
    assert values["charts/batch_fill"] == 0.75


def test_returns_of_actors_by_themselves_are_one_mean():
    maker = PointMaker(in_environments=True)
    for index, mean in enumerate((10.0, 20.0, None)):
        maker.take(acted(1.0, mean, mean_length=None, index=index))
    assert maker.take(learned(2.0, 10, 4)).values["charts/episodic_return"] == 15.0
    maker.take(acted(3.0, 40.0, mean_length=8.0, index=1))
    values = maker.take(learned(4.0, 20, 8)).values
    assert values["charts/episodic_return"] == 25.0
    assert values["charts/episodic_length"] == 8.0


def test_q_learners_have_a_td_loss():
    maker = PointMaker(in_environments=True)
    values = maker.take(learned(1.0, 10, 4, td_error=0.25, q=8.0)).values
    assert values["losses/td_loss"] == 0.5
    assert values["losses/td_error"] == 0.25
    assert values["losses/q_values"] == 8.0
    assert "losses/loss" not in values


def test_a_metric_of_ones_own_is_a_loss():
    maker = PointMaker(in_environments=True)
    values = maker.take(learned(1.0, 10, 4, curiosity=3, told="no", kept=True)).values
    assert values["losses/curiosity"] == 3.0
    assert not {"losses/told", "losses/kept", "losses/stopped"} & values.keys()


def test_speed_is_that_of_the_call():
    maker = PointMaker(in_environments=True)
    assert "charts/SPS" not in maker.take(learned(100.0, 5000, 4)).values
    assert maker.take(learned(104.0, 5800, 8)).values["charts/SPS"] == 200.0
    assert maker.take(learned(110.0, 6000, 12)).values["charts/SPS"] == 100.0


def test_evaluations_are_those_of_all_the_time_that_passed():
    """Acting takes two of ten seconds: its own rate would be five times as high."""
    maker = PointMaker(in_environments=True)
    rates = []
    for i in range(1, 4):
        acting = {"kind": "turn", "role": "actor", "turn_s": 2.0, "seconds": 2.0}
        maker.take({"time_s": 10.0 * i - 8.0, "num_evaluations": 1000, **acting})
        values = maker.take(learned(10.0 * i, 500 * i, 4 * i)).values
        rates.append(values["charts/evaluations_per_s"])
    assert rates == [100.0, 100.0, 100.0]


def test_a_return_is_drawn_once_and_none_before_there_is_one():
    maker = PointMaker(in_environments=True)
    maker.take(acted(1.0, None))
    assert "charts/episodic_return" not in maker.take(learned(2.0, 10, 4)).values
    maker.take(acted(3.0, 1.0))
    maker.take(acted(3.5, 2.0))
    assert maker.take(learned(4.0, 20, 8)).values["charts/episodic_return"] == 2.0
    assert "charts/episodic_return" not in maker.take(learned(5.0, 30, 12)).values


def test_what_is_not_learned_yet_has_a_step_in_environments():
    maker = PointMaker(in_environments=True)
    maker.take(acted(1.0, 4.0))
    table = {"num_rows": 100, "num_episodes": 3}
    event = {"kind": "turn", "role": "learn", "num_steps": 0, "table": table}
    point = maker.take({"time_s": 2.0, **event, "loss": 9.0})
    assert point.step == 100
    assert point.values == {"charts/episodic_return": 4.0, "charts/episodes": 3.0}


def test_games_stand_at_learner_steps():
    maker = PointMaker(in_environments=False)
    played = {"kind": "turn", "role": "selfplay", "num_games": 4, "num_plies": 100}
    played |= {"num_evaluations": 600, "seconds": 3.0, "cache_hit_share": 0.25}
    assert maker.take({"time_s": 1.0, "turn_s": 3.0, **played}) is None
    table = {"num_games": 24, "num_rows": 900, "window_rows": 800, "window_bytes": 1}
    extra = {"value_loss": 0.5, "validation": {"loss": 3.0, "policy_loss": 2.0}}
    point = maker.take(learned(2.0, 0, 40, table=table, **extra))
    assert point.step == 40
    assert point.values == {
        "charts/game_length": 25.0,
        "charts/evaluations_per_s": 150.0,  # 600 in the four seconds up to here
        "charts/cache_hit_share": 0.25,
        "charts/games": 24.0,
        "charts/rows": 900.0,
        "charts/window_rows": 800.0,
        "losses/loss": 0.5,
        "losses/value_loss": 0.5,
        "validation/loss": 3.0,
        "validation/policy_loss": 2.0,
    }


def test_a_rating_stands_at_the_last_step_or_waits_for_one():
    maker = PointMaker(in_environments=False)
    rated = {"kind": "turn", "role": "rate", "rating": 700.0, "rating_error": 50.0}
    assert maker.take({"time_s": 1.0, **rated}) is None
    assert maker.take(learned(2.0, 9, 40)).values["charts/rating"] == 700.0
    point = maker.take({"time_s": 3.0, **rated})
    assert (point.step, point.time_s) == (40, 3.0)
    assert point.values == {"charts/rating": 700.0, "charts/rating_error": 50.0}


def test_a_gate_that_plays_matches_tells_elo():
    maker = PointMaker(in_environments=False)
    maker.take(learned(1.0, 9, 40))
    judged = {"time_s": 2.0, "kind": "turn", "role": "gate", "accepted": True}
    assert maker.take(judged) is None
    assert maker.take({**judged, "elo": -20.0}).values == {"charts/gate_elo": -20.0}


@pytest.mark.parametrize("kind", ["progress", "death", "busy", "begin", "end"])
def test_other_events_draw_nothing(kind):
    maker = PointMaker(in_environments=True)
    maker.take(learned(1.0, 9, 40))
    assert maker.take({"time_s": 2.0, "kind": kind, "loss": 1.0, "num_rows": 5}) is None
    assert maker.rest(3.0) is None


def test_damaged_events_draw_nothing():
    maker = PointMaker(in_environments=True)
    for text in ('{"role": 3}', '{"role": "learn", "table": [1], "num_steps": 1}'):
        event = {"time_s": 1.0, "kind": "turn", **json.loads(text)}
        assert maker.take(event) is None


def test_the_family_is_in_the_roles():
    assert has_actors({"config": {}, "roles": ["actor", "learn"]})
    assert not has_actors({"config": {}, "roles": ["selfplay", "learn"]})
    assert not has_actors({"config": {}, "roles": ["learn"]})  # of another run's games
