"""Two groups of a game's copies, which one thread steps in turns."""

import functools

import numpy as np
import pytest

from tengen import envs
from tengen.actors import EnvironmentPort, Slots
from tengen.agents.vtrace import Vtrace
from tengen.envs import GroupEnv
from tengen.envs.suites.atari import SUITE
from tengen.errors import EnvError, RunError
from tengen.inference import DriveStats, central
from tengen.tensors import Signature
from tests.refusals import refused

pytestmark = pytest.mark.skipif(not SUITE.names(), reason="needs pip install ale-py")

SEEDS = (5, 6)


def actions_of(num_steps, num_envs):
    return np.random.default_rng(0).integers(0, 4, (num_steps, 2, num_envs))


def same(mine, theirs):
    np.testing.assert_array_equal(
        mine.observation["observation"], theirs.observation["observation"]
    )
    for name in ("reward", "terminated", "truncated", "is_reset", "life_lost"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


def test_groups_step_as_their_copies_would_apart():
    # Of Breakout played at random, whose episodes end within some two hundred steps.
    groups = envs.make_groups("atari/Breakout/classic", [2, 2], SEEDS)
    apart = [envs.make("atari/Breakout/classic", 2, seed) for seed in SEEDS]
    actions = actions_of(260, 2)
    num_resets = num_lives = 0
    pairs = list(zip(groups, apart, strict=True))
    for group, env in pairs:
        assert isinstance(group, GroupEnv)
        first = group.receive_first()["observation"]
        np.testing.assert_array_equal(first, env.reset()["observation"])
        group.send(actions[0, pairs.index((group, env))])
    for t in range(260):
        for place, (group, env) in enumerate(pairs):
            assert isinstance(group, GroupEnv)
            step = group.receive()
            same(step, env.step(actions[t, place]))
            num_resets += int(step.is_reset.sum())
            num_lives += int(step.life_lost.sum())
            if t < 259:
                group.send(actions[t + 1, place])
            elif place == 0:
                group.send(actions[0, place])
    assert num_resets >= 2
    assert num_lives >= 10
    for closed in (*groups, *groups, *apart):
        closed.close()


def test_groups_that_do_not_alternate_are_refused():
    first, second = SUITE.make_groups("atari/Pong", 2, SEEDS)
    action = np.zeros(2, np.int64)
    with refused(RunError, "group (1)"):
        second.receive_first()
    first.receive_first()
    for wrong in (first.receive, second.receive, second.receive_first):
        with refused(RunError, "group ("):
            wrong()
    with refused(RunError, "group (1)"):
        second.send(action)
    with refused(RunError, "action (6)"):
        first.send(action + 6)
    # Nothing of it was taken.
    first.send(action)
    second.receive_first()
    second.send(action)
    assert first.receive().reward.shape == (2,)
    first.close()
    second.close()


def test_copies_that_come_back_in_another_order_are_an_error(monkeypatch):
    first, _ = SUITE.make_groups("atari/Pong", 2, SEEDS)
    reset = first._both._envs.reset

    def other(seed):
        screens, info = reset(seed=seed)
        return screens, info | {"env_id": info["env_id"] + 1}

    monkeypatch.setattr(first._both._envs, "reset", other)
    with refused(EnvError, "copies ([1, 2])"):
        first.receive_first()


def test_groups_of_two_sizes_have_environments_of_their_own():
    for sizes in ([2, 1], [1, 1, 1], [2]):
        made = envs.make_groups("atari/Pong", sizes, [3] * len(sizes))
        assert [env.num_envs for env in made] == sizes
        assert not any(isinstance(env, GroupEnv) for env in made)
        for env in made:
            env.close()


class Answers:
    """Inference whose logits are sums over bands of the screen."""

    def __init__(self, port):
        self._port = port

    def ask(self): ...

    def wait(self):
        screen = self._port.inputs["observation"][:, 0].astype(np.float32)
        bands = screen.reshape(len(screen), 4, -1).mean(axis=2)
        self._port.outputs["policy"][:] = bands - bands.mean(axis=1, keepdims=True)


def blocks_of(made):
    """Returns the blocks that a port of each environment writes."""
    agent = Vtrace()
    spec = made[0].spec
    signature = Signature(
        inputs=spec.observations, outputs=agent.outputs_of(spec.actions)
    )
    blocks = [[] for _ in made]

    def write(place, columns, _):
        blocks[place].append(columns)
        return 1

    ports = [
        EnvironmentPort(
            env,
            agent,
            signature,
            agent.make_block(spec, agent.layout({}), 2),
            functools.partial(write, place),
            seed=9,
            turn_blocks=1,
            slots=Slots(2 * place, 2, 4),
        )
        for place, env in enumerate(made)
    ]
    askers = [
        central.Asker(port, Answers(port), functools.partial(port.begin, 7))
        for port in ports
    ]
    # A call leaves a group stepping for the next one.
    for _ in range(6):
        central.drive_in_turns(askers, lambda: True, DriveStats())
    for env in made:
        env.close()
    return blocks


def test_ports_over_groups_write_what_ports_apart_write():
    task = "atari/Breakout/classic"
    groups = blocks_of(envs.make_groups(task, [2, 2], SEEDS))
    apart = blocks_of([envs.make(task, 2, seed) for seed in SEEDS])
    for mine, theirs in zip(groups, apart, strict=True):
        # A call ends when one of the groups has made its block.
        num_blocks = min(len(mine), len(theirs))
        assert num_blocks >= 2
        for one, other in zip(mine[:num_blocks], theirs, strict=False):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], other[name], name)
