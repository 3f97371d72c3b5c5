import math

import pytest

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.experience import ExperienceConfig, ReplayConfig
from tests.refusals import refused


def test_a_queue_uses_every_item_once():
    config = ReplayConfig(max_items=8)
    assert config.is_queue
    assert config.importance_exponent_of_draws is None
    assert config.limits.max_cursor == 8
    # Whatever was inserted and drawn, those that wait may be drawn.
    assert config.num_available(num_inserts=20, num_samples=13, num_items=7) == 7


@pytest.mark.parametrize(
    ("num_inserts", "num_samples", "num_items", "expected"),
    [
        (9, 0, 9, 0),
        (10, 0, 10, 0),
        (11, 0, 11, 4),
        (15, 7, 15, 13),
        (15, 20, 15, 0),
        (15, 33, 15, 0),  # as after a setting was lowered
        # Many were inserted, and items were lost since: the store waits for new ones.
        (100, 0, 9, 0),
        (100, 0, 10, 360),
    ],
)
def test_a_replay_counts_samples_from_min_items_on(
    num_inserts, num_samples, num_items, expected
):
    config = ReplayConfig(
        sampler="uniform", max_items=50, min_items=10, samples_per_item=4.0
    )
    assert config.num_available(num_inserts, num_samples, num_items) == expected


def test_a_share_of_a_sample_is_rounded_as_the_store_rounds_it():
    # (43 - 3) * 0.1 is 4, and 43 * 0.1 - 3 * 0.1 is less.
    config = ReplayConfig(
        sampler="uniform", max_items=50, min_items=3, samples_per_item=0.1
    )
    assert config.num_available(num_inserts=43, num_samples=2, num_items=43) == 1
    assert math.floor((43 - 3) * 0.1 - 2) == 2


def test_only_prioritized_draws_are_weighed():
    config = ReplayConfig(
        sampler="prioritized", priority_exponent=0.7, importance_exponent=0.5
    )
    assert config.importance_exponent_of_draws == 0.5
    assert (config.selector.kind, config.selector.exponent) == ("prioritized", 0.7)
    assert ReplayConfig(sampler="uniform").importance_exponent_of_draws is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sampler": "uniform", "min_items": 65}, "min_items (65)"),
        ({"sampler": "uniform", "min_items": 0}, "min_items (0)"),
        # A queue hands out whatever it has.
        ({"min_items": 2}, "min_items (2)"),
        ({"samples_per_item": 2.0}, "samples_per_item (2.0)"),
    ],
)
def test_bad_settings_are_refused_by_field(fields, message):
    with refused(UsageError, message):
        ReplayConfig(**fields)


def test_a_replay_is_a_kind_of_experience():
    config = ReplayConfig(sampler="prioritized", max_items=7)
    assert ExperienceConfig.of_kind(to_dict(config)["kind"], "store.kind") is type(
        config
    )
    assert from_dict(ReplayConfig, to_dict(config)) == config
    with refused(UsageError, "store.kind (tabel)"):
        ExperienceConfig.of_kind("tabel", "store.kind")
