"""Agents for environments: ``tengen.load``, ``reset`` and ``act``."""

import numpy as np
import pytest

import tengen
from tengen.envs.copies import copy_seeds
from tengen.errors import UsageError
from tengen.evaluation import play_episodes
from tengen.models import resolve_model
from tengen.play import AgentPlayer
from tengen.play.agent_player import open_agent
from tengen.search import PlayConfig

pytest.importorskip("gymnasium")

from tengen import envs, games
from tests.refusals import refused
from tests.unit.play import own_forms

MODULE = "tests.unit.play.own_forms"


def load(run, task):
    player = tengen.load(run.path, task=task)
    assert isinstance(player, AgentPlayer)
    return player


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("Walk", "ppo", {}),
        ("Walk", "ppo", {"lstm_units": 8, "sees_last_step": True}),
        ("Walk", "dqn", {}),
        ("Walk", "dqn", {"is_duelling": False}),
        ("Walk", "r2d2", {"lstm_units": 8}),
        ("ManyChoices", "vtrace", {"lstm_units": 8, "sees_last_step": True}),
        ("Numbers", "ppo", {"sees_last_step": True}),
        ("NestedWalk", "ppo", {"lstm_units": 8}),
    ],
)
def test_a_player_acts_as_eval_does(tmp_path, publish_agent, name, kind, settings):
    """Compares each step, with memory, the previous step, and all observation forms."""
    task, walk = f"{MODULE}:{name}", getattr(own_forms, name)
    run = publish_agent(tmp_path / "run", task, kind, **settings)

    model = open_agent(resolve_model(run.path), "run", task=task)
    env = envs.make(task, 1, 7)
    walk.taken.clear()
    report = play_episodes(env, model.agent, model.backend, 4, model="run")
    evaluated = list(walk.taken)

    own, player = walk(), load(run, task)
    assert player.needs_rewards == (settings.get("sees_last_step") or kind == "r2d2")
    (seed,) = copy_seeds(7, 1)
    returns = []
    walk.taken.clear()
    for episode in range(4):
        observation, _ = own.reset(seed=None if episode else seed)
        player.reset()
        reward, total, is_over = None, 0.0, False
        while not is_over:
            action = player.act(observation, reward)
            observation, reward, is_over, _, _ = own.step(action)
            total += reward
        returns.append(total)
    assert len(walk.taken) == report.num_frames
    for ours, theirs in zip(walk.taken, evaluated, strict=True):
        assert np.array_equal(ours, theirs)
    assert returns == pytest.approx(report.returns)
    # If the weights always chose the same action, the test would prove nothing.
    assert len({str(action) for action in evaluated}) > 1


def test_the_forms_of_actions(tmp_path, publish_agent):
    observation = np.float32([0.9, -0.3, 0.2, 0.7])

    def act(name):
        task = f"{MODULE}:{name}"
        with load(publish_agent(tmp_path / name, task), task) as player:
            return player.act(observation)

    choice, choices, numbers = (act(n) for n in ("Walk", "ManyChoices", "Numbers"))
    assert type(choice) is int
    assert 3 <= choice < 8
    assert choices.shape == (2,)
    assert own_forms.ManyChoices.action_space.contains(choices)
    assert numbers.shape == (2, 1)
    assert own_forms.Numbers.action_space.contains(numbers)
    # At least one number was clipped to its bounds.
    assert {-0.5, 0.5, 0.0, 2.0} & set(numbers.ravel().tolist())


def test_memory_is_that_of_one_episode(tmp_path, publish_agent):
    task = f"{MODULE}:ManyChoices"
    run = publish_agent(tmp_path / "run", task, lstm_units=8)
    seen = np.random.default_rng(3).uniform(-1, 1, (20, 4)).astype(np.float32)
    with load(run, task) as player:
        first = [player.act(one).tolist() for one in seen]
        player.reset()
        assert [player.act(one).tolist() for one in seen] == first
        # Without a reset, the memory changes the actions.
        assert [player.act(one).tolist() for one in seen] != first
    with load(run, task) as player:
        assert [player.act(one).tolist() for one in seen] == first


def test_gymnasiums_own_environment(tmp_path, publish_agent):
    run = publish_agent(tmp_path / "run", "CartPole-v1", numbers=(3, 4))
    for word in (run.path, f"{run.path}@3", run.models.entry(3)):
        with tengen.load(word) as player:
            assert isinstance(player, AgentPlayer)
            assert player.act(np.zeros(4)) in (0, 1)
    with tengen.load(run.path) as player:
        assert player.spec == envs.env_spec("CartPole-v1")


@pytest.mark.parametrize(
    ("name", "observation", "named"),
    [
        ("Walk", [0.0] * 3, "observation ((3,)) of {task}"),
        ("Walk", [0, 0, 0, float("nan")], "observation (nan) of {task}"),
        (
            "NestedWalk",
            {"card": 4, "inner": (np.zeros((2, 2)), np.zeros(2))},
            "observation/card (4) of {task}",
        ),
        ("NestedWalk", {"card": 1}, "observation/inner/0 (missing) of {task}"),
        ("NestedWalk", 3.5, "observation/card (missing) of {task}"),
    ],
)
def test_an_observation_of_another_form_is_one_line(
    tmp_path, publish_agent, name, observation, named
):
    task = f"{MODULE}:{name}"
    run = publish_agent(tmp_path / "run", task)
    with (
        load(run, task) as player,
        refused(UsageError, named.format(task=task)) as caught,
    ):
        player.act(observation)
    assert "\n" not in str(caught.value)


def test_a_network_that_is_told_rewards_must_be(tmp_path, publish_agent):
    task = f"{MODULE}:Walk"
    run = publish_agent(tmp_path / "run", task, sees_last_step=True)
    with load(run, task) as player:
        player.act(np.zeros(4))
        with refused(UsageError, "reward (None)"):
            player.act(np.zeros(4))
        player.act(np.zeros(4), 1.0)
        player.reset()
        player.act(np.zeros(4))


def test_a_closed_player_says_so(tmp_path, publish_agent):
    run = publish_agent(tmp_path / "run", "CartPole-v1")
    with tengen.load(run.path) as player:
        assert isinstance(player, AgentPlayer)
    player.close()
    with refused(UsageError, f"player ({run.path})"):
        player.act(np.zeros(4))


def test_what_is_refused(tmp_path, publish_agent):
    task = f"{MODULE}:Walk"
    run = publish_agent(tmp_path / "run", task)
    games.allow(task)
    with refused(UsageError, f"task ({task})"):
        tengen.load(run.path)
    with refused(UsageError, "task (o:E)"):
        tengen.load(run.path, task="o:E")
    with refused(UsageError, "play ("):
        tengen.load(run.path, PlayConfig(), task=task)
    # An environment whose action space no longer matches the model's.
    folder, task = run.models.entry(0), f"{MODULE}:ManyChoices"
    meta = folder / "meta.json"
    meta.write_text(meta.read_text().replace(f"{MODULE}:Walk", task))
    with refused(UsageError, f"model ({folder})", task, "[5]", "[7]"):
        tengen.load(folder, task=task)
