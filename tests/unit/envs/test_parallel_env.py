"""Environments of several agents: rows, deaths, arrivals, masks, states, refusals."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium import Env, spaces

from tengen import envs
from tengen.envs import Step, joint_step, team_rewards
from tengen.envs.check import check_env
from tengen.envs.parallel_env import ParallelEnv, copies_of
from tengen.errors import EnvError, UsageError
from tests.refusals import refused
from tests.team_environments import (
    COME_AND_GO,
    MaskedInObservation,
    MaskedTeam,
    Parallel,
    Screens,
    Scripted,
    Signals,
    TwoStep,
    TwoTeams,
)

A, B, C = range(3)


def env_of(make_one=Scripted, num_envs=1, seed=0):
    return copies_of(make_one, num_envs, seed, name="team")


def stepped(env, num_steps):
    """Returns the observation of a reset, and the steps after it."""
    first = env.reset()
    nothing = np.zeros(env.num_envs, np.int64)
    return first, [env.step(nothing) for _ in range(num_steps)]


def test_agents_are_rows_copy_by_copy():
    env = env_of(num_envs=2)
    assert env.spec.agents == ("a", "b", "c")
    assert env.num_envs == 6
    observation = env.reset()
    assert observation["observation"].tolist() == [[0, 0], [0, 1], [0, 0]] * 2
    assert (observation["agent_id"] == np.tile(np.eye(3), (2, 1))).all()


def test_agents_that_die_and_come():
    _, steps = stepped(env_of(), 7)
    live = [~step.is_reset for step in steps]
    assert [np.flatnonzero(rows).tolist() for rows in live] == [
        *([A, B], [A, B], [B, C], [C], [A, C]),
        *([], [A, B]),  # the reset of the copy, and the next episode
    ]
    ended = [np.flatnonzero(step.terminated).tolist() for step in steps]
    assert ended == [[], [A], [B], [], [A, C], [], []]
    assert [step.is_over[0] for step in steps] == [False] * 4 + [True] + [False] * 2
    # The observation at an agent's end is its own; then it has none.
    assert steps[1].observation["observation"].tolist() == [[2, 0], [2, 1], [2, 2]]
    assert steps[2].observation["observation"][A].tolist() == [0, 0]
    # The step before an agent's first observation is a reset step of its row.
    assert steps[3].observation["observation"][A].tolist() == [4, 0]
    assert steps[3].is_reset[A]
    rewards = [step.reward.tolist() for step in steps]
    assert rewards[1:3] == [[1, 2, 0], [0, 2, 3]]


def test_only_agents_in_the_episode_act():
    made = Scripted()
    stepped(env_of(lambda: made), 5)
    assert [tuple(taken) for taken in made.taken] == list(COME_AND_GO[:-1])


def test_an_episode_of_a_team():
    env = env_of(lambda: Scripted(cuts=[(5, "a")]))
    _, steps = stepped(env, 6)
    joint = [joint_step(step, env.spec) for step in steps]
    assert [one.reward.item() for one in joint] == [1.5, 1.5, 2.5, 3, 2, 0]
    # The death of an agent ends no episode, and one truncation truncates the team.
    assert [one.terminated.item() for one in joint] == [False] * 6
    assert [one.truncated.item() for one in joint] == [False] * 4 + [True, False]
    assert [one.is_reset.item() for one in joint] == [False] * 5 + [True]


def test_an_episode_is_over_when_each_agent_has_either_end():
    """SuperSuit's black_death asked for both, and AgileRL ended with any agent."""
    env = env_of(lambda: Scripted((("a", "b"), ("b",), ()), cuts=[(1, "a")]))
    _, steps = stepped(env, 2)
    assert [step.is_over.item() for step in steps] == [False, True]
    assert steps[0].truncated.tolist() == [True, False, False]
    assert steps[1].terminated.tolist() == [False, True, False]


def test_an_arrival_in_the_step_of_all_deaths_ends_no_episode():
    env = env_of(lambda: Scripted((("a",), ("b",), ())))
    _, steps = stepped(env, 2)
    joint = [joint_step(step, env.spec) for step in steps]
    assert [one.terminated.item() for one in joint] == [False, True]


def test_teams():
    env = env_of(TwoTeams)
    assert env.spec.teams == ("red", "blue", "red")
    _, steps = stepped(env, 3)
    rewards = [team_rewards(step, env.spec) for step in steps]
    # Of the red agents a and c only one acts at a time.
    assert [one["red"].item() for one in rewards] == [1, 1, 3]
    assert [one["blue"].item() for one in rewards] == [2, 2, 2]
    assert joint_step(steps[2], env.spec).reward.tolist() == [3]


def test_a_shared_reward_is_the_team_s_exactly():
    """EPyMARL and others sum; a mean over all agents shrinks when some are absent."""
    env = env_of(Scripted)
    none = np.zeros(3, np.bool_)
    for present in ([True, True, True], [True, False, True], [False, False, True]):
        acted = np.array(present)
        shared = np.where(acted, np.float32(0.1), np.float32(0))
        (reward,) = team_rewards(
            Step({}, shared, none, none, ~acted), env.spec
        ).values()
        assert reward[0] == np.float32(0.1)
    nobody = Step({}, np.zeros(3, np.float32), none, none, ~none)
    assert team_rewards(nobody, env.spec)["all"].tolist() == [0]


def test_infos_of_other_keys_are_ignored():
    class Common(Scripted):
        def reset(self, seed=None, options=None):
            return super().reset()[0], {"__common__": np.zeros(2)}

        def step(self, actions):
            return *super().step(actions)[:4], {"__common__": np.zeros(2)}

    _, steps = stepped(env_of(Common), 7)
    assert steps[-1].reward.tolist() == [1, 2, 0]


@pytest.mark.parametrize("kind", [MaskedTeam, MaskedInObservation])
def test_masks(kind):
    env = env_of(kind, num_envs=2)
    assert env.spec.has_action_mask
    assert "action_mask" not in " ".join(env.spec.observations)
    mask = env.reset()["action_mask"]
    assert mask.tolist() == [[True, False, False], [True, True, False]] * 2
    step = env.step(np.zeros(4, np.int64))
    later = [[True, True, False], [False, True, False]]
    assert step.observation["action_mask"].tolist() == later * 2


def test_the_global_state():
    env = env_of(TwoStep, num_envs=2)
    assert env.spec.global_state.shape == (3,)
    assert env.reset()["global_state"].tolist() == [[1, 0, 0]] * 2
    step = env.step(np.array([0, 0, 1, 0]))
    assert step.observation["global_state"].tolist() == [[0, 1, 0], [0, 0, 1]]


def test_without_a_state_all_observations_are_the_state():
    env = env_of()
    assert env.spec.global_state.shape == (6,)
    assert env.reset()["global_state"].tolist() == [[0, 0, 0, 1, 0, 0]]
    assert "global_state" not in env.spec.observation_tensors


def test_a_huge_state_is_none():
    env = env_of(Screens)
    assert env.spec.global_state is None
    assert "global_state" not in env.reset()


class HugeState(Scripted):
    state_space = spaces.Box(-1.0, 1.0, (70_000,), np.float32)

    def state(self):
        raise AssertionError("nobody reads it")


def test_a_state_that_is_too_large_is_replaced_by_the_observations():
    env = env_of(HugeState)
    assert env.spec.global_state.shape == (6,)
    assert env.reset()["global_state"].tolist() == [[0, 0, 0, 1, 0, 0]]


class DearState(HugeState):
    state_space = spaces.Box(-1.0, 1.0, (7,), np.float32)


@pytest.mark.parametrize("wrap", [lambda env: env, envs.EnvWrapper])
def test_a_hidden_state_is_not_computed(wrap):
    env = wrap(env_of(DearState))
    envs.hide_state(env)
    assert "global_state" not in env.reset()
    step = env.step(np.zeros(3, np.int64))
    assert "global_state" not in step.observation


def test_the_same_seed_gives_the_same_episodes():
    runs = [stepped(env_of(Signals, 2, seed), 20)[1] for seed in (1, 1, 2)]
    seen = [
        np.concatenate([step.observation["observation"] for step in steps])
        for steps in runs
    ]
    assert (seen[0] == seen[1]).all()
    assert (seen[0] != seen[2]).any()
    env = env_of(Signals, 2, 1)
    again = [stepped(env, 20)[1][-1].observation["observation"] for _ in range(2)]
    assert (again[0] == again[1]).all()


def test_own_observations_and_actions():
    env = env_of(MaskedInObservation)
    seen, _ = MaskedInObservation().reset()
    arrays = env.observed(seen)
    first = env.reset()
    assert all((arrays[name] == first[name]).all() for name in arrays)
    partial = env.observed({"b": seen["b"]})
    assert partial["action_mask"].tolist() == [[True] * 3, [True, True, False]]
    assert env.own_action(np.array(2)) == 2
    for wrong, word in ((seen["a"], "agent (seen)"), ([1], "observation"), ({9: 1}, 9)):
        with refused(UsageError, str(word)):
            env.observed(wrong)


class Different(Parallel):
    def observation_space(self, agent):
        return spaces.Box(0, 1, (1 + (agent == "b"),), np.float32)


class DifferentActions(Parallel):
    def action_space(self, agent):
        return spaces.Discrete(2 + (agent == "b"))


class SameNames(Parallel):
    possible_agents = (1, "1")


class NoAgents(Parallel):
    possible_agents = ()


class WrongTeams(Scripted):
    teams = ("red", "blue", "red")


class NoSpace(Parallel):
    def action_space(self, agent):
        return None


class RaisingSpace(Parallel):
    def action_space(self, agent):
        raise KeyError(agent)


def raising(name):
    def fail(self):
        raise ZeroDivisionError(name)

    return type("Raising", (Scripted,), {name: property(fail)})


class UnhashableAgents(Parallel):
    possible_agents = (["a"], ["b"])


class Slotted:
    __slots__ = ("agents",)
    possible_agents = ("a", "b", "c")
    observation_space = Scripted.observation_space
    action_space = Scripted.action_space
    close = Scripted.close


class TurnBased(Parallel):
    def agent_iter(self):
        return iter(())


class NoStep(Parallel):
    def reset(self, seed=None):
        pass


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Different, "observation_space('b')"),
        (DifferentActions, "action_space('b')"),
        (SameNames, "possible_agents"),
        (NoAgents, "possible_agents"),
        (WrongTeams, "teams"),
        (NoSpace, "action_space('a')"),
        (RaisingSpace, "KeyError"),
        (NoStep, "lacks step"),
        *((raising(name), name) for name in ("possible_agents", "teams")),
        *((raising(name), name) for name in ("state_space", "unwrapped")),
        (UnhashableAgents, "possible_agents"),
        (Slotted, "__weakref__"),
        (TurnBased, "aec_to_parallel"),
    ],
)
def test_an_environment_that_does_not_fit(kind, words):
    if kind is not NoStep:
        kind.reset = Scripted.reset
        kind.step = Scripted.step
    closed = []
    kind.close = lambda self: closed.append(self)
    with refused(UsageError, words):
        env_of(kind)
    assert len(closed) >= 1


def test_every_copy_has_the_same_spaces():
    made = []

    class Wider(Scripted):
        def close(self):
            made.append("closed")

        def action_space(self, agent):
            return spaces.Discrete(4)

    def make_one():
        made.append("made")
        return Scripted() if len(made) == 1 else Wider()

    with refused(UsageError, "spaces"):
        env_of(make_one, 2)
    assert made == ["made", "made", "closed"]


def test_a_gymnasium_env_has_a_single_agent():
    class Single(Env):
        possible_agents = ("a",)
        observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        action_space = spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            return np.zeros(1, np.float32), {}

    env = env_of(Single)
    assert env.spec.agents == ()
    assert env.reset()["observation"].shape == (1, 1)


def test_one_object_for_all_copies():
    made = Scripted()
    with refused(UsageError, "new object"):
        env_of(lambda: made, 2)


class Faulty(Scripted):
    """``Scripted`` whose second step returns ``self.answer(*answer)``."""

    def __init__(self, change):
        super().__init__()
        self._change = change

    def step(self, actions):
        answer = super().step(actions)
        return answer if self._time != 2 else self._change(self, *answer)


def _without(part, agent):
    def change(env, *answer):
        answer[part].pop(agent)
        return answer

    return change


def _with(part, agent, value):
    def change(env, *answer):
        answer[part][agent] = value
        return answer

    return change


def _agents(*agents):
    def change(env, *answer):
        env.agents = list(agents)
        return answer

    return change


FAULTS = {
    "one value": (lambda env, *answer: answer[0], "step (dict)"),
    "four values": (lambda env, *answer: answer[:4], "4 values"),
    "a list": (lambda env, o, r, *rest: (o, [*r], *rest), "rewards (list"),
    "no observation": (_without(0, "b"), "entry for b"),
    "no observation of an arrival": (_without(0, "c"), "entry for c"),
    "no reward": (_without(1, "a"), "rewards"),
    "no end": (_without(2, "a"), "terminations"),
    "a NaN": (_with(1, "b", float("nan")), "copy 0, b"),
    "a wrong shape": (_with(0, "b", np.zeros(3)), "copy 0, b"),
    "an infinite observation": (_with(0, "b", np.full(2, np.inf)), "copy 0, b"),
    "an end that is no bool": (_with(2, "b", "yes"), "terminated (str yes)"),
    "an agent that ended and stays": (_agents("a", "b", "c"), "agents (with a)"),
    "an agent that vanishes": (_agents("c"), "agents (without b)"),
    "an unknown agent": (_agents("b", "z"), "z"),
    "a late mask": (_with(4, "b", {"action_mask": np.ones(3)}), "action_mask"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_step_that_does_not_fit(name):
    change, words = FAULTS[name]
    env = env_of(lambda: Faulty(change))
    env.reset()
    env.step(np.zeros(3, np.int64))
    with refused(EnvError, words):
        env.step(np.zeros(3, np.int64))


def test_an_environment_that_raises():
    def fail(env, *answer):
        raise ZeroDivisionError("deep inside")

    env = env_of(lambda: Faulty(fail))
    env.reset()
    env.step(np.zeros(3, np.int64))
    with refused(EnvError, "deep inside"):
        env.step(np.zeros(3, np.int64))


def test_a_reset_without_agents():
    with refused(EnvError, "agents (empty)"):
        env_of(lambda: Scripted(((), ()))).reset()


def checked(make_one, **options):
    return check_env(
        lambda num_envs, seed: ParallelEnv(make_one, num_envs, seed, name="team"),
        make_one,
        "team",
        num_steps=300,
        **options,
    )


def test_the_check_passes_and_counts():
    report = checked(Scripted)
    assert report.is_whole
    assert not report.num_broken, report.findings
    assert report.episodes.num_ended == 50
    assert report.episodes.num_removed == 2 * 50
    assert report.episodes.num_added == 2 * 50
    assert report.episodes.longest == 5
    assert report.cost.steps_per_second > 0


@pytest.mark.parametrize("kind", [MaskedTeam, MaskedInObservation, TwoStep, Signals])
def test_the_check_takes_legal_actions(kind):
    report = checked(kind)
    assert not report.num_broken, report.findings


def test_the_check_finds_faults():
    def rules(change):
        report = checked(lambda: Faulty(change))
        return {finding.rule for finding in report.findings if finding.is_broken}

    assert "agents" in rules(_without(1, "a"))
    assert "observation.bounds" in rules(_with(0, "b", np.full(2, 101.0)))
    # c comes in the second step, and a comes back.
    assert "observation.bounds" in rules(_with(0, "c", np.full(2, 101.0)))
    assert "step.truncations" in rules(_with(3, "b", 0))


def test_the_check_reads_the_observations_of_a_reset():
    class Low(Scripted):
        def reset(self, seed=None, options=None):
            seen, infos = super().reset()
            return {**seen, "b": np.full(2, -101.0, np.float32)}, infos

    findings = checked(Low).findings
    assert any("b after a reset" in one.message for one in findings if one.is_broken)


def test_the_check_names_the_conversion_of_a_turn_based_environment():
    (finding,) = checked(TurnBased).findings
    assert "aec_to_parallel" in finding.message


def test_the_check_finds_unseeded_episodes():
    class Unseeded(Signals):
        def reset(self, seed=None, options=None):
            return super().reset(seed=np.random.SeedSequence().entropy % 2**31)

    rules = {finding.rule for finding in checked(Unseeded).findings}
    assert "copies.again" in rules
