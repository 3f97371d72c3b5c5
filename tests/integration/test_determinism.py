"""The same seed yields the same games, with any threads, slots and interruptions."""

import pytest

from tests.integration.runs import (
    SMALL,
    events,
    run_command,
    sealed,
    train_command,
    weights,
)
from tests.integration.test_counts import reported, sealed_counts
from tests.integration.test_growth import channels

GAMES = 72
METHODS = (
    *SMALL,
    "agent.actor.search.policy=gumbel",
    "agent.actor.policy_surprise_share=0.5",
    "agent.actor.value_surprise_share=0.1",
    'agent.stages=[{"games": 40, "net": '
    '{"kind": "resnet", "num_blocks": 2, "num_channels": 24}}]',
)
"""Settings of the recipes that ``SMALL`` omits."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    out = tmp_path_factory.mktemp("reference") / "run"
    done = run_command(train_command(out, GAMES, "--threads", "1"))
    assert done.returncode == 0, done.stderr
    return out


CUT = "tengen: threads (64) must be at most {}, the cores that this process may use"


@pytest.mark.parametrize("cores", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_threads_and_slots_change_no_byte(reference, tmp_path, cores):
    """The bytes are the same even if more threads are requested than cores exist."""
    out = tmp_path / "run"
    settings = (*SMALL, "agent.actor.num_slots=3")
    words = ("--threads", "64")
    done = run_command(
        train_command(out, GAMES, *words, settings=settings, cores=cores)
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(CUT.format(cores)) == 1
    assert len(sealed(reference)) == 3
    assert sealed(out) == sealed(reference)
    assert weights(out) == weights(reference)


@pytest.mark.slow
@pytest.mark.parametrize(
    "drawn_by", [pytest.param("learn", marks=pytest.mark.soak), "shuffle"]
)
def test_epochs_change_no_weights(reference, tmp_path, drawn_by):
    out = tmp_path / "run"
    settings = (*SMALL, "learner.epoch_samples=96", f"store.drawn_by={drawn_by}")
    done = run_command(train_command(out, GAMES, settings=settings))
    assert done.returncode == 0, done.stderr
    learned = [e for e in events(out, "turn") if e["role"] == "learn"]
    assert len(learned) > 2 * len(weights(out))
    assert {turn["num_steps"] for turn in learned} >= {0, 3}
    assert sealed(out) == sealed(reference)
    assert weights(out) == weights(reference)


@pytest.mark.soak
def test_another_seed_changes_the_games(reference, tmp_path):
    out = tmp_path / "run"
    done = run_command(train_command(out, 24, "--seed", "1"))
    assert done.returncode == 0, done.stderr
    assert sealed(out)[1] != sealed(reference)[1]


def test_a_run_in_two_calls_with_kills_is_the_run_in_one(reference, tmp_path):
    """In the second call, each process dies in its first seal."""
    out = tmp_path / "run"
    for games, fault in ((24, None), (48, "seal.published:1:experience/")):
        done = run_command(train_command(out, games, "--json"), fault=fault)
        assert done.returncode == 0, done.stderr
    assert {death["how"] for death in events(out, "death")} == {"signal 9"}
    assert sealed(out) == sealed(reference)
    assert weights(out) == weights(reference)
    # The games of a turn that is redone are counted once.
    report = reported(done.stdout)
    counts = {name: report[name] for name in ("num_games", "num_rows")}
    assert counts == sealed_counts(out) == {**counts, "num_games": 72}


@pytest.mark.slow
def test_methods_of_recipes_change_no_byte_by_threads_and_calls(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    done = run_command(train_command(whole, GAMES, "--threads", "1", settings=METHODS))
    assert done.returncode == 0, done.stderr
    for games in (24, 48):
        words = train_command(cut, games, "--threads", "2", settings=METHODS, cores=2)
        done = run_command(words)
        assert done.returncode == 0, done.stderr
    assert len(sealed(whole)) == 3
    # Models after 0, 24, 48 and 72 games; the larger network starts after 40 games.
    assert channels(whole) == [16, 16, 24, 24]
    assert sealed(cut) == sealed(whole)
    assert weights(cut) == weights(whole)
