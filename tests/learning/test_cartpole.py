"""The agents of environments learn small tasks, with the roles of a run in turns.

Mutations that fail these tests: a flipped sign of the advantage (A2C, PPO, V-trace),
the value of step t instead of t + 1, and no bootstrap (DQN), a recurrent state that is
cleared at each step in learning (R2D2), a flipped sign of the policy loss (SAC),
ignored action masks (doors), and intrinsic rewards of 0 (the exploring agents). For
teams: actions in the order of other agents, a discount of 0 (PPO, MAPPO), no bootstrap
(QMIX; DQN has three-step targets), and a critic without the global state (gusts).
Mutations of R2D2 that pass in the maze: no bootstrap, because small penalties show the
way, a stored state of zero, a stored state that is reused after the burn-in, a state
that continues in the next episode, and targets of step t. The slow reference test in
``tests/unit/agents/test_r2d2.py`` detects each of these.
"""

import dataclasses

import pytest

from tengen.games import allow
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

pytestmark = pytest.mark.learning

CARTPOLE, MAZE = "CartPole-v1", "tests.mazes:ShortTMaze"
DOORS, BLIND = "tests.masked_environments:Doors", "tests.masked_environments:BlindDoors"
CHAIN = "tests.exploration:Chain"
REACH, FAR = "tests.environments:Reach", "tests.environments:ReachFar"
SIGNALS, GUSTS = "tests.team_environments:Signals", "tests.team_environments:Gusts"

# Mean returns. CartPole: the threshold of CartPole-v0; random actions return 22, a
# constant action 9, at most 500. The maze: at most 4, without memory 1.95. Reach:
# zero actions return -3.3, random ones -6.7. ReachFar: at most 10, action 500: 7.5.
# Doors: at most 10, legal actions at random 5, without the mask 0.3. Chain: at most 12,
# and 0.05 without the far end, which random actions never reach. Signals and Gusts: at
# most 8, random and constant actions 4.
SOLVED = {CARTPOLE: 195.0, MAZE: 3.0, REACH: -1.0, FAR: 8.5, DOORS: 9.0, BLIND: 9.0}
SOLVED |= {CHAIN: 7.0, SIGNALS: 7.4, GUSTS: 7.0}

MAX_FRAMES = {
    ("a2c", CARTPOLE): 400_000,
    ("a2c", FAR): 60_000,
    ("dqn", CARTPOLE): 150_000,
    ("dqn", SIGNALS): 60_000,
    ("iqn", CARTPOLE): 150_000,
    ("mappo", GUSTS): 18_000,
    ("mappo", SIGNALS): 40_000,
    ("masac", SIGNALS): 30_000,
    ("ppo", CARTPOLE): 150_000,
    ("pqn", CARTPOLE): 200_000,
    ("ppo", GUSTS): 12_000,
    ("ppo", SIGNALS): 40_000,
    ("qmix", SIGNALS): 30_000,
    ("ppo", FAR): 40_000,
    ("dqn", DOORS): 60_000,
    ("ppo", DOORS): 20_000,
    ("ppo", BLIND): 20_000,
    ("ppo", CHAIN): 30_000,
    ("rnd", CHAIN): 60_000,
    ("ngu", CHAIN): 60_000,
    ("agent57", CHAIN): 60_000,
    ("r2d2", CARTPOLE): 150_000,
    ("r2d2", MAZE): 100_000,
    ("sac", CARTPOLE): 40_000,
    ("sac", REACH): 12_000,
    ("vdn", SIGNALS): 30_000,
    ("vtrace", CARTPOLE): 400_000,
    ("vtrace", FAR): 60_000,
}
"""Frame limits: several times the frames that measured seeds needed
(benchmarks/results/environments.md)."""

SETTINGS = {
    ("r2d2", MAZE): ("agent.actor.turn_steps=180",),
    # The defaults of larger tasks, but for the network's size.
    ("sac", REACH): (
        "agent.actor.turn_steps=64",
        "agent.target_rate=0.005",
        "learner.batch_size=256",
        "learner.optimizer.average_decay=0",
        "learner.optimizer.learning_rate=7e-4",
        "store.samples_per_item=256",
    ),
}
"""Settings with fewer models than the recipe, to save time."""


def trained(agent, task, seed, path):
    """Returns the mean return of the last 100 training episodes, and the frames."""
    pytest.importorskip("gymnasium")
    allow(task)
    config = override(make_config(task, agent, None), SETTINGS.get((agent, task), ()))
    config = dataclasses.replace(config, seed=seed)
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    context = RoleContext()
    names = ("learn", "export", "gate", "actor")
    roles = {n: make_role(n, config, run, context) for n in names}
    num_frames, mean_return = 0, None
    while (
        mean_return is None or mean_return < SOLVED[task]
    ) and num_frames < MAX_FRAMES[agent, task]:
        for name in names:
            report = roles[name].turn()
        num_frames += report["num_rows"]
        mean_return = report["mean_return"]
    for role in roles.values():
        role.close()
    return mean_return, num_frames


def check(agent, task, seed, path):
    mean_return, num_frames = trained(agent, task, seed, path)
    assert mean_return >= SOLVED[task], f"{mean_return} after {num_frames} frames"


@pytest.mark.parametrize(
    "agent",
    [
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("dqn", "pqn")),
        # Other tests show that these agents learn.
        *(pytest.param(o, marks=pytest.mark.soak) for o in ("a2c", "ppo", "vtrace")),
    ],
)
def test_an_agent_balances_a_pole(agent, tmp_path):
    check(agent, CARTPOLE, 1, tmp_path / "run")


@pytest.mark.parametrize("agent", ["a2c", "ppo", "vtrace"])
def test_actions_of_hundreds_are_learned(agent, tmp_path):
    check(agent, FAR, 1, tmp_path / "run")


@pytest.mark.parametrize("agent", ["dqn", "mappo", "masac", "ppo", "qmix", "vdn"])
def test_a_team_learns(agent, tmp_path):
    check(agent, SIGNALS, 1, tmp_path / "run")


def test_a_critic_of_the_global_state_predicts_gusts(tmp_path):
    check("mappo", GUSTS, 1, tmp_path / "run")


@pytest.mark.slow
def test_agents_with_their_own_critics_do_not_learn_in_gusts(tmp_path):
    mean_return, num_frames = trained("ppo", GUSTS, 1, tmp_path / "run")
    assert num_frames >= MAX_FRAMES["ppo", GUSTS]
    assert mean_return < 6.5


def test_masked_choices_are_learned(tmp_path):
    check("ppo", DOORS, 1, tmp_path / "run")


@pytest.mark.slow
def test_masked_values_are_learned(tmp_path):
    check("dqn", DOORS, 1, tmp_path / "run")


@pytest.mark.slow
def test_the_same_doors_are_not_passed_without_the_mask(tmp_path):
    mean_return, num_frames = trained("ppo", BLIND, 1, tmp_path / "run")
    assert num_frames >= MAX_FRAMES["ppo", BLIND]
    assert mean_return < 2.0


@pytest.mark.parametrize(
    "agent",
    [
        "rnd",
        pytest.param("ngu", marks=pytest.mark.slow),
        pytest.param("agent57", marks=pytest.mark.slow),
    ],
)
def test_novelty_leads_to_the_far_end_of_a_chain(agent, tmp_path):
    check(agent, CHAIN, 1, tmp_path / "run")


@pytest.mark.slow
def test_nobody_finds_the_end_of_the_chain_by_chance(tmp_path):
    mean_return, num_frames = trained("ppo", CHAIN, 1, tmp_path / "run")
    assert num_frames >= MAX_FRAMES["ppo", CHAIN]
    assert mean_return < 0.1


@pytest.mark.slow
def test_r2d2_remembers_a_sign(tmp_path):
    check("r2d2", MAZE, 1, tmp_path / "run")


@pytest.mark.slow
def test_sac_reaches_what_it_is_shown(tmp_path):
    check("sac", REACH, 1, tmp_path / "run")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(
    ("agent", "task"),
    [
        case
        for case in MAX_FRAMES
        if case not in (("ppo", BLIND), ("ppo", CHAIN), ("ppo", GUSTS))
    ],
)
def test_other_seeds_learn_too(agent, task, seed, tmp_path):
    check(agent, task, seed, tmp_path / "run")
