"""An actor whose inference server is lost: what it writes when another one answers."""

import numpy as np
import pytest
from scripted import CountingRunner, ScriptedPolicy, make_port

from tengen.inference import drive
from tengen.tensors import TensorSpec

MEMORY = {"count": TensorSpec(), "hidden": TensorSpec(dtype="int32", shape=(2, 3))}
LENGTHS = [(3, 2), (6,)]
NUM_ANSWERS = 14


class MovingRunner(CountingRunner):
    """A network that is lost before some answers, with its memory.

    Args:
        port: Whose rows it answers.
        at: The numbers of these answers, from 0.
    """

    def __init__(self, port, at):
        super().__init__(port)
        self._arrays = port._rows.arrays
        self._at = at

    def run(self, num_rows):
        if len(self.seen) in self._at:
            self._arrays.num_moves += 1
            for array in self._arrays.state.values():
                array[:] = 0
        super().run(num_rows)


def play(at, num_steps, is_closed):
    port, written, _ = make_port(
        LENGTHS,
        policy=ScriptedPolicy(lambda step: step % 3),
        state=MEMORY,
        num_steps=num_steps,
        is_closed=is_closed,
        turn_blocks=-(-NUM_ANSWERS // num_steps),
    )
    runner = MovingRunner(port, at)
    port.begin(0)
    drive(port, runner)
    return runner, written


def steps_of(written, is_closed, name):
    last = -1 if is_closed else None
    return np.concatenate([block[name][:, :last] for block in written.blocks], axis=1)


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("num_steps", [1, 2, 4])
@pytest.mark.parametrize("at", [{0}, {1}, {2}, {3}, {4}, {5}, {6, 7}, {3, 8}])
def test_a_learner_computes_the_memory_that_acted(at, num_steps, is_closed):
    runner, written = play(at, num_steps, is_closed)
    acted = np.stack(runner.counts, axis=1)
    for copy in range(2):
        learned = []
        for block, state in zip(written.blocks, written.states, strict=True):
            assert np.array_equal(
                state["hidden"][copy], np.full((2, 3), state["count"][copy])
            )
            count, is_first = int(state["count"][copy]), False
            for t in range(num_steps):
                count = 1 if is_first else count + 1
                is_first = bool(block["is_reset"][copy, t])
                is_cut = is_first and bool(block["truncated"][copy, t])
                if not is_cut:
                    learned.append(count)
        assert acted[copy, : len(learned)].tolist() == learned


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("num_steps", [1, 4])
@pytest.mark.parametrize("at", [{2}, {3}, {4}, {6, 7}])
def test_no_step_is_lost_or_doubled(at, num_steps, is_closed):
    (_, moved), (_, stayed) = (
        play(where, num_steps, is_closed) for where in (at, set())
    )
    is_cut = steps_of(moved, is_closed, "is_reset") & steps_of(
        moved, is_closed, "truncated"
    )
    # All copies together, once each time.
    assert is_cut.sum(axis=1).tolist() == [len(at)] * 2
    for name in ("observation/place", "action", "reward", "terminated", "is_reset"):
        for copy in range(2):
            got = steps_of(moved, is_closed, name)[copy][is_cut[copy] == 0]
            told = steps_of(stayed, is_closed, name)[copy]
            num = min(len(got), len(told))
            assert num >= NUM_ANSWERS - 2
            assert np.array_equal(got[:num], told[:num]), name


def test_nothing_is_learned_across_and_the_observation_comes_again():
    _, written = play({6}, 4, False)
    columns = {name: steps_of(written, False, name)[1] for name in written.blocks[0]}
    (place,) = np.flatnonzero(columns["is_reset"] & columns["truncated"])
    assert place == 6
    for name in ("observation/place", "last_action", "last_reward"):
        assert np.array_equal(columns[name][place], columns[name][place + 1]), name
    assert columns["reward"][place] == 0
    assert columns["terminated"][place] == 0


def test_a_move_is_no_frame_and_ends_no_episode():
    port, _, _ = make_port([(50,), (50,)], turn_blocks=3)
    port.begin(0)
    drive(port, MovingRunner(port, {2, 5}))
    # Two of the three blocks' twelve steps are none of the environment's.
    assert port.stats.num_frames == 2 * 10
    assert port.stats.num_episodes == 0
