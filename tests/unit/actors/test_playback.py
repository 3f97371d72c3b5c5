"""Demonstrations are written as an actor would write the same episodes."""

from contextlib import closing

import numpy as np
import pytest

from tengen import envs
from tengen.actors import EnvironmentPort, StepBlock, is_legal, play_back
from tengen.agents.r2d3 import R2d3
from tengen.evaluation import Recorder
from tengen.games import allow
from tengen.tensors import Signature, TensorSpec
from tests.unit.agents.agent_fakes import CountingEnv

pytest.importorskip("gymnasium")

K = 7
TASKS = [
    "CartPole-v1",
    "tests.environments:Nested",
    "tests.mazes:ShortTMaze",
    "tests.masked_environments:Doors",
]


class AnyLegal:
    """A policy that takes random legal actions."""

    def num_uniforms(self, actions):
        return 1

    def act(self, outputs, actions, uniforms, slots):
        order = np.argsort(~is_legal(outputs["q"][0]), kind="stable")
        count = is_legal(outputs["q"][0]).sum()
        return {"action": order[(uniforms[:, 0] * count).astype(np.int64)]}


@pytest.mark.parametrize("task", TASKS)
def test_the_blocks_are_an_actor_s(task):
    """So no column means something else in a demonstration than in the replay."""
    allow(task)
    agent, episodes, acted, played = R2d3(), [], [], []

    def taking(blocks):
        def write(columns, state):
            assert not any(array.any() for array in state.values())
            blocks.append(columns)
            return 1

        return write

    with closing(envs.make(task, 1, 5)) as env:
        spec = env.spec
        signature = Signature(
            inputs=agent.inputs_of(spec),
            outputs={"q": TensorSpec(shape=spec.actions.num_choices)},
            state={"memory": TensorSpec(shape=(3,))},
        )
        port = EnvironmentPort(
            Recorder(env, 1000, episodes.append),
            AnyLegal(),
            signature,
            StepBlock(agent.columns(spec), 1, K, is_closed=False),
            taking(acted),
            seed=0,
            turn_blocks=1,
        )
        while len(episodes) < 4:
            port.begin(9)
            while port.next():
                port.done()
    num_blocks = sum(len(episode["reward"]) + 1 for episode in episodes) // K
    block = StepBlock(agent.columns(spec), 1, K, is_closed=False)
    play_back(spec, episodes, signature, block, taking(played), num_blocks)
    assert len(played) == num_blocks
    for made, wanted in zip(played, acted, strict=False):
        assert made.keys() == wanted.keys()
        assert (made["model_version"] == -1).all()
        for column in wanted.keys() - {"model_version"}:
            # A reset step ignores its action.
            counts = np.ones((1, K), np.bool_)
            if column == "action":
                counts = wanted["is_reset"] == 0
            np.testing.assert_array_equal(
                made[column][counts], wanted[column][counts], err_msg=column
            )
    assert any(block["is_reset"].any() for block in played)


def test_the_first_episode_follows_the_last():
    env, episodes, blocks = CountingEnv(1, (2, 3)), [], []
    recorder = Recorder(env, 2, episodes.append)
    recorder.reset()
    while len(episodes) < 2:
        recorder.step(np.zeros(1, np.int64))
    spec, agent = env.spec, R2d3(sees_last_step=False)
    outputs = {"q": TensorSpec(shape=(3,))}
    play_back(
        spec,
        episodes,
        Signature(inputs=spec.observations, outputs=outputs),
        StepBlock(agent.columns(spec), 1, 5, is_closed=False),
        lambda block, state: blocks.append(block) or 1,
        3,
    )
    seen, resets = (
        np.concatenate([block[name][0] for block in blocks]).tolist()
        for name in ("observation", "is_reset")
    )
    lengths = [len(episode["reward"]) for episode in episodes] * 3
    assert seen == [n for length in lengths for n in range(length + 1)][:15]
    assert resets == [n == last for last in lengths for n in range(last + 1)][:15]
