"""What an actor of environments hands on: rows in order of time, and their states."""

import threading

import numpy as np
import pytest
from scripted import CountingRunner, ScriptedPolicy, make_port

from tengen.actors import EnvironmentActorConfig, EnvironmentStats, Slots
from tengen.envs import ActionSpec
from tengen.errors import RunError
from tengen.inference import drive
from tengen.tensors import TensorSpec
from tests.refusals import refused

MEMORY = {
    "count": TensorSpec(),
    "hidden": TensorSpec(dtype="int32", shape=(2, 3)),
}


def turn(port, version=0):
    runner = CountingRunner(port)
    port.begin(version)
    drive(port, runner)
    return runner


def test_blocks_of_a_scripted_policy():
    policy = ScriptedPolicy(lambda step: step % 3)
    port, written, _ = make_port([(3, 2)], policy=policy, is_closed=True)
    turn(port)
    # Episode 0 of three steps, which terminates, a reset, and so on across the cut.
    first, second = ({n: c[0] for n, c in block.items()} for block in written.blocks)
    assert first["observation/place"][:, 1:].tolist() == [
        [0, 0, -1],
        [0, 1, 0],
        [0, 2, 1],
        [0, 3, 2],
        [1, 0, -1],
    ]
    assert first["observation/pixel"].dtype == np.uint8
    assert first["observation/pixel"][:, 0, 0].tolist() == [255, 1, 3, 5, 0]
    # The last row is there for what the network sees: all else of it is zero.
    assert first["action"].tolist() == [0, 1, 2, 0, 0]
    assert first["reward"].tolist() == [1, 2, 3, 0, 0]
    assert first["terminated"].tolist() == [0, 0, 1, 0, 0]
    assert first["truncated"].tolist() == [0, 0, 0, 0, 0]
    assert first["is_reset"].tolist() == [0, 0, 0, 1, 0]
    assert (first["numbers"][:4] > 0).all()
    assert (first["numbers"][4] == 0).all()
    assert second["observation/place"][:, 1:].tolist() == [
        [1, 0, -1],
        [1, 1, 1],
        [1, 2, 2],
        [2, 0, -1],
        [2, 1, 1],
    ]
    assert second["action"].tolist() == [1, 2, 0, 1, 0]
    assert second["reward"].tolist() == [11, 12, 0, 21, 0]
    assert second["terminated"].tolist() == [0, 0, 0, 0, 0]
    assert second["truncated"].tolist() == [0, 1, 0, 0, 0]
    assert second["is_reset"].tolist() == [0, 0, 1, 0, 0]
    dtypes = {name: str(column.dtype) for name, column in first.items()}
    assert dtypes["action"] == "int64"
    assert dtypes["reward"] == dtypes["last_reward"] == "float32"
    assert dtypes["is_reset"] == dtypes["terminated"] == dtypes["truncated"] == "uint8"


def test_the_network_is_told_the_last_step_of_the_same_episode():
    policy = ScriptedPolicy(lambda step: step % 3)
    port, written, _ = make_port([(3, 2)], policy=policy, turn_blocks=2)
    runner = turn(port)
    told = written.joined("last_action")[0]
    one_hot = np.eye(3, dtype=np.float32)
    nothing = np.zeros(3, np.float32)
    # Actions 0 1 2 | 0 a reset | 1 2 | 0 a reset | 1: after a reset nothing is told.
    expected = [nothing, *one_hot, nothing, one_hot[1], one_hot[2], nothing]
    assert np.array_equal(told, expected)
    # The final observation's row is told the reward that led there.
    assert written.joined("last_reward")[0].tolist() == [0, 1, 2, 3, 0, 11, 12, 0]
    # What is stored is what the network saw.
    for name in port.inputs:
        seen = np.stack([inputs[name][0] for inputs in runner.seen])
        assert np.array_equal(seen, written.joined(name)[0]), name


def test_no_transition_bridges_two_episodes():
    lengths = [(1, 5, 2), (4,), (2, 1)]
    port, written, _ = make_port(lengths, num_steps=7, turn_blocks=12)
    turn(port)
    num_ends = 0
    for copy in range(3):
        place = written.joined("observation/place")[copy]
        assert (place[:, 0] == copy).all()
        is_reset = written.joined("is_reset")[copy]
        bridges = place[1:, 1] != place[:-1, 1]
        assert np.array_equal(bridges, is_reset[:-1] == 1)
        is_over = written.joined("terminated") + written.joined("truncated")
        assert np.array_equal(is_over[copy][:-1], is_reset[1:])
        # Everywhere else the next observation says which action led to it.
        live = ~bridges
        actions = written.joined("action")[copy]
        assert np.array_equal(place[1:, 3][live], actions[:-1][live])
        num_ends += int(is_reset.sum())
        # An episode's final observation is there, with all its steps.
        for row in is_reset.nonzero()[0]:
            episode, step = place[row, 1:3].astype(int)
            assert step == lengths[copy][episode % len(lengths[copy])]
    assert num_ends == port.stats.num_episodes > 10


def test_a_closed_block_ends_with_what_the_next_begins_with():
    port, written, _ = make_port([(3, 2), (4,)], is_closed=True, turn_blocks=3)
    turn(port)
    turn(port, 1)
    assert len(written.blocks) == 6
    for before, after in zip(written.blocks, written.blocks[1:], strict=False):
        for name in port.inputs:
            assert np.array_equal(before[name][:, -1], after[name][:, 0]), name


def test_memory_is_zero_exactly_where_an_episode_begins():
    port, written, _ = make_port([(3, 2), (6,)], state=MEMORY, turn_blocks=4)
    runner = turn(port)
    counts = np.stack(runner.counts, axis=1)
    is_reset = written.joined("is_reset")
    for copy in range(2):
        expected, count = [], 0
        for t in range(16):
            count = 1 if t > 0 and is_reset[copy, t - 1] else count + 1
            expected.append(count)
        assert counts[copy].tolist() == expected
    # The row of a final observation is of the episode that ended.
    assert counts[0][:8].tolist() == [1, 2, 3, 4, 1, 2, 3, 1]


def test_the_state_of_a_block_is_that_before_its_first_step():
    port, written, _ = make_port([(3, 2), (6,)], state=MEMORY, turn_blocks=3)
    runner = turn(port)
    for number, state in enumerate(written.states):
        assert state["hidden"].dtype == np.int32
        # What the network had after its row, less that row.
        before = runner.counts[4 * number] - 1
        assert np.array_equal(state["count"], before)
        assert np.array_equal(
            state["hidden"], np.ones((1, 2, 3)) * before[:, None, None]
        )
    # Copy 0 began an episode with the second block: not what memory the last one left.
    assert [state["count"].tolist() for state in written.states] == [
        [0, 0],
        [0, 4],
        [1, 1],
    ]


def draws(seed=3, version=1, **options):
    lengths = options.pop("lengths", [(3, 2), (4,)])
    port, written, _ = make_port(lengths, seed=seed, turn_blocks=8, **options)
    turn(port, version)
    return written


def test_the_same_seed_gives_the_same_bytes():
    once, twice = draws(), draws()
    for one, other in zip(once.blocks, twice.blocks, strict=True):
        assert one.keys() == other.keys()
        assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    numbers = once.joined("numbers")
    assert len(np.unique(numbers)) == numbers.size
    for others in (draws(seed=4), draws(version=2)):
        assert not np.isin(others.joined("numbers"), numbers).any()


def test_seeds_of_64_bits_are_told_apart():
    numbers = [draws(seed=seed).joined("numbers") for seed in (2**64 - 1, 2**64 - 2)]
    assert not np.isin(*numbers).any()


def test_a_copy_draws_the_same_whatever_the_others_do_and_whoever_steps_them():
    together = draws(lengths=[(3, 2), (4,), (1,)]).joined("numbers")
    other_lengths = draws(lengths=[(9,), (4,), (2, 5)]).joined("numbers")
    assert np.array_equal(other_lengths, together)
    alone = draws(lengths=[(3, 2)]).joined("numbers")
    assert np.array_equal(alone, together[:1])
    rest = draws(lengths=[(4,), (1,)], slots=Slots(1, 2, 3)).joined("numbers")
    assert np.array_equal(rest, together[1:])


def test_a_policy_is_told_which_copies_it_acts_for():
    policy = ScriptedPolicy()
    port, _, _ = make_port([(3,), (4,)], policy=policy)
    turn(port)
    assert policy.slots == Slots(0, 2, 2)
    port, _, _ = make_port([(3,), (4,)], policy=policy, slots=Slots(4, 2, 8))
    turn(port)
    assert policy.slots == Slots(4, 2, 8)


def test_actions_are_stored_as_drawn_and_done_within_their_bounds():
    bounds = ActionSpec(shape=(2,), low=(-1.0, -np.inf), high=(1.0, 4.0))
    policy = ScriptedPolicy(lambda step: [1.5, 5.0] if step == 0 else [-2.0, -9.0])
    port, written, env = make_port(
        [(5,)], policy=policy, actions=bounds, num_steps=3, turn_blocks=1
    )
    turn(port)
    assert written.joined("action")[0].tolist() == [[1.5, 5], [-2, -9], [-2, -9]]
    assert written.joined("action").dtype == np.float32
    assert np.array_equal(env.actions, [[[1, 4]], [[-1, -9]], [[-1, -9]]])
    # The network is told what was done.
    assert written.joined("last_action")[0].tolist() == [[0, 0], [1, 4], [-1, -9]]


def test_a_stop_in_a_turn_loses_nothing():
    expected = draws(state=MEMORY)

    port, written, _ = make_port([(3, 2), (4,)], seed=3, turn_blocks=8, state=MEMORY)

    stop = threading.Event()

    class StoppingRunner(CountingRunner):
        def run(self, num_rows):
            super().run(num_rows)
            if len(self.seen) == 6:
                stop.set()

    port.begin(1, stop)
    stats = drive(port, StoppingRunner(port))
    # Of the second block two of four steps.
    assert stats.num_batches == 6
    assert port.next() == 0
    assert len(written.blocks) == 1
    # The next turn completes the block, and then makes seven more.
    turn(port, 1)
    assert len(written.blocks) == 9
    for number, block in enumerate(expected.blocks):
        for name, column in block.items():
            assert np.array_equal(column, written.blocks[number][name]), name
        for name, array in expected.states[number].items():
            assert np.array_equal(array, written.states[number][name]), name


def test_a_step_has_the_version_of_the_model_that_chose_it():
    port, written, _ = make_port([(9,)], turn_blocks=1)
    port.begin(4)
    port.next()
    port.done()
    turn(port, 5)
    turn(port, 6)
    assert written.joined("model_version").tolist() == [[4, 5, 5, 5, 6, 6, 6, 6]]


def test_blocks_are_not_written_again():
    port, written, _ = make_port([(3, 2)], state=MEMORY)
    turn(port)
    before = [{n: c.copy() for n, c in block.items()} for block in written.blocks]
    states = [{n: c.copy() for n, c in state.items()} for state in written.states]
    turn(port)
    for number, block in enumerate(before):
        for name, column in block.items():
            assert np.array_equal(column, written.blocks[number][name])
        for name, column in states[number].items():
            assert np.array_equal(column, written.states[number][name])


def test_a_port_without_a_turn_asks_for_nothing():
    port, written, _ = make_port([(3,)])
    assert port.next() == 0
    port.begin(0)
    assert port.next() == 1
    assert written.blocks == []


def test_stats():
    port, _, _ = make_port([(3, 2)])
    turn(port)
    assert port.stats.num_frames == 6  # eight steps, two of them resets
    assert port.stats.num_episodes == 2
    assert port.stats.num_items == 2 * 7  # as the writer said
    assert port.stats.num_batches == 8
    assert list(port.stats.recent_returns) == [1 + 2 + 3, 11 + 12]
    assert list(port.stats.recent_lengths) == [3, 2]
    assert port.stats.mean_return is None
    assert port.stats.mean_length is None


@pytest.mark.parametrize(("num_copies", "least"), [(1, 10), (16, 32), (200, 100)])
def test_a_mean_is_of_two_episodes_a_copy_at_least(num_copies, least):
    stats = EnvironmentStats(num_copies=num_copies)
    for episode in range(least):
        assert stats.mean_return is None
        stats.recent_returns.append(float(episode))
        stats.recent_lengths.append(2 * episode)
    assert stats.mean_return == (least - 1) / 2
    assert stats.mean_length == least - 1


def test_waiting_for_room_is_told():
    port, written, _ = make_port([(3, 2)])
    written.pause_s = 0.05
    port.begin(0)
    stats = drive(port, CountingRunner(port))
    # Two blocks; both are in the port's time too, the last one with the turn's end.
    assert 0.1 <= port.stats.write_s <= stats.port_s


def test_mean_return_is_of_the_last_hundred_episodes():
    port, _, _ = make_port([(1,)], num_steps=300, turn_blocks=1)
    turn(port)
    # One step an episode, then a reset: episode e returns 10 e + 1.
    assert port.stats.num_episodes == 150
    assert port.stats.mean_return == np.mean([10 * e + 1 for e in range(50, 150)])
    assert port.stats.mean_length == 1.0


@pytest.mark.parametrize(("name", "value"), [("policy", np.nan), ("value", -np.inf)])
def test_answers_that_are_not_finite_are_refused(name, value):
    port, written, env = make_port([(3,), (4,)], num_steps=1)
    port.begin(3)
    assert port.next() == 2
    port.outputs[name].reshape(-1)[-1] = value
    with refused(RunError, f"{name} (model of version 3)"):
        port.done()
    assert (written.blocks, env.actions) == ([], [])


def test_written_blocks_have_a_piece_of_memory_for_each_copy():
    port, written, _ = make_port([(3,), (4,)])
    turn(port)
    assert all(column[1].flags.c_contiguous for column in written.blocks[0].values())


@pytest.mark.parametrize(
    ("num_envs", "num_groups", "sizes"),
    [(16, 2, [8, 8]), (7, 2, [4, 3]), (1, 2, [1]), (5, 1, [5]), (8, 3, [3, 3, 2])],
)
def test_groups_share_the_copies(num_envs, num_groups, sizes):
    config = EnvironmentActorConfig(num_envs=num_envs, num_groups=num_groups)
    assert config.group_sizes() == sizes
