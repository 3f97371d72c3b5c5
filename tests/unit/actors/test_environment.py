from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.actors import (
    EnvironmentActorConfig,
    EnvironmentPort,
    environment_seed,
    features_of,
    unroll_columns,
    unroll_counts,
)
from tengen.envs import EnvSpec
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.errors import RunError, UsageError
from tengen.inference import drive
from tengen.store import QueueConfig, UnrollQueue

pytest.importorskip("gymnasium")

MakeOne = Callable[..., Any]
Columns = Mapping[str, NDArray[Any]]

# A logit that leaves the others no chance.
SURE = 1e3


class Inserts:
    """The insert half of a table; checks what comes against the columns."""

    def __init__(self, spec: EnvSpec, unroll_length: int) -> None:
        self.unrolls: list[tuple[str, int, Columns]] = []
        self._columns = unroll_columns(spec, unroll_length)

    def insert(self, writer: str, sequence: int, columns: Columns) -> bool:
        found = {name: (one.dtype, one.shape) for name, one in columns.items()}
        assert found == {
            name: (np.dtype(one.dtype), one.shape)
            for name, one in self._columns.items()
        }
        self.unrolls.append((writer, sequence, columns))
        return True

    def of(self, sequence: int) -> Columns:
        return next(c for _, number, c in self.unrolls if number == sequence)


class ScriptedRunner:
    """Answers action ``step % 3`` for sure; step counts calls."""

    def __init__(self, port: EnvironmentPort) -> None:
        self._port = port
        self.num_runs = 0
        self.seen: list[NDArray[np.float32]] = []

    def run(self, num_rows: int) -> None:
        assert num_rows == len(self._port.planes)
        self.seen.append(self._port.planes[..., 0, 0].copy())
        self._port.policy[:] = 0
        self._port.policy[:, self.num_runs % 3] = SURE
        self.num_runs += 1


class EvenRunner:
    """Answers that all actions are equally good."""

    def __init__(self, port: EnvironmentPort) -> None:
        self._port = port

    def run(self, num_rows: int) -> None:
        self._port.policy[:] = 0


def make_port(
    make_one: MakeOne,
    *,
    lengths: tuple[int, ...] = (3, 2),
    num_envs: int = 1,
    unroll_length: int = 4,
    num_unrolls: int = 2,
    seed: int = 0,
    **kwargs: Any,
) -> tuple[EnvironmentPort, Inserts]:
    env = GymnasiumEnv(lambda: make_one(lengths), num_envs, seed, name="counting")
    config = EnvironmentActorConfig(
        num_envs=num_envs, unroll_length=unroll_length, num_unrolls=num_unrolls
    )
    table = Inserts(env.spec, unroll_length)
    port = EnvironmentPort(
        env,
        config,
        table,
        writer="actor-0",
        seed=seed,
        **kwargs,  # type: ignore[arg-type]
    )
    return port, table


def test_columns_of_a_scripted_policy(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env)
    runner = ScriptedRunner(port)
    port.begin(0)
    stats = drive(port, runner)
    assert stats.num_evaluations == 8
    assert [(w, s) for w, s, _ in table.unrolls] == [("actor-0", 0), ("actor-0", 1)]

    # Episode 0 of three steps, which terminates, a reset, and so on across the cut.
    first, second = table.of(0), table.of(1)
    assert first["observation"][:, 1:].tolist() == [
        [0, 0, -1],
        [0, 1, 0],
        [0, 2, 1],
        [0, 3, 2],
        [1, 0, -1],
    ]
    assert first["action"].tolist() == [0, 1, 2, 0]
    assert first["reward"].tolist() == [1, 2, 3, 0]
    assert first["terminated"].tolist() == [0, 0, 1, 0]
    assert first["truncated"].tolist() == [0, 0, 0, 0]
    assert first["is_reset"].tolist() == [0, 0, 0, 1]
    assert first["behaviour_logits"].tolist() == [
        [SURE, 0, 0],
        [0, SURE, 0],
        [0, 0, SURE],
        [SURE, 0, 0],
    ]
    assert second["observation"][:, 1:].tolist() == [
        [1, 0, -1],
        [1, 1, 1],
        [1, 2, 2],
        [2, 0, -1],
        [2, 1, 1],
    ]
    assert second["action"].tolist() == [1, 2, 0, 1]
    assert second["reward"].tolist() == [11, 12, 0, 21]
    assert second["terminated"].tolist() == [0, 0, 0, 0]
    assert second["truncated"].tolist() == [0, 1, 0, 0]
    assert second["is_reset"].tolist() == [0, 0, 1, 0]


def test_no_transition_bridges_two_episodes(make_counting_env: MakeOne) -> None:
    port, table = make_port(
        make_counting_env,
        lengths=(1, 5, 2),
        num_envs=3,
        unroll_length=7,
        num_unrolls=12,
    )
    port.begin(0)
    drive(port, EvenRunner(port))
    num_ends = 0
    for _, _, columns in table.unrolls:
        episode = columns["observation"][:, 1]
        bridges = episode[1:] != episode[:-1]
        assert np.array_equal(bridges, columns["is_reset"] == 1)
        is_over = columns["terminated"] + columns["truncated"]
        assert np.array_equal(is_over[:-1], columns["is_reset"][1:])
        # Everywhere else the next observation says which action led to it.
        live = ~bridges
        assert np.array_equal(
            columns["observation"][1:, 3][live], columns["action"][live]
        )
        num_ends += int(is_over.sum())
    assert num_ends == port.stats.num_episodes > 10


def test_the_policy_sees_what_its_action_answers(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env, num_envs=2)
    runner = ScriptedRunner(port)
    port.begin(0)
    drive(port, runner)
    for copy in range(2):
        seen = np.stack([rows[copy] for rows in runner.seen])
        assert np.array_equal(seen, table.of(copy)["observation"][:-1])


def test_unrolls_overlap_by_one_observation(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env, num_envs=2, num_unrolls=6)
    for turn in range(2):
        port.begin(turn)
        drive(port, EvenRunner(port))
    assert [number for _, number, _ in table.unrolls] == list(range(12))
    for number in range(10):
        last = table.of(number)["observation"][-1]
        assert np.array_equal(last, table.of(number + 2)["observation"][0])


def test_unrolls_are_not_written_again(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env)
    port.begin(0)
    drive(port, ScriptedRunner(port))
    before = {name: column.copy() for name, column in table.of(0).items()}
    port.begin(1)
    drive(port, EvenRunner(port))
    for name, column in before.items():
        assert np.array_equal(column, table.of(0)[name])


def test_stats(make_counting_env: MakeOne) -> None:
    port, _ = make_port(make_counting_env)
    port.begin(0)
    drive(port, ScriptedRunner(port))
    assert port.stats.num_frames == 6  # eight steps, two of them resets
    assert port.stats.num_episodes == 2
    assert port.stats.num_unrolls == 2
    assert port.stats.num_batches == 8
    assert list(port.stats.recent_returns) == [1 + 2 + 3, 11 + 12]
    assert port.stats.mean_return is None


def test_mean_return_is_of_the_last_hundred_episodes(
    make_counting_env: MakeOne,
) -> None:
    port, _ = make_port(
        make_counting_env, lengths=(1,), unroll_length=300, num_unrolls=1
    )
    port.begin(0)
    drive(port, ScriptedRunner(port))
    # One step an episode, then a reset: episode e returns 10 e + 1.
    assert port.stats.num_episodes == 150
    assert port.stats.mean_return == np.mean([10 * e + 1 for e in range(50, 150)])


def test_the_same_seed_gives_the_same_unrolls(make_counting_env: MakeOne) -> None:
    def unrolls(seed: int, generation: int, num_envs: int = 2) -> list[Columns]:
        port, table = make_port(
            make_counting_env, num_envs=num_envs, num_unrolls=8 * num_envs, seed=seed
        )
        port.begin(generation)
        drive(port, EvenRunner(port))
        return [columns for _, _, columns in table.unrolls]

    def actions(columns: list[Columns]) -> Any:
        return np.stack([unroll["action"] for unroll in columns])

    once, twice = unrolls(3, 1), unrolls(3, 1)
    for one, other in zip(once, twice, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(actions(once), actions(unrolls(4, 1)))
    assert not np.array_equal(actions(once), actions(unrolls(3, 2)))
    # A copy's actions do not depend on how many others there are.
    assert np.array_equal(actions(once)[::2], actions(unrolls(3, 1, num_envs=1)))


def test_actions_follow_the_policy(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env, num_envs=8, num_unrolls=4000)

    class Runner:
        def run(self, num_rows: int) -> None:
            # Any constant may be added to logits.
            port.policy[:] = np.log([0.2, 0.5, 0.3]) - 700

    port.begin(0)
    drive(port, Runner())
    actions = np.concatenate([columns["action"] for _, _, columns in table.unrolls])
    shares = np.bincount(actions, minlength=3) / len(actions)
    # 16,000 draws: five standard errors are 0.02.
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_a_stop_in_a_turn_loses_nothing(make_counting_env: MakeOne) -> None:
    whole, expected = make_port(make_counting_env, num_unrolls=4)
    whole.begin(0)
    drive(whole, EvenRunner(whole))

    port, table = make_port(make_counting_env, num_unrolls=4)

    class StoppingRunner(EvenRunner):
        num_runs = 0

        def run(self, num_rows: int) -> None:
            super().run(num_rows)
            self.num_runs += 1
            if self.num_runs == 6:
                port.stop()

    port.begin(0)
    stats = drive(port, StoppingRunner(port))
    assert stats.num_batches == 6
    assert port.next() == 0
    assert len(table.unrolls) == 1

    port.begin(0)
    drive(port, EvenRunner(port))
    # The turn after it completes the unroll that was open, then three more.
    assert [number for _, number, _ in table.unrolls] == [0, 1, 2, 3, 4]
    for number in range(4):
        for name, column in expected.of(number).items():
            assert np.array_equal(column, table.of(number)[name]), name


def test_a_port_without_a_turn_asks_for_nothing(make_counting_env: MakeOne) -> None:
    port, table = make_port(make_counting_env)
    assert port.next() == 0
    assert table.unrolls == []


def test_a_resumed_port_goes_on_with_other_draws(make_counting_env: MakeOne) -> None:
    def actions(first_sequence: int) -> tuple[Any, list[int]]:
        port, table = make_port(
            make_counting_env,
            num_envs=2,
            num_unrolls=16,
            first_sequence=first_sequence,
        )
        port.begin(0)
        drive(port, EvenRunner(port))
        rows = [columns["action"] for _, _, columns in table.unrolls]
        return np.stack(rows), [number for _, number, _ in table.unrolls]

    from_start, _ = actions(0)
    # Killed after unroll 4, the first of copy 0's third: the round is made again.
    resumed, numbers = actions(5)
    assert numbers == list(range(5, 21))
    assert np.array_equal(resumed[:10], from_start[6:])
    assert environment_seed(1, 0) != environment_seed(1, 5)
    assert environment_seed(1, 5) == environment_seed(1, 5)


def test_the_queue_takes_the_unrolls(
    make_counting_env: MakeOne, tmp_path: Path
) -> None:
    env = GymnasiumEnv(make_counting_env, 2, 0, name="counting")
    config = EnvironmentActorConfig(num_envs=2, unroll_length=4, num_unrolls=6)
    columns = unroll_columns(env.spec, config.unroll_length)
    with UnrollQueue(
        tmp_path / "unrolls", columns, QueueConfig(), unroll_counts
    ) as queue:
        port = EnvironmentPort(env, config, queue, writer="actor-0", seed=0)
        port.begin(0)
        drive(port, EvenRunner(port))
        counts = {"num_items": 6, "num_rows": port.stats.num_frames}
        counts["num_episodes"] = port.stats.num_episodes
        assert queue.describe() == counts
        batch = queue.sample(6)
        assert queue.next_sequence("actor-0") == 6
    assert batch.columns["observation"].shape == (6, 5, 4)
    assert batch.columns["behaviour_logits"].shape == (6, 4, 3)


def test_bad_arguments_and_answers_are_refused(make_counting_env: MakeOne) -> None:
    with pytest.raises(UsageError, match=r"^num_unrolls \(6\) must be a positive mult"):
        EnvironmentActorConfig(num_envs=4, num_unrolls=6)
    with pytest.raises(UsageError, match=r"^num_envs \(0\) must be 1 to 4096; "):
        EnvironmentActorConfig(num_envs=0)
    env = GymnasiumEnv(make_counting_env, 2, 0, name="counting")
    table = Inserts(env.spec, 20)
    with pytest.raises(UsageError, match=r"^num_envs \(16\) must be the environment's"):
        EnvironmentPort(
            env,
            EnvironmentActorConfig(),
            table,
            writer="a",
            seed=0,  # type: ignore[arg-type]
        )
    port, _ = make_port(make_counting_env)
    port.begin(3)
    port.policy[0, 1] = np.nan
    assert port.next() == 1
    with pytest.raises(RunError, match=r"generation 3\) must be finite; "):
        port.done()


def test_only_vectors_are_taken() -> None:
    spec = EnvSpec(
        name="pixels",
        observation_shape=(3, 84, 84),
        observation_dtype="uint8",
        num_actions=4,
        max_episode_steps=None,
        reward_threshold=None,
    )
    with pytest.raises(UsageError, match=r"^observation shape \(\(3, 84, 84\)\) of "):
        features_of(spec)
    assert unroll_columns(spec, 5)["observation"].shape == (6, 3, 84, 84)
