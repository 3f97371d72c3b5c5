"""SMAX: the rows of a team whose units die, and steps that are those of JaxMARL."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from tengen import envs
from tengen.distribution import pip_install_extra
from tengen.envs.copies import copy_seeds
from tengen.envs.suites import smax
from tengen.errors import EnvError, UsageError
from tests.refusals import refused

IS_INSTALLED = importlib.util.find_spec("jaxmarl") is not None
needs_jaxmarl = pytest.mark.skipif(not IS_INSTALLED, reason="needs tengen-rl[smax]")
TASK = "smax/3m"
# The living allies after each step of a copy's episodes, and how these end.
SCRIPT = [
    (["111", "011", "011"], "victory"),
    (["111", "111", "111", "110"], "limit"),
]


def fake_simulator(scenario):
    """The functions of ``simulator``; the state is the time in each episode."""
    assert scenario == "3m"

    def blank(seeds):
        return np.full(len(seeds), -9)

    def step(seeds, time, state, actions, was_over):
        assert actions.shape == (len(seeds), 3)
        assert (state >= 0).all() or was_over.all()
        if (actions == 7).all():
            raise ValueError("out of\nmemory")
        return seen(np.where(was_over, 0, state + 1))

    def seen(state):
        count = len(state)
        alive = [SCRIPT[c][0][time] for c, time in enumerate(state)]
        is_over = [time + 1 == len(SCRIPT[c][0]) for c, time in enumerate(state)]
        is_won = [SCRIPT[c][1] == "victory" for c in range(count)]
        shown = np.zeros((count, 72), np.float32)
        # The first ally and the first enemy, at 5, 7 and at 31.9, 1.
        shown[:, :3], shown[:, 30:33], shown[:, 63:66] = (1, 5, 7), (0.5, 31.9, 1), 1
        arrays = {
            "observation": np.tile(state[:, None, None], (1, 3, 75)).astype("f4"),
            "action_mask": np.ones((count, 3, 8), np.bool_),
            "global_state": shown,
            "reward": (1.0 + state).astype(np.float32),
            "is_alive": np.array([[flag == "1" for flag in row] for row in alive]),
            "is_over": np.array(is_over),
            "is_decided": np.array(is_over) & is_won,
        }
        return state, arrays

    return blank, step


# The suite with the fake, in place of JaxMARL.
SUITE = dataclasses.replace(
    smax.SUITE,
    package="numpy",
    make_copies=functools.partial(smax.SmaxEnv, simulate=fake_simulator),
)


@pytest.fixture
def env():
    return SUITE.make(TASK, 2, 0)


def stop(env):
    return np.full(env.num_envs, 4)


def test_units_that_die_leave_and_a_limit_truncates(env):
    assert env.spec.agents == ("ally_0", "ally_1", "ally_2")
    observation = env.reset()
    assert {name: array.shape for name, array in observation.items()} == {
        "observation": (6, 75),
        "agent_id": (6, 3),
        "action_mask": (6, 8),
        "global_state": (2, 72),
    }
    steps = [env.step(stop(env)) for _ in range(5)]

    def rows(name):
        return [np.flatnonzero(getattr(step, name)).tolist() for step in steps]

    # Copy 0 has the rows 0 to 2, and copy 1 the rows 3 to 5.
    assert rows("terminated") == [[0], [1, 2], [5], [0], [1, 2]]
    assert rows("truncated") == [[], [], [3, 4], [], []]
    assert rows("is_reset") == [[], [0], [0, 1, 2], [3, 4, 5], [0]]
    assert rows("is_over") == [[], [0], [1], [], [0]]
    assert [step.reward.tolist() for step in steps[:3]] == [
        [2, 2, 2, 2, 2, 2],
        [0, 3, 3, 3, 3, 3],
        [0, 0, 0, 4, 4, 4],
    ]
    # The final observation, and then the first one of the next episode.
    seen = [step.observation["observation"][3, 0] for step in steps]
    assert seen == [1, 2, 3, 0, 1]
    again = [env.reset(), *(env.step(stop(env)).observation for _ in range(5))]
    for one, two in zip(again[1:], steps, strict=True):
        np.testing.assert_equal(one, two.observation)


def test_arrays_are_the_caller_s():
    """JAX's arrays are views that cannot be written."""

    def simulate(scenario):
        blank, step = fake_simulator(scenario)

        def frozen(*args):
            state, arrays = step(*args)
            for array in arrays.values():
                array.flags.writeable = False
            return state, arrays

        return blank, frozen

    env = smax.SmaxEnv(TASK, 2, 0, simulate)
    env.compile()
    for seen in (env.reset(), env.step(stop(env)).observation):
        for array in seen.values():
            array[:] = 0
    assert env.step(stop(env)).observation["agent_id"].any()


def test_what_jax_raises_is_one_line(env):
    env.reset()
    with refused(EnvError, "smax/3m", "ValueError: out of memory"):
        env.step(np.full(6, 7))


def test_a_film_shows_the_living_units():
    filmed = SUITE.film(TASK, 2, 0, 1)
    filmed.reset()
    picture = filmed.picture(0)
    assert picture.shape == (384, 384, 3)
    ally, enemy, ground = (
        picture[12 * y, 12 * x] for x, y in ((5, 7), (31, 1), (0, 0))
    )
    assert len({tuple(colour) for colour in (ally, enemy, ground)}) == 3
    # Two units of 12 x 12 pixels, and no dead ones at 0, 0.
    assert (picture != ground).any(axis=2).sum() == 288


def test_observations_of_jaxmarl_are_rows(env):
    seen = np.full(75, 0.5, np.float32)
    arrays = env.observed({"ally_2": seen})
    assert arrays["observation"].sum(axis=1).tolist() == [0, 0, 37.5]
    assert (arrays["agent_id"] == np.eye(3)).all()
    for given, word in [
        (seen, "(75,)"),
        ({"ally_2": seen[1:]}, "ally_2: float32 (74,)"),
        ({"ally_2": [0.5] * 75}, "ally_2: None"),
        ({"world_state": seen}, "world_state"),
    ]:
        with refused(UsageError, "observation (", word):
            env.observed(given)


def test_names_and_a_missing_package():
    assert "smax/3s5z" in SUITE.names()
    with refused(UsageError, '"smax/3s5z"'):
        SUITE.make("smax/3s5y", 1, 0)
    absent = dataclasses.replace(smax.SUITE, package="no_such")
    with refused(UsageError, "no_such", pip_install_extra("smax")):
        absent.make(TASK, 1, 0)
    assert absent.names() == []
    assert envs.prefixes().count("smax/") == 1


@needs_jaxmarl
@pytest.mark.slow  # JAX compiles for ten seconds
def test_each_step_is_jaxmarl_s():
    """Steps a copy of a batch alone, from the same state."""
    blank, step = smax.simulator("3m")
    import jax
    from jaxmarl.environments.smax import HeuristicEnemySMAX, map_name_to_scenario

    env = HeuristicEnemySMAX(scenario=map_name_to_scenario("3m"))
    agents, seeds = env.agents, np.array(copy_seeds(5, 3), np.int32)
    random = np.random.default_rng(0)
    nothing, was_over = np.zeros((3, 3), np.int32), np.ones(3, np.bool_)
    state, arrays = step(seeds, 0, blank(seeds), nothing, was_over)
    was_over, num_ends, num_deaths = np.zeros(3, np.bool_), 0, 0
    for time in range(1, 130):
        masks = np.asarray(arrays["action_mask"])
        chosen = (random.random(masks.shape) * masks).argmax(-1)
        key = jax.random.fold_in(jax.random.PRNGKey(seeds[1]), time)
        if was_over[1]:
            observed, after = env.reset(key)
            rewards, is_over = dict.fromkeys(agents, 0.0), False
        else:
            own = jax.tree.map(lambda array: array[1], state)
            taken = {one: chosen[1, i] for i, one in enumerate(agents)}
            observed, after, rewards, dones, _ = env.step_env(key, own, taken)
            is_over = bool(dones["__all__"])
            for i, one in enumerate(agents):
                num_deaths += bool(dones[one] and arrays["is_alive"][1, i])
        state, arrays = step(seeds, time, state, chosen.astype(np.int32), was_over)
        was_over = np.asarray(arrays["is_over"])
        num_ends += is_over
        assert was_over[1] == is_over
        wanted = [observed[one] for one in agents]
        np.testing.assert_allclose(arrays["observation"][1], wanted, atol=1e-4)
        np.testing.assert_allclose(
            arrays["global_state"][1], observed["world_state"], atol=1e-4
        )
        np.testing.assert_allclose(arrays["reward"][1], rewards[agents[0]], atol=1e-5)
        legal = env.get_avail_actions(after)
        wanted = [np.asarray(legal[one]) != 0 for one in agents]
        np.testing.assert_array_equal(arrays["action_mask"][1], wanted)
    assert num_ends
    assert num_deaths


@needs_jaxmarl
@pytest.mark.slow  # JAX compiles for ten seconds
def test_a_seed_and_actions_determine_the_battles():
    random = np.random.default_rng(0)
    moves = random.integers(0, 8, (60, 3, 3))

    def rows(env):
        kept = [*env.reset().values()]
        for actions in moves:
            step = env.step(actions.ravel())
            kept += [*step.observation.values(), step.reward, step.is_reset]
        env.close()
        return kept

    env = envs.make(TASK, 3, 7)
    shapes = {name: spec.shape for name, spec in env.spec.observation_tensors.items()}
    first = env.reset()
    assert shapes == {name: first[name].shape[1:] for name in shapes}
    assert first["global_state"].shape[1:] == env.spec.global_state.shape
    kept = rows(env)
    for one, two in zip(kept, rows(env), strict=True):
        np.testing.assert_array_equal(one, two)
    other = rows(envs.make(TASK, 3, 8))
    assert any((one != two).any() for one, two in zip(kept, other, strict=True))
    # The copies differ from each other too.
    assert (first["global_state"][0] != first["global_state"][1]).any()


@needs_jaxmarl
def test_every_scenario_is_jaxmarl_s():
    from jaxmarl.environments.smax import HeuristicEnemySMAX, smax_env

    assert smax.SUITE.names() == [
        f"smax/{name}" for name in sorted(smax_env.MAP_NAME_TO_SCENARIO)
    ]
    for name, scenario in smax_env.MAP_NAME_TO_SCENARIO.items():
        simulator, spec = (
            HeuristicEnemySMAX(scenario=scenario),
            envs.env_spec(f"smax/{name}"),
        )
        assert list(spec.agents) == simulator.agents
        assert spec.observations["observation"].shape == (simulator.obs_size,)
        assert spec.actions.num_choices == (simulator.num_ally_actions,)
        assert spec.global_state.shape == (simulator.state_size,)
        assert spec.max_episode_steps == simulator.max_steps


@needs_jaxmarl
@pytest.mark.slow  # JAX compiles for ten seconds
def test_only_a_process_that_steps_imports_jax():
    """Nothing is printed either, because a command's output may be JSON."""
    code = (
        "import sys; from tengen import envs; envs.names();"
        f"env = envs.make('{TASK}', 1, 0); assert 'jax' not in sys.modules;"
        "env.compile(); assert 'jax' in sys.modules; import os;"
        "assert 'NPROC' not in os.environ; import jax.monitoring, numpy; told = [];"
        "listen = jax.monitoring.register_event_duration_secs_listener;"
        "listen(lambda name, *_, **__: told.append(name)); env.reset();"
        "[env.step(numpy.full(3, 4)) for _ in range(2)];"
        "assert not any('backend_compile' in name for name in told), told;"
        "jax.jit(lambda x: x + 2)(1.0);"
        "assert any('backend_compile' in name for name in told), told"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
